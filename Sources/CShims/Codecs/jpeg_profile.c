/* The ICC profile of a JPEG: in APP2 segments, numbered from 1, in whatever order (ICC.1:2010 annex B.4). libjpeg could
 * save them, but every other APP2 too, and without a limit. */
#include "jpeg_session.h"

#include <stdlib.h>
#include <string.h>

static const char profile_name[12] = "ICC_PROFILE";

enum { HEAD = 14, NUMBER_AT = 12, COUNT_AT = 13 };

static void begin_chunk(struct codec_jpeg_profile *profile)
{
    size_t number = profile->head[NUMBER_AT], count = profile->head[COUNT_AT];
    profile->number = 0;
    if (profile->is_broken || profile->is_too_long)
        return;
    if (number == 0 || number > count || (profile->count && profile->count != count) || profile->sizes[number] ||
        profile->remaining == 0) {
        profile->is_broken = 1;
        return;
    }
    profile->count = (unsigned)count;
    if (profile->remaining > profile->most - profile->held) {
        profile->is_too_long = 1;
        return;
    }
    /* No memory: as if it were broken; whoever wants the pixels will say so. */
    if (!(profile->chunks[number] = malloc(profile->remaining))) {
        profile->is_broken = 1;
        return;
    }
    profile->held += profile->remaining;
    profile->sizes[number] = (uint32_t)profile->remaining;
    profile->number = number;
}

/* The next bytes of the segment. */
static void take(struct codec_jpeg_profile *profile, const uint8_t *bytes, size_t count)
{
    while (count > 0) {
        if (profile->have < HEAD) {
            profile->head[profile->have++] = *bytes++;
            profile->remaining--;
            count--;
            if (profile->have == HEAD && !memcmp(profile->head, profile_name, sizeof profile_name))
                begin_chunk(profile);
            continue;
        }
        if (profile->number) {
            size_t at = profile->sizes[profile->number] - profile->remaining;
            memcpy(profile->chunks[profile->number] + at, bytes, count);
        }
        profile->remaining -= count;
        return;
    }
}

/* As libjpeg asks of a marker processor: FALSE to be called again when there are more bytes. */
static boolean read_segment(j_decompress_ptr jpeg)
{
    struct codec_jpeg *session = jpeg->client_data;
    struct codec_jpeg_profile *profile = &session->profile;
    struct jpeg_source_mgr *source = jpeg->src;
    for (;;) {
        if (!profile->is_open) {
            while (source->bytes_in_buffer < 2)
                if (source->bytes_in_buffer > 0 || !source->fill_input_buffer(jpeg))
                    return FALSE;
            size_t length = (size_t)source->next_input_byte[0] << 8 | source->next_input_byte[1];
            source->next_input_byte += 2;
            source->bytes_in_buffer -= 2;
            profile->is_open = 1;
            profile->have = profile->number = 0;
            profile->remaining = length > 2 ? length - 2 : 0;
        }
        size_t here = source->bytes_in_buffer < profile->remaining ? source->bytes_in_buffer : profile->remaining;
        take(profile, source->next_input_byte, here);
        source->next_input_byte += here;
        source->bytes_in_buffer -= here;
        if (profile->remaining == 0) {
            profile->is_open = 0;
            return TRUE;
        }
        if (!source->fill_input_buffer(jpeg))
            return FALSE;
    }
}

void codec_jpeg_read_profile(codec_jpeg *session, size_t most)
{
    session->profile.most = most;
    if (setjmp(session->trap))
        return;
    jpeg_set_marker_processor(&session->jpeg, JPEG_APP0 + 2, read_segment);
}

codec_profile_state codec_jpeg_profile(codec_jpeg *session, const uint8_t **bytes, size_t *size)
{
    struct codec_jpeg_profile *profile = &session->profile;
    *bytes = NULL;
    *size = 0;
    if (profile->is_too_long)
        return CODEC_PROFILE_TOO_LONG;
    if (profile->count == 0)
        return profile->is_broken ? CODEC_PROFILE_BROKEN : CODEC_PROFILE_NONE;
    for (unsigned i = 1; i <= profile->count; i++)
        if (!profile->sizes[i])
            profile->is_broken = 1;
    if (!profile->whole && !profile->is_broken && !(profile->whole = malloc(profile->held)))
        profile->is_broken = 1;
    if (profile->is_broken)
        return CODEC_PROFILE_BROKEN;
    for (unsigned i = 1; i <= profile->count; i++) {
        memcpy(profile->whole + *size, profile->chunks[i], profile->sizes[i]);
        *size += profile->sizes[i];
    }
    *bytes = profile->whole;
    return CODEC_PROFILE_WHOLE;
}

void codec_jpeg_forget_profile(codec_jpeg *session)
{
    struct codec_jpeg_profile *profile = &session->profile;
    for (size_t i = 0; i < sizeof profile->chunks / sizeof *profile->chunks; i++) {
        free(profile->chunks[i]);
        profile->chunks[i] = NULL;
    }
    free(profile->whole);
    profile->whole = NULL;
    profile->count = 0;
}

/* What the header of the file was made of when it was read. */
codec_samples codec_jpeg_samples(const codec_jpeg *session)
{
    switch (session->jpeg.jpeg_color_space) {
    case JCS_GRAYSCALE: return CODEC_SAMPLES_GRAY;
    case JCS_CMYK:
    case JCS_YCCK: return CODEC_SAMPLES_INKS;
    default: return CODEC_SAMPLES_COLOURS;
    }
}

void codec_jpeg_convert_inks_by(codec_jpeg *session, const codec_colour *colour) { session->inks = colour; }
