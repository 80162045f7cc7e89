/* Arithmetic coding, stopped between two MCUs: libjpeg decodes a row of them in one go, which may take a fifth of a second.
 * They need not have bytes of their own: behind a marker libjpeg makes zeros up and asks its source for nothing more. */
#include "jpeg_session.h"

/* Zeros behind statistics that were trained for it make 4 µs of work a block, and a row may have 40,000 blocks. */
enum { BLOCK_WORK = 1 << 8 };

/* How it begins in every libjpeg since 6b. Its header (jpegint.h) is libjpeg's own, and not installed everywhere. */
struct jpeg_entropy_decoder {
    void (*start_pass)(j_decompress_ptr jpeg);
    boolean (*decode_mcu)(j_decompress_ptr jpeg, JBLOCKROW *blocks);
};

static boolean decode_mcu(j_decompress_ptr jpeg, JBLOCKROW *blocks)
{
    codec_jpeg *session = jpeg->client_data;
    if (codec_stop_is_due(session->stop, BLOCK_WORK * (size_t)jpeg->blocks_in_MCU)) {
        session->is_stopped = 1;
        longjmp(session->trap, 1);
    }
    return session->decode_mcu(jpeg, blocks);
}

static void watch_scan(j_decompress_ptr jpeg)
{
    codec_jpeg *session = jpeg->client_data;
    session->decode_mcu = jpeg->entropy->decode_mcu;
    jpeg->entropy->decode_mcu = decode_mcu;
}

/* libjpeg chooses for each scan how MCUs are decoded. */
static void start_pass(j_decompress_ptr jpeg)
{
    codec_jpeg *session = jpeg->client_data;
    session->start_pass(jpeg);
    watch_scan(jpeg);
}

void codec_jpeg_watch_mcus(codec_jpeg *session)
{
    j_decompress_ptr jpeg = &session->jpeg;
    session->start_pass = jpeg->entropy->start_pass;
    jpeg->entropy->start_pass = start_pass;
    watch_scan(jpeg);
}
