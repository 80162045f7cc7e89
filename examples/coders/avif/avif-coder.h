/* AVIF for imgdl, through libavif: an example of a codec that the library does not have. Link it or load it when it is
 * asked for; after avif_coder_register every download and imgdl_decode of the process takes AVIF, too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AVIF_CODER_H
#define AVIF_CODER_H

#include <imgdl.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Registers the codec. Gives: *coder, one reference, to be given back with imgdl_coder_release. Returns: as
 *  imgdl_coder_register. */
imgdl_status avif_coder_register(imgdl_coder **coder);

#ifdef __cplusplus
}
#endif

#endif
