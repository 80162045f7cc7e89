/* Damage: bytes changed, pieces lost, doubled and made up, an end cut off or followed by something; and of a PNG chunks lost
 * and doubled, with checksums that are right again, since what only breaks those goes no further than the first chunk. */
#include "pieces.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 700, LONGEST_PIECE = 40, LONGEST_TRAILER = 300 };

static void make_room(struct bytes *file, size_t at, size_t length)
{
    uint8_t *grown = realloc(file->start, file->size + length);
    if (!grown)
        abort();
    memmove(grown + at + length, grown + at, file->size - at);
    *file = (struct bytes){grown, file->size + length};
}

static void take_out(struct bytes *file, size_t at, size_t length)
{
    memmove(file->start + at, file->start + at + length, file->size - at - length);
    file->size -= length;
}

/* Half of them in the header. */
static size_t place(const struct bytes *file)
{
    size_t reach = chance(2) && file->size > HEADER ? HEADER : file->size;
    return chance((uint32_t)reach);
}

static size_t length_from(const struct bytes *file, size_t at)
{
    size_t length = 1 + chance(LONGEST_PIECE);
    return length < file->size - at ? length : file->size - at;
}

static void change_bytes(struct bytes *file)
{
    for (uint32_t left = 1 + chance(4); left > 0; left--) {
        uint8_t *byte = &file->start[place(file)];
        switch (chance(4)) {
        case 0: *byte = 0xFF; break;
        case 1: *byte ^= (uint8_t)(1u << chance(8)); break;
        default: *byte = (uint8_t)chance(256);
        }
    }
}

static void double_piece(struct bytes *file, size_t at, size_t length)
{
    make_room(file, at, length);
    memcpy(file->start + at, file->start + at + length, length);
}

static void add_trailer(struct bytes *file)
{
    size_t old = file->size, length = 1 + chance(LONGEST_TRAILER);
    int is_zero = chance(2) == 0;
    make_room(file, old, length);
    for (size_t i = 0; i < length; i++)
        file->start[old + i] = is_zero ? 0 : (uint8_t)chance(256);
}

/* ---- PNG */

enum { SIGNATURE = 8, AROUND_CHUNK = 12 };

static uint32_t number_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t sum = UINT32_MAX;
    while (size-- > 0) {
        sum ^= *bytes++;
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? sum >> 1 ^ 0xEDB88320u : sum >> 1;
    }
    return ~sum;
}

/* Of the chunk at `at`, with what is around it; 0 where there is no whole one. */
static size_t chunk_length(const struct bytes *file, size_t at)
{
    if (at + AROUND_CHUNK > file->size)
        return 0;
    size_t length = number_at(file->start + at);
    return length > file->size - at - AROUND_CHUNK ? 0 : length + AROUND_CHUNK;
}

static void mend_checksums(struct bytes *file)
{
    for (size_t at = SIGNATURE, length; (length = chunk_length(file, at)) > 0; at += length) {
        uint32_t sum = checksum(file->start + at + 4, length - 8);
        uint8_t *stored = file->start + at + length - 4;
        for (int i = 0; i < 4; i++)
            stored[i] = (uint8_t)(sum >> (24 - 8 * i));
    }
}

static void move_chunk(struct bytes *file)
{
    uint32_t count = 0;
    for (size_t at = SIGNATURE, length; (length = chunk_length(file, at)) > 0; at += length)
        count++;
    if (count == 0)
        return;
    size_t at = SIGNATURE;
    for (uint32_t left = chance(count); left > 0; left--)
        at += chunk_length(file, at);
    if (chance(3) > 0)
        take_out(file, at, chunk_length(file, at));
    else
        double_piece(file, at, chunk_length(file, at));
}

static int is_png(const struct bytes *file)
{
    return file->size > SIGNATURE && memcmp(file->start, "\x89PNG\r\n\x1A\n", SIGNATURE) == 0;
}

/* ---- Any */

struct bytes damaged(struct bytes source)
{
    struct bytes file = {malloc(source.size + 1), source.size};
    if (!file.start)
        abort();
    memcpy(file.start, source.start, source.size);
    int was_png = is_png(&file);
    for (uint32_t left = 1 + chance(2); left > 0 && file.size > 1; left--) {
        size_t at = place(&file);
        switch (chance(was_png ? 8 : 7)) {
        case 0: take_out(&file, at, length_from(&file, at)); break;
        case 1: double_piece(&file, at, length_from(&file, at)); break;
        case 2: file.size -= chance(chance(2) ? 16 : (uint32_t)file.size) % file.size; break;
        case 3: add_trailer(&file); break;
        case 7: move_chunk(&file); break;
        default: change_bytes(&file);
        }
    }
    if (was_png && chance(4) > 0)
        mend_checksums(&file);
    return file;
}
