#include "ccodecs.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Bytes of a chunk around its data, the name of a profile, the least that is one, and what zlib is shown at once: however little
 * comes of that, it is a millisecond or two. */
enum { CHUNK_HEAD = 8, CHECKSUM = 4, LONGEST_NAME = 79, PROFILE_HEADER = 128, SHORTEST_PROFILE = 132, STEP = 16 * 1024 };
/* Deflate makes no more bytes of one (258 of two bits). */
enum { MOST_SHRUNK = 1032 };

static size_t number(const uint8_t *bytes)
{
    return (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | (size_t)bytes[3];
}

static int is_whole(const uint8_t *chunk, size_t size, codec_stop *stop)
{
    uLong sum = crc32(0, NULL, 0);
    size_t end = size - CHECKSUM;
    for (size_t at = 4; at < end; at += STEP) {
        if (codec_stop_is_due(stop, SIZE_MAX))
            return 0;
        sum = crc32(sum, chunk + at, (uInt)(end - at < STEP ? end - at : STEP));
    }
    return sum == number(chunk + end);
}

/* Until so many bytes have come out. CODEC_ENDED: fewer do. */
static codec_status inflate_to(z_stream *stream, size_t *left, uint8_t *to, size_t count, codec_stop *stop)
{
    stream->next_out = to;
    stream->avail_out = (uInt)count;
    while (stream->avail_out > 0) {
        if (codec_stop_is_due(stop, SIZE_MAX))
            return CODEC_LATE;
        if (stream->avail_in == 0) {
            stream->avail_in = (uInt)(*left < STEP ? *left : STEP);
            *left -= stream->avail_in;
        }
        uInt rest = stream->avail_out;
        stream->avail_out = rest < STEP * 16 ? rest : STEP * 16;
        uInt room = stream->avail_out;
        int code = inflate(stream, Z_NO_FLUSH);
        stream->avail_out += rest - room;
        if (code == Z_MEM_ERROR)
            return CODEC_FAILED;
        /* It may have more to give than it was shown room for, with nothing left to be read. */
        int has_all = code == Z_BUF_ERROR && stream->avail_in == 0 && *left == 0;
        if (stream->avail_out > 0 && (has_all || (code != Z_OK && code != Z_BUF_ERROR)))
            return CODEC_ENDED;
    }
    return CODEC_DONE;
}

static codec_status unpack(
    z_stream *stream, size_t size, size_t room, codec_stop *stop, uint8_t **profile, size_t *length)
{
    size_t left = size;
    uint8_t header[PROFILE_HEADER];
    codec_status status = inflate_to(stream, &left, header, sizeof header, stop);
    if (status != CODEC_DONE)
        return status;
    *length = number(header);
    if (*length < SHORTEST_PROFILE)
        return CODEC_ENDED;
    if (*length > room)
        return CODEC_SUSPENDED;
    /* The length that it says may never come, or cannot. In one piece all the same: what grows is there twice at times. */
    if (*length / MOST_SHRUNK > size)
        return CODEC_ENDED;
    uint8_t *bytes = malloc(*length);
    if (!bytes)
        return CODEC_FAILED;
    memcpy(bytes, header, sizeof header);
    status = inflate_to(stream, &left, bytes + sizeof header, *length - sizeof header, stop);
    if (status == CODEC_DONE)
        *profile = bytes;
    else
        free(bytes);
    return status;
}

codec_status codec_png_unpack_profile(
    const uint8_t *chunk, size_t size, size_t room, codec_stop *stop, uint8_t **profile, size_t *length)
{
    *profile = NULL;
    *length = 0;
    if (size < CHUNK_HEAD + CHECKSUM)
        return CODEC_ENDED;
    const uint8_t *data = chunk + CHUNK_HEAD;
    size_t count = size - CHUNK_HEAD - CHECKSUM;
    const uint8_t *end = memchr(data, 0, count < LONGEST_NAME + 1 ? count : LONGEST_NAME + 1);
    size_t before = end ? (size_t)(end - data) + 2 : 0;
    /* A name, and the one kind of compression that there is. */
    if (before < 3 || before > count || data[before - 1] != 0)
        return CODEC_ENDED;
    if (!is_whole(chunk, size, stop))
        return codec_stop_is_due(stop, 0) ? CODEC_LATE : CODEC_ENDED;
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)(data + before)};
    if (inflateInit(&stream) != Z_OK)
        return CODEC_FAILED;
    codec_status status = unpack(&stream, count - before, room, stop, profile, length);
    inflateEnd(&stream);
    return status;
}
