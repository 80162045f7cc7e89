/* Small files that mean much work. */
#include "pictures.h"

#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

static void segment(struct picture_bytes *file, uint8_t marker, const uint8_t *content, size_t size)
{
    uint8_t head[4] = {0xFF, marker, (uint8_t)((size + 2) >> 8), (uint8_t)(size + 2)};
    picture_append(file, head, sizeof head);
    picture_append(file, content, size);
}

/* A code of one bit for one symbol. */
static void code(struct picture_bytes *file, uint8_t table, uint8_t symbol)
{
    uint8_t content[18] = {table, 1};
    content[17] = symbol;
    segment(file, 0xC4, content, sizeof content);
}

static void scan(struct picture_bytes *file, uint8_t first, uint8_t last, size_t zeros)
{
    uint8_t header[6] = {1, 1, 0x00, first, last, 0}, *data = calloc(1, zeros);
    if (!data)
        abort();
    segment(file, 0xDA, header, sizeof header);
    picture_append(file, data, zeros);
    free(data);
}

uint8_t *picture_many_scans(int32_t side, int32_t scans, size_t *size)
{
    struct picture_bytes file = {0};
    size_t across = ((size_t)side + 7) / 8, blocks = across * across, runs = (blocks + (1 << 14) - 1) >> 14;
    uint8_t table[65] = {0}, frame[9] = {8, 0, 0, 0, 0, 1, 1, 0x11, 0};
    for (int i = 1; i < 65; i++)
        table[i] = 1;
    frame[1] = frame[3] = (uint8_t)(side >> 8);
    frame[2] = frame[4] = (uint8_t)side;
    picture_append(&file, "\xFF\xD8", 2);
    segment(&file, 0xDB, table, sizeof table);
    segment(&file, 0xC2, frame, sizeof frame);
    code(&file, 0x00, 0);    /* no difference to the last mean */
    code(&file, 0x10, 0xE0); /* as many blocks without coefficients as 14 more bits say, and 2^14 */
    scan(&file, 0, 0, (blocks + 7) / 8);
    for (int32_t i = 1; i < scans; i++)
        scan(&file, 1, 63, (15 * runs + 7) / 8);
    picture_append(&file, "\xFF\xD9", 2);
    *size = file.size;
    return file.bytes;
}

/* Of so many pixels is what statistics are trained by. */
enum { TRAINING_WIDTH = 128, TRAINING_HEIGHT = 64, TRAINING_VALUE = 1023, WIDEST = 65500 };

static void train(j_compress_ptr jpeg)
{
    JDIMENSION across = TRAINING_WIDTH / DCTSIZE, down = TRAINING_HEIGHT / DCTSIZE;
    jvirt_barray_ptr blocks = jpeg->mem->request_virt_barray((j_common_ptr)jpeg, JPOOL_IMAGE, TRUE, across, down, 4);
    jpeg_write_coefficients(jpeg, &blocks);
    for (JDIMENSION y = 0; y < down; y++) {
        JBLOCKROW row = *jpeg->mem->access_virt_barray((j_common_ptr)jpeg, blocks, y, 1, TRUE);
        for (JDIMENSION x = 0; x < across; x++)
            for (int k = 1; k < DCTSIZE2; k++)
                row[x][k] = TRAINING_VALUE;
    }
    jpeg_finish_compress(jpeg);
}

/* In the frame's header, which libjpeg would not have so large for so little. */
static void enlarge(uint8_t *file, size_t size, int32_t height)
{
    uint8_t numbers[4] = {(uint8_t)(height >> 8), (uint8_t)height, WIDEST >> 8, WIDEST & 255};
    for (size_t at = 2; at + 9 <= size; at += 2 + ((size_t)file[at + 2] << 8 | file[at + 3])) {
        if (file[at + 1] != 0xC9 && file[at + 1] != 0xCA)
            continue;
        for (size_t i = 0; i < sizeof numbers; i++)
            file[at + 5 + i] = numbers[i];
        return;
    }
    abort();
}

uint8_t *picture_made_up_blocks(int32_t height, int32_t is_progressive, size_t *size)
{
    static const jpeg_scan_info scans[2] = {
        {.comps_in_scan = 1, .Ss = 0, .Se = 0}, {.comps_in_scan = 1, .Ss = 1, .Se = DCTSIZE2 - 1}};
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *memory = NULL;
    unsigned long length = 0;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &memory, &length);
    jpeg.image_width = TRAINING_WIDTH;
    jpeg.image_height = TRAINING_HEIGHT;
    jpeg.input_components = 1;
    jpeg.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    jpeg.arith_code = TRUE;
    jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 4;
    if (is_progressive) {
        jpeg.scan_info = scans;
        jpeg.num_scans = 2;
    }
    train(&jpeg);
    jpeg_destroy_compress(&jpeg);
    enlarge(memory, length, height);
    struct picture_bytes file = {0};
    picture_append(&file, memory, length);
    free(memory);
    *size = file.size;
    return file.bytes;
}
