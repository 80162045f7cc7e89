/* Whether differences are seen. */
#include "pieces.h"

#include <stddef.h>
#include <string.h>

/* One pixel of a GIF, through which something is seen. */
static const uint8_t picture[] = {
    'G', 'I', 'F', '8', '9', 'a', 1, 0, 1, 0, 0x80, 0, 0, 255, 255, 255, 0, 0, 0, 0x21, 0xF9, 4, 1, 0,
    0,   0,   0,   0x2C, 0,  0,  0, 0, 1, 0, 1,    0, 0, 2,   2,   0x44, 1, 0, 0x3B,
};
enum { FLAGS = 22 };

static const char *blindness_of_decoding(void)
{
    const struct cut single = {"single bytes", 1, 1, 0};
    char words[MESSAGE];
    uint8_t copy[sizeof picture];
    memcpy(copy, picture, sizeof copy);
    const struct outcome whole = decode((struct bytes){copy, sizeof copy}, NULL, single, words);
    if (whole.status != IMGDL_OK || whole.notes != 0 || whole.alpha != 1 || *words)
        return "what a GIF is";
    const struct outcome endless = decode((struct bytes){copy, sizeof copy - 1}, NULL, single, words);
    if (endless.status != IMGDL_OK || !difference(&whole, &endless))
        return "that a GIF's trailer is missing";
    copy[FLAGS] = 0;
    if (decode((struct bytes){copy, sizeof copy}, NULL, single, words).alpha != 0)
        return "that nothing is seen through a GIF";
    return NULL;
}

/* Each member of an outcome, changed alone. */
#define CHANGE(member)                                                                                                 \
    do {                                                                                                               \
        struct outcome other = one;                                                                                    \
        ((uint8_t *)&other.member)[0] ^= 1;                                                                            \
        if (!difference(&one, &other) || !difference(&other, &one))                                                    \
            return #member;                                                                                            \
    } while (0)

const char *blindness(void)
{
    const struct outcome one = {.status = IMGDL_ERROR_TRUNCATED, .message = "a", .has_image = 1, .frame_count = 2, .decoded = 2};
    if (difference(&one, &one))
        return "none";
    CHANGE(status);
    CHANGE(message);
    CHANGE(has_image);
    CHANGE(is_complete);
    CHANGE(width);
    CHANGE(height);
    CHANGE(orientation);
    CHANGE(frame_count);
    CHANGE(loop_count);
    CHANGE(pass);
    CHANGE(notes);
    CHANGE(colour_notes);
    CHANGE(alpha);
    CHANGE(ready.x);
    CHANGE(ready.y);
    CHANGE(ready.width);
    CHANGE(ready.height);
    CHANGE(decoded);
    CHANGE(pixels[0]);
    CHANGE(pixels[1]);
    CHANGE(milliseconds[1]);
    return blindness_of_decoding();
}
