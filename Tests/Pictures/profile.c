/* ICC profiles, made with lcms2, and what they make of pixels. */
#include "test_pictures.h"

#include <lcms2.h>
#include <stdlib.h>
#include <string.h>

static cmsHPROFILE make_rgb(void)
{
    const cmsCIExyY white = {0.3127, 0.3290, 1};
    const cmsCIExyYTRIPLE primaries = {{0.64, 0.33, 1}, {0.21, 0.71, 1}, {0.15, 0.06, 1}};
    cmsToneCurve *curve = cmsBuildGamma(NULL, 2.2);
    cmsToneCurve *curves[3] = {curve, curve, curve};
    cmsHPROFILE profile = cmsCreateRGBProfile(&white, &primaries, curves);
    cmsFreeToneCurve(curve);
    return profile;
}

/* lcms2 takes none with more points. */
enum { MOST_POINTS = 32767 };

static cmsToneCurve *make_curve(uint32_t points)
{
    static cmsUInt16Number table[MOST_POINTS];
    for (uint32_t i = 0; i < points; i++)
        table[i] = (cmsUInt16Number)((uint64_t)i * i * 65535 / ((uint64_t)(points - 1) * (points - 1)));
    return cmsBuildTabulatedToneCurve16(NULL, points, table);
}

/* Three curves as long as lcms2 reads. */
static cmsHPROFILE make_curves(void)
{
    const cmsCIExyY white = {0.3127, 0.3290, 1};
    const cmsCIExyYTRIPLE primaries = {{0.64, 0.33, 1}, {0.21, 0.71, 1}, {0.15, 0.06, 1}};
    cmsToneCurve *curves[3];
    for (int c = 0; c < 3; c++)
        curves[c] = make_curve(MOST_POINTS);
    cmsHPROFILE profile = cmsCreateRGBProfile(&white, &primaries, curves);
    cmsFreeToneCurveTriple(curves);
    return profile;
}

static cmsHPROFILE make_gray(void)
{
    cmsToneCurve *curve = cmsBuildGamma(NULL, 1.4);
    cmsHPROFILE profile = cmsCreateGrayProfile(cmsD50_xyY(), curve);
    cmsFreeToneCurve(curve);
    return profile;
}

static cmsInt32Number mix_inks(const cmsUInt16Number in[], cmsUInt16Number out[], void *to_lab)
{
    cmsUInt16Number rgb[3];
    for (int c = 0; c < 3; c++)
        rgb[c] = (cmsUInt16Number)((65535u - in[c]) * (65535.0 - in[3]) / 65535.0);
    cmsDoTransform(to_lab, rgb, out, 1);
    return 1;
}

/* `points`: of the grid, for each ink. `curve`: on both sides of it, or NULL; it is freed. */
static cmsHPROFILE make_inks(uint32_t points, cmsToneCurve *curve)
{
    cmsToneCurve *const four[] = {curve, curve, curve, curve};
    cmsToneCurve *const *curves = curve ? four : NULL;
    cmsHPROFILE profile = cmsCreateProfilePlaceholder(NULL), rgb = cmsCreate_sRGBProfile(), lab = cmsCreateLab4Profile(NULL);
    cmsHTRANSFORM to_lab = cmsCreateTransform(rgb, TYPE_RGB_16, lab, TYPE_Lab_16, INTENT_PERCEPTUAL, 0);
    cmsPipeline *pipeline = cmsPipelineAlloc(NULL, 4, 3);
    cmsStage *table = cmsStageAllocCLut16bit(NULL, points, 4, 3, NULL);
    cmsStageSampleCLut16bit(table, mix_inks, to_lab, 0);
    /* The tag holds a table between curves. */
    cmsPipelineInsertStage(pipeline, cmsAT_END, cmsStageAllocToneCurves(NULL, 4, (cmsToneCurve **)curves));
    cmsPipelineInsertStage(pipeline, cmsAT_END, table);
    cmsPipelineInsertStage(pipeline, cmsAT_END, cmsStageAllocToneCurves(NULL, 3, (cmsToneCurve **)curves));
    cmsSetProfileVersion(profile, 4.3);
    cmsSetDeviceClass(profile, cmsSigOutputClass);
    cmsSetColorSpace(profile, cmsSigCmykData);
    cmsSetPCS(profile, cmsSigLabData);
    cmsWriteTag(profile, cmsSigAToB0Tag, pipeline);
    cmsPipelineFree(pipeline);
    cmsFreeToneCurve(curve);
    cmsDeleteTransform(to_lab);
    cmsCloseProfile(rgb);
    cmsCloseProfile(lab);
    return profile;
}

static cmsHPROFILE make_costly(void)
{
    enum { ELEMENTS = 3000 };
    static const cmsFloat64Number nearly_one[9] = {0.99, 0.01, 0, 0, 0.99, 0.01, 0.01, 0, 0.99};
    cmsHPROFILE profile = make_rgb();
    cmsPipeline *pipeline = cmsPipelineAlloc(NULL, 3, 3);
    for (int i = 0; i < ELEMENTS; i++)
        cmsPipelineInsertStage(pipeline, cmsAT_END, cmsStageAllocMatrix(NULL, 3, 3, nearly_one, NULL));
    cmsSetProfileVersion(profile, 4.3);
    cmsWriteTag(profile, cmsSigDToB0Tag, pipeline);
    cmsPipelineFree(pipeline);
    return profile;
}

uint8_t *picture_profile(uint32_t kind, size_t *size)
{
    cmsHPROFILE profile = kind == PICTURE_PROFILE_GRAY     ? make_gray()
                          : kind == PICTURE_PROFILE_INKS   ? make_inks(7, NULL)
                          : kind == PICTURE_PROFILE_FINE   ? make_inks(17, make_curve(65536 / 7))
                          : kind == PICTURE_PROFILE_CURVES ? make_curves()
                          : kind == PICTURE_PROFILE_COSTLY ? make_costly()
                                                           : make_rgb();
    cmsUInt32Number length = 0;
    uint8_t *bytes = NULL;
    if (cmsSaveProfileToMem(profile, NULL, &length) && (bytes = malloc(length)))
        cmsSaveProfileToMem(profile, bytes, &length);
    cmsCloseProfile(profile);
    *size = length;
    return bytes;
}

/* Four samples a pixel in and out, of bytes or words; gray is the first; the last stays. */
void picture_to_srgb(
    const uint8_t *profile, size_t size, uint32_t kind, uint32_t bytes, const void *from, void *to, size_t count)
{
    cmsHPROFILE input = cmsOpenProfileFromMem(profile, (cmsUInt32Number)size), output = cmsCreate_sRGBProfile();
    cmsUInt32Number in = COLORSPACE_SH(PT_RGB) | CHANNELS_SH(3) | EXTRA_SH(1) | BYTES_SH(bytes), out = in;
    if (kind == PICTURE_PROFILE_GRAY)
        in = COLORSPACE_SH(PT_GRAY) | CHANNELS_SH(1) | EXTRA_SH(3) | BYTES_SH(bytes);
    if (kind == PICTURE_PROFILE_INKS || kind == PICTURE_PROFILE_FINE)
        in = COLORSPACE_SH(PT_CMYK) | CHANNELS_SH(4) | BYTES_SH(bytes);
    cmsHTRANSFORM transform = cmsCreateTransform(input, in, output, out, INTENT_PERCEPTUAL, 0);
    memcpy(to, from, count * 4 * bytes);
    if (transform)
        cmsDoTransform(transform, from, to, (cmsUInt32Number)count);
    cmsDeleteTransform(transform);
    cmsCloseProfile(input);
    cmsCloseProfile(output);
}
