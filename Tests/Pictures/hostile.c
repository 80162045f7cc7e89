/* Small files that mean much work. */
#include "pictures.h"

#include <stdlib.h>

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
