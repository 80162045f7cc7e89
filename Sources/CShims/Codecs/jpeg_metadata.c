/* What is kept of a JPEG's metadata: the first EXIF segment, and the ICC profile: in APP2 segments, numbered from 1, in
 * whatever order (ICC.1:2010 annex B.4). All else is passed over as it comes. */
#include "jpeg_session.h"

#include <stdlib.h>
#include <string.h>

static const char profile_name[12] = "ICC_PROFILE", exif_name[6] = "Exif\0";

enum { HEAD = 14, NUMBER_AT = 12, COUNT_AT = 13 };

/* Each looks at a segment's head and returns where the rest of it is to go. */
typedef uint8_t *begin_segment(codec_jpeg *session);

static uint8_t *begin_profile(codec_jpeg *session)
{
    struct codec_jpeg_profile *profile = &session->profile;
    const struct codec_jpeg_segment *segment = &session->segment;
    size_t number = segment->head[NUMBER_AT], count = segment->head[COUNT_AT];
    if (memcmp(segment->head, profile_name, sizeof profile_name) || profile->is_broken || profile->is_too_long)
        return NULL;
    if (number == 0 || number > count || (profile->count && profile->count != count) || profile->sizes[number] ||
        segment->remaining == 0) {
        profile->is_broken = 1;
        return NULL;
    }
    profile->count = (unsigned)count;
    if (segment->remaining > profile->most - profile->held) {
        profile->is_too_long = 1;
        return NULL;
    }
    /* No memory: as if it were broken; whoever wants the pixels will say so. */
    if (!(profile->chunks[number] = malloc(segment->remaining))) {
        profile->is_broken = 1;
        return NULL;
    }
    profile->held += segment->remaining;
    profile->sizes[number] = (uint32_t)segment->remaining;
    return profile->chunks[number];
}

static uint8_t *begin_exif(codec_jpeg *session)
{
    const struct codec_jpeg_segment *segment = &session->segment;
    if (memcmp(segment->head, exif_name, sizeof exif_name) || session->exif || segment->remaining == 0)
        return NULL;
    session->exif = calloc(1, segment->remaining);
    session->exif_size = session->exif ? segment->remaining : 0;
    return session->exif;
}

/* The next bytes of the segment. */
static void take(codec_jpeg *session, const uint8_t *bytes, size_t count, size_t head, begin_segment *begin)
{
    struct codec_jpeg_segment *segment = &session->segment;
    while (count > 0 && segment->have < head) {
        segment->head[segment->have++] = *bytes++;
        segment->remaining--;
        count--;
        if (segment->have == head)
            segment->content = begin(session);
    }
    if (segment->content && count > 0) {
        memcpy(segment->content, bytes, count);
        segment->content += count;
    }
    segment->remaining -= count;
}

/* As libjpeg asks of a marker processor: FALSE to be called again when there are more bytes. */
static boolean read_segment(j_decompress_ptr jpeg, size_t head, begin_segment *begin)
{
    codec_jpeg *session = jpeg->client_data;
    struct codec_jpeg_segment *segment = &session->segment;
    struct jpeg_source_mgr *source = jpeg->src;
    for (;;) {
        if (!segment->is_open) {
            while (source->bytes_in_buffer < 2)
                if ((source->bytes_in_buffer > 0 && session->behind == 0) || !source->fill_input_buffer(jpeg))
                    return FALSE;
            size_t length = (size_t)source->next_input_byte[0] << 8 | source->next_input_byte[1];
            source->next_input_byte += 2;
            source->bytes_in_buffer -= 2;
            *segment = (struct codec_jpeg_segment){.is_open = 1, .remaining = length > 2 ? length - 2 : 0};
        }
        size_t here = source->bytes_in_buffer < segment->remaining ? source->bytes_in_buffer : segment->remaining;
        take(session, source->next_input_byte, here, head, begin);
        source->next_input_byte += here;
        source->bytes_in_buffer -= here;
        if (segment->remaining == 0) {
            segment->is_open = 0;
            return TRUE;
        }
        if (!source->fill_input_buffer(jpeg))
            return FALSE;
    }
}

static boolean read_profile(j_decompress_ptr jpeg) { return read_segment(jpeg, HEAD, begin_profile); }
static boolean read_exif(j_decompress_ptr jpeg) { return read_segment(jpeg, sizeof exif_name, begin_exif); }

void codec_jpeg_read_exif(codec_jpeg *session)
{
    jpeg_set_marker_processor(&session->jpeg, JPEG_APP0 + 1, read_exif);
}

const uint8_t *codec_jpeg_exif(const codec_jpeg *session, size_t *size)
{
    *size = session->exif_size;
    return session->exif;
}

void codec_jpeg_read_profile(codec_jpeg *session, size_t most)
{
    session->profile.most = most;
    if (setjmp(session->trap))
        return;
    jpeg_set_marker_processor(&session->jpeg, JPEG_APP0 + 2, read_profile);
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
    for (unsigned i = 1; i <= profile->count; i++) {
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

int codec_jpeg_is_inverted(const codec_jpeg *session) { return session->jpeg.saw_Adobe_marker; }

void codec_jpeg_convert_inks_by(codec_jpeg *session, const codec_colour *colour) { session->inks = colour; }
