/* From a picture's ICC profile to sRGB through lcms2, a row at a time. A profile comes from the network: what lcms2 cannot
 * read, or what is not about pixels of this kind, gives no conversion. */
#include "ccodecs.h"

#include <lcms2.h>
#include <stdlib.h>

/* Four bytes a pixel of which the first is gray, the last alpha. */
#define GRAY_OF_FOUR (COLORSPACE_SH(PT_GRAY) | CHANNELS_SH(1) | EXTRA_SH(3) | BYTES_SH(1))
#define GRAY_OF_FOUR_16 (COLORSPACE_SH(PT_GRAY) | CHANNELS_SH(1) | EXTRA_SH(3) | BYTES_SH(2))

struct codec_colour {
    cmsContext context;
    cmsHPROFILE profile, srgb;
    cmsHTRANSFORM bytes, words;
    codec_samples samples;
    int inverted, bgra;
};

static void say_nothing(cmsContext context, cmsUInt32Number code, const char *text)
{
    (void)context;
    (void)code;
    (void)text;
}

static cmsColorSpaceSignature space_of(codec_samples samples)
{
    switch (samples) {
    case CODEC_SAMPLES_GRAY: return cmsSigGrayData;
    case CODEC_SAMPLES_INKS: return cmsSigCmykData;
    default: return cmsSigRgbData;
    }
}

static int is_usable(const struct codec_colour *colour, codec_samples samples)
{
    cmsColorSpaceSignature space = cmsGetColorSpace(colour->profile);
    switch (cmsGetDeviceClass(colour->profile)) {
    case cmsSigInputClass:
    case cmsSigDisplayClass:
    case cmsSigOutputClass:
    case cmsSigColorSpaceClass: break;
    default: return 0;
    }
    /* Gray pixels are RGB pixels, too. */
    return space == space_of(samples) || (samples == CODEC_SAMPLES_GRAY && space == cmsSigRgbData);
}

static cmsHTRANSFORM make(const struct codec_colour *colour, cmsUInt32Number from, cmsUInt32Number to)
{
    return cmsCreateTransformTHR(
        colour->context, colour->profile, from, colour->srgb, to, INTENT_PERCEPTUAL, cmsFLAGS_NOCACHE);
}

/* lcms2 samples what a profile says, at 83,521 places for inks: each transform may take 50 ms, and has no end in between. */
static int make_transforms(struct codec_colour *colour, codec_stop *stop)
{
    cmsUInt32Number bytes = colour->bgra ? TYPE_BGRA_8 : TYPE_RGBA_8;
    switch (colour->samples) {
    case CODEC_SAMPLES_INKS:
        colour->bytes = make(colour, colour->inverted ? TYPE_CMYK_8_REV : TYPE_CMYK_8, bytes);
        return colour->bytes && !codec_stop_is_due(stop, SIZE_MAX);
    case CODEC_SAMPLES_GRAY:
        colour->bytes = make(colour, GRAY_OF_FOUR, bytes);
        if (!codec_stop_is_due(stop, SIZE_MAX))
            colour->words = make(colour, GRAY_OF_FOUR_16, TYPE_RGBA_16);
        break;
    default:
        colour->bytes = make(colour, bytes, bytes);
        if (!codec_stop_is_due(stop, SIZE_MAX))
            colour->words = make(colour, TYPE_RGBA_16, TYPE_RGBA_16);
    }
    return colour->bytes && colour->words;
}

codec_colour *codec_colour_create(
    const void *profile, size_t length, codec_samples samples, int inverted, int bgra, codec_stop *stop)
{
    struct codec_colour *colour = calloc(1, sizeof *colour);
    if (!colour)
        return NULL;
    colour->bgra = bgra;
    colour->inverted = inverted;
    colour->samples = samples;
    colour->context = cmsCreateContext(NULL, NULL);
    if (colour->context && length <= UINT32_MAX) {
        cmsSetLogErrorHandlerTHR(colour->context, say_nothing);
        colour->profile = cmsOpenProfileFromMemTHR(colour->context, profile, (cmsUInt32Number)length);
        colour->srgb = cmsCreate_sRGBProfileTHR(colour->context);
    }
    if (!colour->profile || !colour->srgb || !is_usable(colour, samples)) {
        codec_colour_destroy(colour);
        return NULL;
    }
    if (cmsGetColorSpace(colour->profile) == cmsSigRgbData)
        colour->samples = CODEC_SAMPLES_COLOURS;
    if (!make_transforms(colour, stop)) {
        codec_colour_destroy(colour);
        return NULL;
    }
    return colour;
}

void codec_colour_destroy(codec_colour *colour)
{
    if (!colour)
        return;
    if (colour->bytes)
        cmsDeleteTransform(colour->bytes);
    if (colour->words)
        cmsDeleteTransform(colour->words);
    if (colour->profile)
        cmsCloseProfile(colour->profile);
    if (colour->srgb)
        cmsCloseProfile(colour->srgb);
    if (colour->context)
        cmsDeleteContext(colour->context);
    free(colour);
}

void codec_colour_bytes(const codec_colour *colour, const uint8_t *from, uint8_t *to, size_t count)
{
    cmsDoTransform(colour->bytes, from, to, (cmsUInt32Number)count);
    for (size_t i = 0; i < count; i++)
        to[4 * i + 3] = from[4 * i + 3];
}

void codec_colour_words(const codec_colour *colour, const uint16_t *from, uint16_t *to, size_t count)
{
    cmsDoTransform(colour->words, from, to, (cmsUInt32Number)count);
    for (size_t i = 0; i < count; i++)
        to[4 * i + 3] = from[4 * i + 3];
}

void codec_colour_inks(const codec_colour *colour, uint8_t *pixels, size_t count)
{
    cmsDoTransform(colour->bytes, pixels, pixels, (cmsUInt32Number)count);
    for (size_t i = 0; i < count; i++)
        pixels[4 * i + 3] = 255;
}
