/*
 * imgdl.h: image downloads for every language that can call C.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * This file is the contract and the manual: what is not in it is not part of the library. Read it from top to bottom;
 * each section is usable without the next.
 *
 *   1  Conventions            8  Requests
 *   2  Version                9  Hooks
 *   3  Errors                10  The downloader
 *   4  Images and bodies     11  Downloads and tokens
 *   5  Decoding              12  Batches
 *   6  Executors             13  Observing
 *   7  Events                14  Plug-ins: own codecs, own schemes
 *                            15  The HTTP cache
 *
 * The shortest program:
 *
 *     imgdl_downloader *downloader = NULL;
 *     imgdl_token *token = NULL;
 *     imgdl_request request;
 *     imgdl_result result;
 *     imgdl_status status;
 *     imgdl_request_init(&request, sizeof request);
 *     imgdl_result_init(&result, sizeof result);
 *     request.url = "https://example.org/picture.jpg";
 *     status = imgdl_downloader_shared(&downloader);
 *     if (status == IMGDL_OK)
 *         status = imgdl_download(downloader, &request, &token);
 *     if (status == IMGDL_OK)
 *         status = imgdl_token_wait(token, -1);
 *     if (status == IMGDL_OK)
 *         status = imgdl_token_result(token, &result);
 *     if (status != IMGDL_OK)
 *         puts(imgdl_last_error()); // refused: no download, or no wait for it
 *     else if (result.code != IMGDL_OK)
 *         puts(result.message);     // it failed
 *     else
 *         use(imgdl_image_pixels(result.image), imgdl_image_stride(result.image));
 *     imgdl_token_release(token);
 *     imgdl_downloader_release(downloader);
 */
#ifndef IMGDL_H
#define IMGDL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define IMGDL_API __attribute__((visibility("default")))
#else
#define IMGDL_API
#endif

/* A program that wants no warnings about statuses defines it as nothing before it includes this file. */
#ifndef IMGDL_CHECKED
#if defined(__GNUC__)
#define IMGDL_CHECKED __attribute__((warn_unused_result))
#else
#define IMGDL_CHECKED
#endif
#endif

/* ------------------------------------------------------------------------------------------------------------------
 * 1  Conventions
 *
 * Names      imgdl_noun_verb for functions, imgdl_noun for types, IMGDL_NOUN_VALUE for constants.
 *
 * Handles    imgdl_downloader, imgdl_token, imgdl_executor, imgdl_decoder, imgdl_image, imgdl_data, imgdl_hooks,
 *            imgdl_continuation, imgdl_batch, imgdl_coder, imgdl_transfer and imgdl_cache are opaque. The pointer is a
 *            ticket that is looked up, never an address: do not dereference or compare its bits. NULL, a released handle
 *            and one of another type give IMGDL_ERROR_INVALID_HANDLE (getters: 0 or NULL), never damage. A function that
 *            gives a handle gives one reference; each reference is given back with the type's _release. Handles may be
 *            released in any order, parents first too, in any thread, inside callbacks.
 *
 * Results    A function that can fail returns imgdl_status: IMGDL_OK (0) or an IMGDL_ERROR_ number. Out-parameters come
 *            last, may be NULL where the text says so, and are written only on success unless the text says otherwise.
 *            imgdl_last_error tells the details of a failed call, on the thread that made it. GCC and Clang warn where a
 *            status is not looked at (-Wunused-result), but for functions that fail for a wrong handle alone, such as
 *            cancelling, and those that end or dispatch: what was refused has given nothing, and calls nobody back.
 *
 * Structs    begin with struct_size. Let the type's _init function fill it and the defaults, then set what you need; a
 *            table of functions has none: set struct_size to its sizeof. Zero means default in every field. Fields are
 *            only ever added at the end: a program compiled against an older header works with a newer library. A
 *            struct from a newer header whose unknown part is not zero is refused with IMGDL_ERROR_UNSUPPORTED_OPTION,
 *            and so is a struct_size below that of version 1.0, one that ends inside a field, and one above 4096. Of the
 *            first and the last of these nothing else is read: no destructor is called.
 *            Padding that has a name (reserved) must be zero.
 *
 * Strings    are UTF-8, end with NUL, and are copied before the call returns. Strings that the library gives live as
 *            long as the text says; static ones forever.
 *
 * Threads    Every function may be called from any thread, also inside callbacks, but none in a signal handler; where "one
 *            at a time" is said, calls on that one handle must not overlap. No call waits for the network except those with
 *            "wait" in their name and imgdl_downloader_destroy, none for the disk except imgdl_cache_… and those that read
 *            files: imgdl_downloader_create, _shared and _reconfigure the system's certificates and the files that the
 *            config names (ca_file, crl_file, client_certificate, client_key, cookie_file), imgdl_download and
 *            imgdl_downloader_prefetch the files that a request names (ca_file, client_certificate, client_key), and its
 *            downloader's client_certificate and client_key; where there are none, they read none. Such files are regular
 *            ones of a bounded size: nobody waits at a pipe or a device. What waits for a thread answers
 *            IMGDL_ERROR_WOULD_DEADLOCK where that is the one that it is on. No lock is held while your code runs. A thread
 *            needs 64 KiB of stack for the library's part of any call. No call is a cancellation point: a thread that
 *            pthread_cancel is called for inside of one, or inside a callback that one runs, ends after the call; the
 *            library's own threads cannot be cancelled. A callback must not end its thread.
 *
 * Processes  The library sets no signal handler, blocks all signals on its own threads, never lets SIGPIPE reach you,
 *            changes no locale, directory or environment, prints nothing, and starts no thread before the first
 *            downloader or cache. Proxies and CA files follow curl's environment variables unless configured.
 *
 * Exit       exit() is fine at any time: once it has come to the library (whose handler is registered with the first
 *            downloader or cache) none of your functions is begun any more, neither callback nor destructor nor
 *            deallocate; those that run are waited for, caches and cookie files are written out, wherever exit() was
 *            called, a second at most for all of it. From then on what would begin something (a download, a batch, a
 *            session, a downloader, a cache) or wait is IMGDL_ERROR_SHUT_DOWN, on every thread and in every callback;
 *            who waits is woken with it; imgdl_downloader_destroy does not wait. A main() that then returns calls exit()
 *            a second time, and either status may win: let it pause() on SHUT_DOWN. A child forked by the thread that is
 *            in exit() is in there, too; one forked by another thread is not.
 *
 * Fork       After fork(), handles of downloaders, tokens, executors and caches made before answer IMGDL_ERROR_FORKED in
 *            the child and can be released; images and bodies stay usable; new downloaders and caches work, but for the
 *            directory of a cache that was open then. fork() may be called at any time, in callbacks, hooks and
 *            destructors too; it waits for the library's threads to be where the child finds no lock taken, for some
 *            microseconds mostly, at most until none of them has run for 1 s, or 5 s in all, and while the
 *            process's first downloader or decoder is made. Where the child's thread is one of the library's, it
 *            is the host's from then on, with the signal mask of who made the downloader; when the code in which it
 *            forked returns, the child ends as by _exit(0). None of that holds in a signal handler: fork() there may
 *            wait for ever for a lock of the very call that was interrupted, and POSIX no longer lists it as safe.
 *            _Fork() is, whatever was interrupted; its child may call exec and _exit, and nothing of this library.
 * --------------------------------------------------------------------------------------------------------------- */

typedef struct imgdl_downloader imgdl_downloader; /* queue, connections, threads: make one and keep it            */
typedef struct imgdl_token imgdl_token;           /* one accepted download of one caller                          */
typedef struct imgdl_executor imgdl_executor;     /* where callbacks run                                          */
typedef struct imgdl_decoder imgdl_decoder;       /* one picture being decoded from pieces                        */
typedef struct imgdl_image imgdl_image;           /* pixels; immutable, shared, reference-counted                 */
typedef struct imgdl_data imgdl_data;             /* a body; immutable, shared, reference-counted                 */
typedef struct imgdl_hooks imgdl_hooks;           /* functions of yours that a download asks                      */
typedef struct imgdl_continuation imgdl_continuation; /* a hook's question, until it is answered                  */
typedef struct imgdl_batch imgdl_batch;           /* many requests with one progress                              */
typedef struct imgdl_coder imgdl_coder;           /* a codec of yours                                             */
typedef struct imgdl_transfer imgdl_transfer;     /* a transfer that a scheme of yours runs                       */
typedef struct imgdl_cache imgdl_cache;           /* responses kept for the next time                             */

typedef int32_t imgdl_status; /* IMGDL_OK or IMGDL_ERROR_… */

/* ------------------------------------------------------------------------------------------------------------------
 * 2  Version
 * --------------------------------------------------------------------------------------------------------------- */

#define IMGDL_VERSION_MAJOR 1
#define IMGDL_VERSION_MINOR 1
#define IMGDL_VERSION_PATCH 0
/* One number for comparisons: major × 1 000 000 + minor × 1 000 + patch. */
#define IMGDL_VERSION_NUMBER (IMGDL_VERSION_MAJOR * 1000000 + IMGDL_VERSION_MINOR * 1000 + IMGDL_VERSION_PATCH)
#define IMGDL_VERSION_STRING "1.1.0"

/** The version of the library that is loaded, in the form of IMGDL_VERSION_NUMBER. Since 1.0. */
IMGDL_API uint32_t imgdl_version(void);

/** The same as text, such as "1.1.0"; static. Since 1.0. */
IMGDL_API const char *imgdl_version_string(void);

/* ------------------------------------------------------------------------------------------------------------------
 * 3  Errors
 *
 * The numbers are stable. 1000–1999 and 2000–2099 are those of SDWebImage, 2100 and up are ours.
 * Treat a number that you do not know like IMGDL_ERROR_INTERNAL.
 * --------------------------------------------------------------------------------------------------------------- */

enum {
    IMGDL_OK = 0,

    IMGDL_ERROR_INVALID_URL = 1000,     /* empty, malformed, or holding control characters                          */
    IMGDL_ERROR_BAD_IMAGE_DATA = 1001,  /* not a picture, a broken one, or an empty body                            */
    IMGDL_ERROR_NOT_MODIFIED = 1002,    /* the server says that the caller's copy is still good                     */
    IMGDL_ERROR_BLACKLISTED = 1003,     /* it failed for good less than failure_ttl_ms ago                          */

    IMGDL_ERROR_INVALID_OPERATION = 2000, /* the downloader could not begin it                                      */
    IMGDL_ERROR_INVALID_STATUS = 2001,    /* the HTTP status is not an accepted one; http_status tells which        */
    IMGDL_ERROR_CANCELLED = 2002,         /* by imgdl_token_cancel, cancel_all, shutdown or destroy                 */
    IMGDL_ERROR_INVALID_RESPONSE = 2003,     /* a response hook refused it                                          */
    IMGDL_ERROR_INVALID_CONTENT_TYPE = 2004, /* none of the accepted types                                          */

    /* the call */
    IMGDL_ERROR_INVALID_ARGUMENT = 2100,   /* NULL where it is not allowed, or a value out of range                 */
    IMGDL_ERROR_INVALID_HANDLE = 2101,     /* NULL, released, or of another type                                    */
    IMGDL_ERROR_UNSUPPORTED_OPTION = 2102, /* struct_size too small, or an option this version does not know        */
    IMGDL_ERROR_WOULD_DEADLOCK = 2103,     /* no wait here: this thread is the library's, or would wait for itself  */
    IMGDL_ERROR_SHUT_DOWN = 2104,          /* the downloader takes no more requests, or the process exits           */
    IMGDL_ERROR_FORKED = 2105,             /* the handle belongs to the parent process                              */
    IMGDL_ERROR_OUT_OF_MEMORY = 2106,
    IMGDL_ERROR_WAIT_TIMEOUT = 2107,       /* the time given to a wait is over; nothing else happened               */
    IMGDL_ERROR_NOT_READY = 2108,          /* not yet: there is nothing to give, or no room to take                */
    IMGDL_ERROR_INTERNAL = 2109,           /* a defect of the library: please report it                             */
    IMGDL_ERROR_INVALID_HEADER = 2110,     /* bytes that no header, method or credential has, or a field that is    */
                                           /* the library's own, such as Content-Length                             */
    IMGDL_ERROR_UNSUPPORTED_SCHEME = 2111, /* neither http nor https, nor one that was allowed or registered        */
    IMGDL_ERROR_BACKGROUND_EXPIRED = 2112, /* the time given to imgdl_downloader_enter_background is over           */

    /* the network */
    IMGDL_ERROR_RESOLVE_FAILED = 2200,     /* the host's name has no address                                        */
    IMGDL_ERROR_CONNECT_FAILED = 2201,
    IMGDL_ERROR_CONNECTION_LOST = 2202,    /* closed or reset before the answer was complete                        */
    IMGDL_ERROR_TLS_FAILED = 2203,         /* no TLS session could be made                                          */
    IMGDL_ERROR_TLS_CERTIFICATE = 2204,    /* the server's certificate is not trusted, expired, revoked (crl_file), */
                                           /* or another host's                                                     */
    IMGDL_ERROR_PROTOCOL = 2205,           /* the server's answer is not HTTP, or breaks its rules                  */
    IMGDL_ERROR_TRUNCATED = 2206,          /* the body or the picture ends too early                                */
    IMGDL_ERROR_CONNECT_TIMEOUT = 2207,
    IMGDL_ERROR_IDLE_TIMEOUT = 2208,       /* no byte of the answer for too long, or next to none while others wait */
                                           /* for memory                                                            */
    IMGDL_ERROR_TOTAL_TIMEOUT = 2209,      /* the request's own total_timeout_ms                                    */
    IMGDL_ERROR_PROXY_FAILED = 2210,
    IMGDL_ERROR_TOO_MANY_REDIRECTS = 2211, /* more than max_redirects, or a loop in which no cookie was set         */
    IMGDL_ERROR_REDIRECT_REFUSED = 2212,   /* from https to http, to another scheme, or without a usable Location   */
    IMGDL_ERROR_CONTENT_ENCODING = 2213,   /* the compressed body is broken, in a coding that is not known, or in   */
                                           /* one that takes too much work to undo                                  */
    IMGDL_ERROR_ADDRESS_REFUSED = 2214,    /* a private address, with IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES           */
    IMGDL_ERROR_TLS_PIN = 2215,            /* the server's public key is not the pinned one                         */
    IMGDL_ERROR_NOT_CACHED = 2216,         /* IMGDL_CACHE_ONLY, and nothing that is stored fits                     */

    /* limits */
    IMGDL_ERROR_BODY_LIMIT = 2300,         /* max_body_bytes, announced or received                                 */
    IMGDL_ERROR_HEADER_LIMIT = 2301,       /* response header, with interim responses and trailers, of more than    */
                                           /* 256 KiB or 1,000 fields, or a field of more than 100 KiB              */
    IMGDL_ERROR_PIXEL_LIMIT = 2302,        /* max_pixels, from the picture's header                                 */
    IMGDL_ERROR_FRAME_LIMIT = 2303,        /* max_frames                                                            */
    IMGDL_ERROR_SCAN_LIMIT = 2304,         /* max_scans                                                             */
    IMGDL_ERROR_SIZE_LIMIT = 2305,         /* max_side                                                              */
    IMGDL_ERROR_ANIMATION_LIMIT = 2306,    /* max_animation_pixels                                                  */
    IMGDL_ERROR_METADATA_LIMIT = 2307,     /* max_metadata_bytes                                                    */
    IMGDL_ERROR_MEMORY_LIMIT = 2308,       /* max_memory_bytes                                                      */
    IMGDL_ERROR_DECODE_TIMEOUT = 2309,     /* max_decode_ms                                                         */
    IMGDL_ERROR_FLOOD = 2310,              /* the server keeps the downloader busy with what is for no request; or, */
                                           /* over TLS, 192 KiB and more came that give nothing of an answer,       */
                                           /* before an idle timeout, or before the server closed the connection    */
                                           /* without having begun an answer (where one had begun, closing is       */
                                           /* CONNECTION_LOST or TRUNCATED): all requests on that connection end    */
                                           /* so, and are not tried again                                           */

    /* the cache's disk; no download ends so */
    IMGDL_ERROR_CACHE_BUSY = 2400,         /* another program has been writing to the index for five seconds, or    */
                                           /* reading it for so long that its log is full                           */
    IMGDL_ERROR_DISK_FULL = 2401,          /* no room, or no quota                                                  */
    IMGDL_ERROR_READ_ONLY = 2402,          /* the directory may be read and not written, by its rights or its disk  */
    IMGDL_ERROR_DISK_FAILED = 2403,        /* anything else that a disk says: imgdl_last_error has its words        */
    IMGDL_ERROR_UNSAFE_DIRECTORY = 2404,   /* somebody else's, or others may write to it                            */

    IMGDL_STATUS_FORCE32 = 0x7FFFFFFF
};

/** The symbolic name of a code, such as "IMGDL_ERROR_CANCELLED"; "IMGDL_ERROR_UNKNOWN" for numbers that are none.
 *  Static. Since 1.0. */
IMGDL_API const char *imgdl_error_name(imgdl_status code);

/** A sentence for a person that says what the code means in general; static. Events and results carry a better one.
 *  Since 1.0. */
IMGDL_API const char *imgdl_error_message(imgdl_status code);

/** What exactly was wrong with the last call on this thread that returned an error. Never NULL; valid until the next
 *  call of the library on this thread that fails. Since 1.0. */
IMGDL_API const char *imgdl_last_error(void);

/* ------------------------------------------------------------------------------------------------------------------
 * 4  Images and bodies
 * --------------------------------------------------------------------------------------------------------------- */

/* What a file is, by its content. */
typedef uint32_t imgdl_format;
enum {
    IMGDL_FORMAT_UNKNOWN = 0,
    IMGDL_FORMAT_JPEG = 1,
    IMGDL_FORMAT_PNG = 2,
    IMGDL_FORMAT_WEBP = 3,
    IMGDL_FORMAT_GIF = 4,
    IMGDL_FORMAT_OTHER = 100, /* decoded by a codec of yours */
    IMGDL_FORMAT_FORCE32 = 0x7FFFFFFF
};

/* How a pixel lies in memory, byte after byte. */
typedef uint32_t imgdl_pixel_format;
enum {
    IMGDL_PIXEL_FORMAT_DEFAULT = 0, /* RGBA8 */
    IMGDL_PIXEL_FORMAT_RGBA8 = 1,
    IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED = 2,
    IMGDL_PIXEL_FORMAT_BGRA8 = 3,
    IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED = 4,
    IMGDL_PIXEL_FORMAT_RGB8 = 5,   /* 3 bytes; alpha is left out, and the colours are as if it were straight. Since 1.1 */
    IMGDL_PIXEL_FORMAT_RGBA16 = 6, /* four uint16_t of this machine, alpha straight. What has 16 bits (a PNG or APNG,   */
                                   /* an image of a coder of the host's) keeps them, also scaled, turned or converted;  */
                                   /* everything else comes times 257. Since 1.1                                        */
    IMGDL_PIXEL_FORMAT_FORCE32 = 0x7FFFFFFF
};

/* A part of a picture, in pixels from its upper left corner. */
typedef struct imgdl_rectangle {
    uint32_t x, y, width, height;
} imgdl_rectangle;

/** Width in pixels, orientation applied; 0 for an invalid handle. The getters below likewise. Since 1.0. */
IMGDL_API uint32_t imgdl_image_width(const imgdl_image *image);
/** Height in pixels. Since 1.0. */
IMGDL_API uint32_t imgdl_image_height(const imgdl_image *image);
/** Bytes from one row to the next: width × those of a pixel (3 for RGB8, 8 for RGBA16, else 4); more where an allocator
 *  of yours asked for it. Since 1.0. */
IMGDL_API size_t imgdl_image_stride(const imgdl_image *image);
/** What the file is: IMGDL_FORMAT_…. Since 1.0. */
IMGDL_API imgdl_format imgdl_image_format(const imgdl_image *image);
/** How its pixels lie in memory: IMGDL_PIXEL_FORMAT_…. Since 1.0. */
IMGDL_API imgdl_pixel_format imgdl_image_pixel_format(const imgdl_image *image);
/** Rows, the first one first, stride bytes apart; what lies behind the last pixel of a row is not written. Valid until
 *  the last reference to the image is released. Since 1.0. */
IMGDL_API const void *imgdl_image_pixels(const imgdl_image *image);
/** Frames in the file. The image's own pixels are the first's. Of a partial or salvaged image those that it holds, 1 at
 *  least, whatever its file says ahead. Since 1.0. */
IMGDL_API uint32_t imgdl_image_frame_count(const imgdl_image *image);
/** One frame as the viewer sees it (blended, disposed), as an image of its own, *frame, with one reference. Frame 0 is
 *  always there; the others with IMGDL_DECODE_ALL_FRAMES. Returns: IMGDL_OK, NOT_READY (the frame was not decoded),
 *  INVALID_ARGUMENT (no such frame), INVALID_HANDLE. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_image_frame(const imgdl_image *image, uint32_t index, imgdl_image **frame);
/** How long a frame is shown, in milliseconds; files that say less than 11 mean 100. 0 for still pictures and frames that
 *  were not decoded. Since 1.1. */
IMGDL_API uint32_t imgdl_image_frame_duration_ms(const imgdl_image *image, uint32_t index);
/** How often the animation plays; 0 is for ever, 1 for still pictures. Since 1.1. */
IMGDL_API uint32_t imgdl_image_loop_count(const imgdl_image *image);
/** Pixels of the picture for each pixel of the layout: the request's scale_factor, or what its URL's file name says
 *  (photo@2x.png). 1 for images that no request made. Since 1.1. */
IMGDL_API double imgdl_image_scale_factor(const imgdl_image *image);
/** The EXIF orientation as stored in the file, 1 to 8. Since 1.0. */
IMGDL_API uint32_t imgdl_image_orientation(const imgdl_image *image);
/** 1 if the picture is whole; 0 if it is a partial or a salvaged one. Since 1.0. */
IMGDL_API int32_t imgdl_image_is_complete(const imgdl_image *image);

/* What a file has that others of its format have not, and its pixels do not show; of a frame: its file. */
typedef uint32_t imgdl_picture_notes;
enum {
    /* Every pixel and every frame is there, but what marks the end of the file is not: JPEG's EOI is missing, PNG's IEND is
     * missing or damaged, or the file ends within the checksums ahead of it, GIF's trailer is missing. (Of an APNG's frames
     * that were not asked for no more is known than that they have begun.) Only where nothing was cut on the way: of a body
     * whose length is known, of a scheme of yours, in memory. A body over HTTP/1 with neither Content-Length nor chunks that
     * ends so is TRUNCATED. docs/errors.md says what else is. Or a GIF has zeros between its blocks, wherever it came from. */
    IMGDL_IMAGE_INCOMPLETE_END = 1u << 0
};

/** IMGDL_IMAGE_…, or'ed. Since 1.1. */
IMGDL_API imgdl_picture_notes imgdl_image_notes(const imgdl_image *image);
/** Which pass over the picture this is: the scan of a progressive JPEG, the pass of an interlaced PNG or GIF; 1
 *  otherwise. Not every one is shown: those between two looks are left out, and a scan that brings one of two colour
 *  differences waits for the other. Since 1.0. */
IMGDL_API uint32_t imgdl_image_pass(const imgdl_image *image);
/** The part of a partial image that holds pixels. The rest is transparent at first and may be written while you look:
 *  a partial image of a format whose rows are final shares its memory with the later ones, so that no pixel is copied.
 *  Copy or upload this rectangle only. The whole picture for complete images. Since 1.0. */
IMGDL_API imgdl_rectangle imgdl_image_ready(const imgdl_image *image);
/** 1 if it is good enough to be shown for a while: whole, or at the scan that good_enough_scan names. Since 1.1. */
IMGDL_API int32_t imgdl_image_is_good_enough(const imgdl_image *image);

/* What the file says about its colours, and what was done about it. */
typedef uint32_t imgdl_colour_notes;
enum {
    IMGDL_COLOUR_NOTE_ICC = 1u << 0,             /* an ICC profile, whole: imgdl_image_icc_profile                       */
    IMGDL_COLOUR_NOTE_SRGB = 1u << 1,            /* a PNG says that it is sRGB                                           */
    IMGDL_COLOUR_NOTE_GAMMA = 1u << 2,           /* a PNG names its gamma                                                */
    IMGDL_COLOUR_NOTE_CHROMATICITIES = 1u << 3,  /* a PNG names its primaries                                            */
    IMGDL_COLOUR_NOTE_CONVERTED = 1u << 4,       /* the pixels are not as stored but sRGB, by the profile                */
    IMGDL_COLOUR_NOTE_UNUSABLE_PROFILE = 1u << 5, /* broken, incomplete, too long, or not for such pixels: as stored     */
    /* With UNUSABLE_PROFILE: the profile is whole, but following it might take any time, since it has multiProcessElements
     * (DToB, BToD, mpet), a grid of more than 300,000 numbers, curves beside it of more than 65,536 together, a curve of
     * more than 128 KiB, or more than 16 MiB in all, which are held only where max_metadata_bytes allows it. */
    IMGDL_COLOUR_NOTE_COSTLY_PROFILE = 1u << 6
};
/** IMGDL_COLOUR_NOTE_ bits. Since 1.1. */
IMGDL_API imgdl_colour_notes imgdl_image_colour_notes(const imgdl_image *image);
/** The ICC profile in the file (JPEG, PNG, WebP), also when the pixels were converted by it; NULL if there is none. Gives:
 *  *length, may be NULL. Valid until the last reference to the image is released. Since 1.1. */
IMGDL_API const void *imgdl_image_icc_profile(const imgdl_image *image, size_t *length);
/** An image of pixels of yours: what a codec gives. Takes: stride × height bytes, copied; stride is at least a row's.
 *  Returns: IMGDL_OK, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_image_create(uint32_t width, uint32_t height, imgdl_pixel_format format,
                                                        const void *pixels, size_t stride, imgdl_image **image);
/** Another reference, and the same handle; NULL for an invalid one. Since 1.0. */
IMGDL_API imgdl_image *imgdl_image_retain(imgdl_image *image);
/** Gives a reference back; NULL and stale handles are ignored. With the last one the pixels go, but for memory that the
 *  process keeps for the next pictures until a downloader ends: 48 MiB at most, or 192 MiB while pictures are decoded,
 *  which a system that is short of memory takes back, and of pictures of up to 2 MiB two for each processor, 32 MiB at
 *  most. Since 1.0. */
IMGDL_API void imgdl_image_release(imgdl_image *image);

/** The bytes, valid until the last reference is released; NULL if there are none. Since 1.0. */
IMGDL_API const void *imgdl_data_bytes(const imgdl_data *data);
/** How many bytes. Since 1.0. */
IMGDL_API size_t imgdl_data_length(const imgdl_data *data);
/** Another reference, and the same handle; NULL for an invalid one. Since 1.0. */
IMGDL_API imgdl_data *imgdl_data_retain(imgdl_data *data);
/** Gives a reference back; NULL and stale handles are ignored. Since 1.0. */
IMGDL_API void imgdl_data_release(imgdl_data *data);

/* ------------------------------------------------------------------------------------------------------------------
 * 5  Decoding
 *
 * JPEG (baseline, progressive, arithmetic; gray, YCbCr, RGB, CMYK, YCCK), PNG (all colour types, 16 bit, Adam7, APNG),
 * WebP (lossy, lossless, alpha, animated) and GIF (interlaced, animated). What a file is, its content tells. Pixels come
 * as 8 bits per channel, values as stored (no colour management), alpha straight; unless asked otherwise.
 * --------------------------------------------------------------------------------------------------------------- */

typedef uint32_t imgdl_decode_flags;
enum {
    /* Leave the picture as stored, whatever its EXIF orientation says. */
    IMGDL_DECODE_IGNORE_ORIENTATION = 1u << 0,
    /* A cut or broken picture is still an error, but the pixels that could be had come with it. */
    IMGDL_DECODE_SALVAGE = 1u << 1,
    /* Decode every frame of an animation, not the first alone. */
    IMGDL_DECODE_ALL_FRAMES = 1u << 2,
    /* A picture of one frame is an error (BAD_IMAGE_DATA). */
    IMGDL_DECODE_REQUIRE_ANIMATION = 1u << 3,
    /* Each side as long as that of the box, whatever the picture's proportions; a side that is shorter in the file stays as
     * it is, since nothing is made larger. Without it proportions are kept. */
    IMGDL_DECODE_STRETCH = 1u << 4,
    /* Large pictures come smaller, so that all decoded frames together fit into max_output_bytes (0: 60 MiB). */
    IMGDL_DECODE_SCALE_DOWN = 1u << 5,
    /* The first partial image of a JPEG is the thumbnail in its EXIF, where there is one, made as large as the picture. */
    IMGDL_DECODE_THUMBNAIL_FIRST = 1u << 6
};

/* What becomes of colours. */
typedef uint32_t imgdl_colour;
enum {
    IMGDL_COLOUR_AS_STORED = 0,
    /* By the file's ICC profile to sRGB (perceptual intent), CMYK too; alpha is not touched. Without a profile, or with one
     * that is of no use, as stored: see imgdl_image_colour_notes. */
    IMGDL_COLOUR_SRGB = 1,
    IMGDL_COLOUR_FORCE32 = 0x7FFFFFFF
};

/** Memory of yours for a canvas: of a picture, a frame, or partial images. Takes: width, height, bytes per pixel; *stride,
 *  width × bytes per pixel, which may be made larger. Returns: stride × height bytes, however aligned; NULL: OUT_OF_MEMORY.
 *  Called once for each canvas, on a thread of the library or the one that decodes; for several pictures at a time. */
typedef void *(*imgdl_allocate)(uint32_t width, uint32_t height, uint32_t bytes_per_pixel, size_t *stride, void *user_data);
/** The last image on that canvas is released, or decoding failed. Any thread. Of a request that was cancelled while it was
 *  decoded it may come after the request's destructor, but before imgdl_downloader_destroy returns, where that waits, and
 *  before `done` of imgdl_downloader_shutdown. */
typedef void (*imgdl_deallocate)(void *pixels, void *user_data);

#define IMGDL_DEFAULT_MAX_PIXELS 100000000u
#define IMGDL_DEFAULT_MAX_FRAMES 1000u
#define IMGDL_DEFAULT_MAX_SCANS 500u
#define IMGDL_DEFAULT_MAX_METADATA_BYTES 16777216u
/* Ten bytes for each of IMGDL_DEFAULT_MAX_PIXELS, and a little: four on a canvas, and six of the coefficients of a JPEG in
 * several scans (eight of four inks), or four and the bytes of the picture as it is stored. docs/security.md has the others. */
#define IMGDL_DEFAULT_MAX_MEMORY_BYTES 1073741824u
#define IMGDL_DEFAULT_MAX_DECODE_MS 10000u
/* For a limit that is to be none: max_memory_bytes and max_stale_ms take the first, max_decode_ms the second, and no other
 * option needs either. IMGDL_NO_LIMIT_32 in an option of 64 bits is the number 4,294,967,295. */
#define IMGDL_NO_LIMIT UINT64_MAX
#define IMGDL_NO_LIMIT_32 UINT32_MAX
#define IMGDL_DEFAULT_SCALE_DOWN_BYTES 62914560u
#define IMGDL_MAX_TARGET 1048576u

/* How a picture comes smaller. Each pixel is the average of the area it covers; invisible pixels lend it no colour. The box
 * is one for the turned picture, and never makes it larger: 5250 x 3450 in 400 x 300 gives 400 x 263, the side that follows
 * rounded up. IMGDL_DECODE_STRETCH needs both sides of the box, and is ignored with one or none. For arrays of one shape,
 * pad or resize what comes: a side that is shorter in the file stays so. IMGDL_DECODE_SCALE_DOWN keeps what fits, and makes
 * the rest as large as fits, at least 1 x 1. It takes the place of the box: with it target_width, target_height and
 * IMGDL_DECODE_STRETCH are ignored. Header, partial images and the picture have the size that is decoded; max_pixels is
 * about the size in the file. The file's full size is held only of PNG in Adam7 (it comes in seven passes), lossless WebP,
 * animations, and lossy WebP with alpha, with an odd side that is not made ten times smaller, or with one that keeps more
 * than three fifths of its length; of a progressive JPEG its coefficients are. A PNG whose EXIF stands behind its pixels
 * may come smaller than the box would allow. */

typedef struct imgdl_decode_options {
    uint32_t struct_size;
    imgdl_pixel_format pixel_format; /* IMGDL_PIXEL_FORMAT_…; 0 is RGBA8                                             */
    imgdl_decode_flags flags;        /* IMGDL_DECODE_…                                                               */
    uint32_t reserved;
    uint64_t max_pixels;             /* width × height; 0 is IMGDL_DEFAULT_MAX_PIXELS. Checked before any allocation */
    /* since 1.1 */
    uint32_t target_width;           /* decode to a size that fits into this box, never enlarged; see above. 0: that */
                                     /* side is free. Both 0: as stored. At most IMGDL_MAX_TARGET                    */
    uint32_t target_height;          /* likewise                                                                     */
    uint64_t max_output_bytes;       /* with SCALE_DOWN alone; then target_width and _height do not count            */
    uint32_t max_frames;             /* 0 is IMGDL_DEFAULT_MAX_FRAMES                                                */
    imgdl_format format_hint;        /* for data whose beginning does not tell; 0: none                              */
    imgdl_coder *coder;              /* decode with this codec of yours and no other; NULL: whichever can            */
    uint32_t max_side;               /* of width and of height, as stored. 0: max_pixels alone; but a PNG's rows have */
                                     /* 2,097,152 pixels at most, or 1,048,576 of 16 bits, and more if this says so  */
    uint32_t max_scans;              /* of a progressive JPEG; 0 is IMGDL_DEFAULT_MAX_SCANS                          */
    uint64_t max_animation_pixels;   /* of all frames decoded; 0: as many as max_pixels                              */
    uint64_t max_metadata_bytes;     /* EXIF and ICC profile together that are held, a PNG's profile as it is        */
                                     /* unpacked. EXIF of more than 1 MiB is passed over and not judged. 0: what is  */
                                     /* longer than IMGDL_DEFAULT_MAX_METADATA_BYTES is passed over, and no error    */
    uint64_t max_memory_bytes;       /* canvases, the codec's own memory, EXIF and profile of this picture,          */
                                     /* estimated before anything is allocated; 0 is                                 */
                                     /* IMGDL_DEFAULT_MAX_MEMORY_BYTES, IMGDL_NO_LIMIT: none. Partial images that    */
                                     /* need a canvas of their own come while it has room                            */
    uint32_t max_decode_ms;          /* CPU time of this picture; decoding ends within 50 ms more, or behind the call */
                                     /* of libwebp that runs. 0 is IMGDL_DEFAULT_MAX_DECODE_MS,                      */
                                     /* IMGDL_NO_LIMIT_32: none                                                      */
    imgdl_colour colour;             /* IMGDL_COLOUR_…                                                               */
    imgdl_allocate allocate;         /* both or neither. Requests whose options are all the same share canvases      */
    imgdl_deallocate deallocate;
    void *allocator_user_data;
    uint32_t good_enough_scan;       /* of a progressive JPEG: see imgdl_image_is_good_enough; 0: the one after which */
                                     /* each component has all of its pixels in some precision                       */
    uint32_t reserved2;
} imgdl_decode_options;              /* end of 1.1 */

/** Fills *options with defaults for a caller whose struct has this size; does nothing for NULL or a size below that of
 *  version 1.0. Since 1.0. */
IMGDL_API void imgdl_decode_options_init(imgdl_decode_options *options, size_t struct_size);

/* What the header of a picture tells. */
typedef struct imgdl_image_info {
    uint32_t struct_size;
    imgdl_format format;
    uint32_t width;       /* of the decoded picture: orientation applied, scaled as asked for */
    uint32_t height;
    uint32_t orientation; /* as stored, 1 to 8 */
    uint32_t frame_count; /* 0 while unknown */
    int32_t has_alpha; /* of a picture that is whole: something is seen through a pixel of it (of RGB8, and of an */
                       /* animation, whose frames may not all be decoded: may be); before: the file may have alpha */
    int32_t is_progressive; /* once the first pass has come whole, partial images cover the whole canvas; until then */
                            /* imgdl_image_ready says which rows */
} imgdl_image_info;         /* end of 1.0 */

/** Fills *info with zeros and its size. Since 1.0. */
IMGDL_API void imgdl_image_info_init(imgdl_image_info *info, size_t struct_size);

/** Decodes a whole picture in memory.
 *  Takes:   length bytes, read before return; options, NULL for defaults.
 *  Gives:   *image, one reference. With IMGDL_DECODE_SALVAGE also, or NULL, when BAD_IMAGE_DATA, TRUNCATED or a limit's
 *           code (2302 to 2309) is returned; otherwise not written on failure.
 *  Returns: IMGDL_OK, BAD_IMAGE_DATA, TRUNCATED, a limit's code, OUT_OF_MEMORY, INVALID_ARGUMENT, UNSUPPORTED_OPTION.
 *  Since:   1.0 */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_decode(const void *bytes, size_t length, const imgdl_decode_options *options,
                                                  imgdl_image **image);

/** Begins to decode a picture that comes in pieces: feed, feed …, finish. Whatever the pieces, the result is that of
 *  imgdl_decode. Gives: *decoder, to be ended with imgdl_decoder_destroy. Threads: any; one at a time per decoder.
 *  Returns: IMGDL_OK, INVALID_ARGUMENT, UNSUPPORTED_OPTION. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_decoder_create(const imgdl_decode_options *options, imgdl_decoder **decoder);

/** The next bytes, read before return, decoded as far as they reach. Missing bytes are no error; what is broken is, and
 *  stays so: every later feed and finish returns the same code. Returns: as imgdl_decode, and INVALID_HANDLE.
 *  Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_decoder_feed(imgdl_decoder *decoder, const void *bytes, size_t length);

/** Fills *info (struct_size set by imgdl_image_info_init). Returns: IMGDL_OK, NOT_READY while the header is not
 *  complete, INVALID_HANDLE, INVALID_ARGUMENT. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_decoder_info(imgdl_decoder *decoder, imgdl_image_info *info);

/** The picture so far, as *image (one reference). Returns: IMGDL_OK, NOT_READY when there is nothing that the last call
 *  did not show, INVALID_HANDLE. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_decoder_partial(imgdl_decoder *decoder, imgdl_image **image);

/** No more bytes will come. Gives and returns as imgdl_decode. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_decoder_finish(imgdl_decoder *decoder, imgdl_image **image);

/** Ends a decoder; images it gave live on. NULL and stale handles are ignored. Since 1.0. */
IMGDL_API void imgdl_decoder_destroy(imgdl_decoder *decoder);

/* ------------------------------------------------------------------------------------------------------------------
 * 6  Executors: where callbacks run
 *
 * Each request names the executor of its callbacks; none means the downloader's. For one token callbacks never overlap
 * and come in order, whichever executor it is. A slow callback holds up its own executor only: its events wait, newer
 * progress and newer partial images take the place of older ones, and nothing else is lost.
 *
 *   NULL                              a thread of the downloader, for callbacks alone.
 *   IMGDL_EXECUTOR_INLINE             the thread of the library that made the event, for the lowest latency. The
 *                                     network stands still meanwhile: be quick.
 *   imgdl_executor_create_pumped()    your own thread: watch the descriptor in GLib, Qt, libuv, asyncio or epoll, and
 *                                     call imgdl_executor_dispatch when it is readable.
 * --------------------------------------------------------------------------------------------------------------- */

/* Not an object: never released. */
#define IMGDL_EXECUTOR_INLINE ((imgdl_executor *)(uintptr_t)1)

/** Gives: *executor, one reference. It belongs to the thread that called this, until another one dispatches it or your last
 *  reference is released: waiting on that thread for its callbacks is IMGDL_ERROR_WOULD_DEADLOCK. Returns: IMGDL_OK,
 *  INVALID_ARGUMENT, OUT_OF_MEMORY (no descriptor left). Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_executor_create_pumped(imgdl_executor **executor);

/** The descriptor (an eventfd) that is readable while callbacks wait; do not read or close it. Valid until the last
 *  reference is released. -1 for a handle that is not of a pumped executor or comes from before fork(). Since 1.0. */
IMGDL_API int32_t imgdl_executor_fd(imgdl_executor *executor);

/** Runs the callbacks that wait, at most max_events of them (0: 1024), on this thread. When more are left the descriptor
 *  stays readable. One thread at a time: while another one dispatches it, and inside a callback of the same executor, it is
 *  IMGDL_ERROR_WOULD_DEADLOCK. Gives: *dispatched, how many ran; may be NULL. Returns: IMGDL_OK, INVALID_HANDLE, FORKED,
 *  WOULD_DEADLOCK. Since 1.0. */
IMGDL_API imgdl_status imgdl_executor_dispatch(imgdl_executor *executor, uint32_t max_events, uint32_t *dispatched);

/** Another reference, and the same handle; NULL for an invalid one. Since 1.0. */
IMGDL_API imgdl_executor *imgdl_executor_retain(imgdl_executor *executor);

/** Gives a reference back. Keep one for as long as you want callbacks: what downloads and downloaders hold does not keep it
 *  running, and those that name it later are accepted and told to nobody. After the last release of yours, callbacks that
 *  wait there are not run any more; their user_data destructors run, inside this call or later on a thread of the
 *  library; that of a callback which runs or begins at this moment, one at most, runs when it has returned, on the thread
 *  that dispatches it.
 *  Downloads whose callbacks were to run there go on for nobody: cancel them first. In the statistics an end that is not
 *  told moves from succeeded or failed to cancelled. NULL, stale handles and IMGDL_EXECUTOR_INLINE are ignored. Since 1.0. */
IMGDL_API void imgdl_executor_release(imgdl_executor *executor);

/* ------------------------------------------------------------------------------------------------------------------
 * 7  Events
 *
 * For each accepted download: STARTED, RESPONSE, HEADER, then PROGRESS and PARTIAL, then TERMINAL, exactly once and
 * always last (but where its pumped executor is released before, or exit() has begun). Of the others a request gets those
 * in its event_mask. (While a file keeps its size behind much else, such as a profile of many kilobytes, PROGRESS comes
 * before HEADER.) A download that joins a running transfer gets at once what it has missed. The event and everything in it
 * is borrowed: valid until the callback returns. To keep an image, a body or the token, retain it.
 *
 * When a transfer that has broken off is tried again (retry_count), RESPONSE and HEADER come once more, after PROGRESS and
 * PARTIAL, too: what the new attempt was answered takes the place of what was told before. The last RESPONSE is that of the
 * body and the image that TERMINAL gives. PROGRESS goes on once there is more than was told. A response that is only
 * waited out, such as a 503 before a retry, is not told.
 * --------------------------------------------------------------------------------------------------------------- */

typedef uint32_t imgdl_event_mask;
enum {
    IMGDL_EVENT_STARTED = 1u << 0,  /* the transfer leaves the queue; received 0, expected -1                         */
    IMGDL_EVENT_RESPONSE = 1u << 1, /* response is set; received 0, expected known if the server said it. Again with   */
                                    /* each attempt that is answered; a slow executor may be told of the last alone   */
    IMGDL_EVENT_HEADER = 1u << 2,   /* info is set: the size of the picture, from its first bytes. Again likewise     */
    IMGDL_EVENT_PROGRESS = 1u << 3, /* received and expected; begins with the first bytes of the body                 */
    IMGDL_EVENT_PARTIAL = 1u << 4,  /* image is set: the picture so far                                               */
    IMGDL_EVENT_TERMINAL = 1u << 5, /* code, message; on success image or data. In every mask                         */
    IMGDL_EVENT_ALL = (1u << 6) - 1
};

typedef struct imgdl_header {
    const char *name;
    const char *value;
} imgdl_header;

/* A redirect that was followed. */
typedef struct imgdl_hop {
    const char *url; /* that answered with the redirect; as imgdl_response.url */
    int32_t status;  /* such as 302 */
    uint32_t reserved;
} imgdl_hop;

typedef struct imgdl_metrics imgdl_metrics;

/* Where a response is from (section 15). */
typedef uint32_t imgdl_cache_outcome;
enum {
    IMGDL_CACHE_OUTCOME_NETWORK = 0,   /* from the server                                                             */
    IMGDL_CACHE_OUTCOME_HIT = 1,       /* stored, and fresh                                                           */
    IMGDL_CACHE_OUTCOME_VALIDATED = 2, /* stored; the server said that it is still good                               */
    IMGDL_CACHE_OUTCOME_STALE = 3,     /* stored, and stale: section 15 has all cases, max_stale_ms bounds them       */
    IMGDL_CACHE_OUTCOME_RESUMED = 4,   /* its beginning was kept of a transfer that had broken off                    */
    IMGDL_CACHE_OUTCOME_FORCE32 = 0x7FFFFFFF
};

/* What a server answered. */
typedef struct imgdl_response {
    uint32_t struct_size;
    int32_t status;              /* such as 200                                                                     */
    int32_t http_version;        /* 10, 11, 20; 0 where it was not HTTP                                             */
    uint32_t redirect_count;     /* how many redirects led here                                                     */
    int64_t content_length;      /* -1 when the server did not tell                                                 */
    const char *url;             /* the URL that answered, without user, password and fragment, and, unless the     */
                                 /* request has IMGDL_REQUEST_FULL_URLS, with dots for the values in its query; to  */
                                 /* hooks (a challenge, a redirect, a response) it and hops come with the values    */
    const imgdl_header *headers; /* as received, repeated ones too                                                  */
    size_t header_count;
    /* since 1.1 */
    const imgdl_hop *hops;       /* redirect_count of them, in order                                                */
    const char *content_type;    /* its media type in lower case, without parameters; "" when there is none         */
    imgdl_cache_outcome cache_outcome; /* IMGDL_CACHE_OUTCOME_…                                                      */
    uint32_t reserved;
} imgdl_response;                /* end of 1.1 */

typedef struct imgdl_event {
    uint32_t struct_size;
    uint32_t kind;                  /* one IMGDL_EVENT_ bit                                                          */
    imgdl_token *token;             /* may come before imgdl_download has returned                                   */
    int64_t received;               /* body bytes so far, Content-Encoding undone                                    */
    int64_t expected;               /* body bytes in all, -1 while unknown                                           */
    const imgdl_response *response; /* RESPONSE                                                                      */
    const imgdl_image_info *info;   /* HEADER                                                                        */
    imgdl_image *image;             /* PARTIAL; TERMINAL on success, or salvaged                                     */
    imgdl_data *data;               /* TERMINAL on success, with IMGDL_REQUEST_BODY                                  */
    imgdl_status code;              /* TERMINAL: IMGDL_OK or the error                                               */
    int32_t http_status;            /* TERMINAL: of the last response, 0 if there was none                           */
    const char *message;            /* TERMINAL: a sentence that names the URL, where a redirect led, and the cause; */
                                    /* "" on success                                                                 */
    /* since 1.1 */
    const char *content_type;       /* TERMINAL: of the last response; "" when it said none                          */
    const void *preview;            /* TERMINAL with an error: the first bytes of the body that was refused; NULL    */
                                    /* where there is none                                                           */
    size_t preview_length;          /* 512 at most                                                                   */
    const imgdl_metrics *metrics;   /* TERMINAL: where the time went (section 13)                                    */
} imgdl_event;                      /* end of 1.1 */

typedef void (*imgdl_event_callback)(const imgdl_event *event, void *user_data);

/* Called once when nothing will be called with user_data any more. */
typedef void (*imgdl_destructor)(void *user_data);

/* ------------------------------------------------------------------------------------------------------------------
 * 8  Requests
 * --------------------------------------------------------------------------------------------------------------- */

typedef int32_t imgdl_priority;
enum { IMGDL_PRIORITY_LOW = -1, IMGDL_PRIORITY_NORMAL = 0, IMGDL_PRIORITY_HIGH = 1 };

typedef uint32_t imgdl_request_flags;
enum {
    /* Hand over the body, of any type, as data. Without IMGDL_REQUEST_DECODE nothing is decoded. A Content-Encoding that
     * the library does not know is left on it (to a decoder it is IMGDL_ERROR_CONTENT_ENCODING). */
    IMGDL_REQUEST_BODY = 1u << 0,
    /* Decode the body to an image. This is the default; say it when IMGDL_REQUEST_BODY is set and both are wanted. */
    IMGDL_REQUEST_DECODE = 1u << 1,
    /* Do not follow redirects. With IMGDL_REQUEST_BODY alone a redirect is then an answer; else IMGDL_ERROR_INVALID_STATUS. */
    IMGDL_REQUEST_NO_REDIRECTS = 1u << 2,
    /* Follow redirects from https to http too. */
    IMGDL_REQUEST_ALLOW_DOWNGRADE = 1u << 3,
    /* Any HTTP status is a success: for callers that look at it themselves. */
    IMGDL_REQUEST_ANY_STATUS = 1u << 4,
    /* Send and keep cookies, in the downloader's jar, where each partition has its own: those of the request's own Cookie
     * header first. Without it a request has nothing to do with cookies. */
    IMGDL_REQUEST_COOKIES = 1u << 5,
    /* Take any server certificate, self-signed ones too, of any name. Over https its connection is not used for requests that
     * do not say so. Nothing of it is stored, and nothing stored answers it, over https or http. */
    IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES = 1u << 6,
    /* Goes on while the downloader is in the background, until its grace is over. */
    IMGDL_REQUEST_CONTINUE_IN_BACKGROUND = 1u << 7,
    /* Ask again, whatever failed a moment ago (see failure_ttl_ms of imgdl_config). */
    IMGDL_REQUEST_RETRY_FAILED = 1u << 8,
    /* Response, hops and messages show URLs with the values of their queries: may be secrets of signed URLs. Two have dots all
     * the same: where a redirect led that was not followed, and where the request had been led that BLACKLISTED is about. */
    IMGDL_REQUEST_FULL_URLS = 1u << 9,
    /* Tell me only if it has changed: what comes from the cache, or has the very bytes that were stored when the request
     * began, ends with IMGDL_ERROR_NOT_MODIFIED. It waits for the validation of what is stale, also within
     * stale-while-revalidate, but where the request itself takes what is stale (Cache-Control: max-stale,
     * IMGDL_CACHE_ONLY) or forbids to ask (only-if-cached). Without effect where the cache is not used. */
    IMGDL_REQUEST_IGNORE_CACHED = 1u << 10,
    /* Answer a challenge for Basic over http too, where everybody on the way can read the password. Without it such a 401 is
     * the answer; Digest is spoken over http all the same. */
    IMGDL_REQUEST_BASIC_OVER_HTTP = 1u << 11
};

/* How a request uses the cache of its downloader (section 15). Where there is none, ONLY is IMGDL_ERROR_NOT_CACHED
 * for http and https, and the others are as OFF. */
typedef uint32_t imgdl_cache_mode;
enum {
    IMGDL_CACHE_DEFAULT = 0, /* as the downloader's config says; there it is OFF                                      */
    IMGDL_CACHE_OFF = 1,     /* neither read nor written                                                              */
    IMGDL_CACHE_USE = 2,     /* as RFC 9111 says: what is fresh answers without the network, what is stale is         */
                             /* validated                                                                             */
    IMGDL_CACHE_RELOAD = 3,  /* from the server, whatever is stored; the answer is stored                             */
    IMGDL_CACHE_ONLY = 4,    /* what is stored, however old (but for max_stale_ms); else IMGDL_ERROR_NOT_CACHED.      */
                             /* Nothing is sent over http and https, whatever the method; other schemes have no cache */
                             /* and are asked                                                                         */
    IMGDL_CACHE_REFRESH = 5, /* validated with the server, also where it is fresh, as when a page is reloaded; but    */
                             /* what is fresh and `immutable` answers as it is (RFC 8246): RELOAD fetches that, too   */
    IMGDL_CACHE_FORCE32 = 0x7FFFFFFF
};

/* For max_stale_ms: what is stale never answers. IMGDL_NO_LIMIT: however stale. */
#define IMGDL_STALE_NEVER (UINT64_MAX - 1)

/* The first and the last status of a range that is a success, such as 200 and 299. */
typedef struct imgdl_status_range {
    int32_t first, last;
} imgdl_status_range;

#define IMGDL_RETRY_NONE UINT32_MAX
#define IMGDL_DEFAULT_RETRY_BASE_MS 500u
#define IMGDL_DEFAULT_RETRY_MAX_MS 60000u

#define IMGDL_DEFAULT_MAX_BODY_BYTES 268435456u

typedef struct imgdl_request {
    uint32_t struct_size;
    imgdl_priority priority;
    imgdl_request_flags flags;
    imgdl_event_mask event_mask;         /* 0: TERMINAL alone                                                        */
    const char *url;                     /* http, https, or of a scheme that is allowed or registered               */
    const char *method;                  /* NULL is GET; CONNECT is INVALID_HEADER                                   */
    const imgdl_header *headers;         /* take the place of the downloader's of the same name; value NULL: none of */
                                         /* them is sent, but Host, Accept-Encoding and the Content-Length of a body */
                                         /* are the library's own then.                                              */
                                         /* What frames a request is INVALID_HEADER unless its value is NULL:        */
                                         /* Content-Length, Transfer-Encoding, Trailer, Connection, Keep-Alive,      */
                                         /* Proxy-Connection, TE, Upgrade, HTTP2-Settings, Expect; a second Host,    */
                                         /* and one that is no host with or without a port. With Range,              */
                                         /* Accept-Encoding is identity unless it is given; the body of a 206 comes  */
                                         /* as it was sent                                                           */
    size_t header_count;
    const void *body;                    /* to send                                                                  */
    size_t body_length;
    uint64_t max_body_bytes;             /* to receive, Content-Encoding undone; with it an eighth and 64 KiB more   */
                                         /* may come. 0 is IMGDL_DEFAULT_MAX_BODY_BYTES                              */
    uint32_t total_timeout_ms;           /* from the start of the transfer, once the cache has been looked at, to    */
                                         /* the last decode; 0: none. On CLOCK_MONOTONIC: goes on while the process  */
                                         /* is stopped or an inline callback runs, stands still while the machine    */
                                         /* sleeps. What comes later is not given out, also where it only lay there  */
                                         /* unread. An end that was known in time stands: a terminal waits for its   */
                                         /* executor, or for the callback before it, however long that takes         */
    uint32_t partial_interval_ms;        /* at least so long between two partial images; 0 is 100                    */
    const imgdl_decode_options *decode;  /* NULL: defaults                                                           */
    imgdl_executor *executor;            /* of the callbacks; NULL: the downloader's                                 */
    imgdl_event_callback callback;       /* NULL: the result waits in the token                                      */
    imgdl_destructor destructor;         /* of user_data; may be NULL                                                */
    void *user_data;
    /* since 1.1 */
    const char *user;                    /* for Basic or Digest, as the server asks; never sent to another origin,   */
                                         /* nor after a redirect by way of another one.                              */
                                         /* NULL: as in the URL, else the downloader's                               */
    const char *password;                /* likewise                                                                 */
    uint32_t connect_timeout_ms;         /* 0: the downloader's                                                      */
    uint32_t idle_timeout_ms;            /* 0: the downloader's                                                      */
    uint32_t retry_count;                /* how often to try again after what may pass: no connection, a lost one,   */
                                         /* a timeout but the total one (a flood is FLOOD), 408, 429, 5xx; 0: as the */
                                         /* downloader,                                                              */
                                         /* IMGDL_RETRY_NONE: never. GET, HEAD, PUT, DELETE, OPTIONS only. Not       */
                                         /* counted, and done in any case: a request whose kept connection ends      */
                                         /* without an answer is sent once more, on a new one; POST and PATCH so     */
                                         /* over HTTP/2 alone. What a server turns away over HTTP/2 before it looks  */
                                         /* at it (GOAWAY, REFUSED_STREAM) goes out four times in all at most,       */
                                         /* whatever its method                                                      */
    uint32_t retry_base_ms;              /* wait up to this before the first, twice it before the second …, at       */
                                         /* random; not before Retry-After says. 0: as the downloader                */
    uint32_t retry_max_ms;               /* the longest wait; a longer Retry-After ends the request with that answer */
                                         /* at once. 0: as the downloader                                            */
    uint32_t reserved;
    const imgdl_status_range *accepted_statuses; /* NULL: the downloader's, by default 200 to 299                    */
    size_t accepted_status_count;
    const char *const *accepted_types;   /* "image/png": media types, with an asterisk for the subtype or for both   */
                                         /* parts; NULL: the downloader's, by default any. A response without        */
                                         /* Content-Type passes                                                      */
    size_t accepted_type_count;
    const char *ca_file;                 /* PEM; in place of the downloader's. This file and the next two are read   */
                                         /* when the request is made, and its connections go by what they hold then. */
                                         /* One that cannot be used, or is larger than 4 MiB, ends the request with  */
                                         /* IMGDL_ERROR_TLS_FAILED before anything is asked, whatever its URL. A     */
                                         /* process holds the same bytes once, however many requests name them, and  */
                                         /* 128 MiB of different ones: more is IMGDL_ERROR_OUT_OF_MEMORY             */
    const char *client_certificate;      /* a file in PEM. It, its key and the password are tried then, too: a key   */
                                         /* that is another's, or that the password does not open, cannot be used    */
    const char *client_key;              /* a file in PEM; NULL: in client_certificate                               */
    const char *client_key_password;     /* of a key that is encrypted; nobody is asked for one                      */
    const char *pinned_public_key;       /* "sha256//BASE64" (44 characters), several with ; between them;           */
                                         /* else INVALID_ARGUMENT                                                    */
    imgdl_hooks *hooks;                  /* in place of the downloader's; section 9                                  */
    double scale_factor;                 /* 0: as the URL says (@2x), else 1                                         */
    imgdl_cache_mode cache_mode;         /* IMGDL_CACHE_…                                                            */
    uint32_t reserved2;
    const char *partition;               /* for which of your program's accounts: requests of two partitions share   */
                                         /* no connections, transfers or cookies, and nothing that is stored. UTF-8, */
                                         /* 256 bytes at most (INVALID_ARGUMENT), without control characters         */
                                         /* (INVALID_HEADER); "" is one, too. NULL: the downloader's                 */
    uint64_t max_stale_ms;               /* what has been stale in the cache for longer does not answer, whatever    */
                                         /* allows it (section 15), with IMGDL_CACHE_ONLY, too; in whole seconds,    */
                                         /* 1 to 999: no second. 0: the downloader's; IMGDL_STALE_NEVER, _NO_LIMIT   */
} imgdl_request;                         /* end of 1.1 */

/** Fills *request with defaults for a caller whose struct has this size; does nothing for NULL or a size below that of
 *  version 1.0. Since 1.0. */
IMGDL_API void imgdl_request_init(imgdl_request *request, size_t struct_size);

/* ------------------------------------------------------------------------------------------------------------------
 * 9  Hooks
 *
 * Functions of yours that are asked while a download runs: to sign a request, to look at a response, to decrypt a body,
 * to decide on a redirect, to find credentials. A hook is called on a thread of the library that other downloads wait
 * for, once for each transfer (not for each request that shares it). It answers through the continuation, inside the call
 * or later, on any thread, once; what was asked of the downloader before the answer is done before it. A download whose hook
 * never answers ends with its total timeout. Requests with different hooks never share a transfer. A function that is NULL
 * is not asked.
 *
 * Until the answer a download keeps its place among max_concurrent and max_per_host, except for transform_body. An answer
 * that waits for another request of the same downloader, such as one for a token, may therefore wait for ever: once as many
 * downloads wait so as there are places, that request gets none. Let another downloader fetch what such answers wait for.
 * --------------------------------------------------------------------------------------------------------------- */

/* A request as it will be sent. Borrowed: valid during the call. */
typedef struct imgdl_outgoing {
    uint32_t struct_size;
    uint32_t reserved;
    const char *url;             /* whole, with its query; without user and password */
    const char *method;
    const imgdl_header *headers; /* the downloader's included */
    size_t header_count;
    const void *body;
    size_t body_length;
} imgdl_outgoing;                /* end of 1.1 */

/** Fills *outgoing with zeros and its size. Since 1.1. */
IMGDL_API void imgdl_outgoing_init(imgdl_outgoing *outgoing, size_t struct_size);

typedef struct imgdl_hooks_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* Before a request is sent, again before each retry, not for redirects. Answer: unchanged, with_request, refused. */
    void (*modify_request)(const imgdl_outgoing *request, imgdl_continuation *next, void *user_data);
    /* When the head of the final response is there, before it is validated. Answer: unchanged, with_response, refused. */
    void (*modify_response)(const imgdl_response *response, imgdl_continuation *next, void *user_data);
    /* When the body is whole, before it is decoded; no partial images then. Answer: unchanged, with_data, refused. The answer
     * may wait for another request of the same downloader, a key's say, that has other hooks or none: one with these hooks
     * may itself wait for the answer (memory_budget). So has one that names none where these are the downloader's
     * (imgdl_config.hooks): then let the key's request name others, or name these in requests alone. */
    void (*transform_body)(imgdl_data *body, imgdl_continuation *next, void *user_data);
    /* Before a redirect is followed that the rules allow. Answer: unchanged, with_request (its url alone), refused. */
    void (*redirect)(const imgdl_response *response, const char *url, imgdl_continuation *next, void *user_data);
    /* When a server answers 401 and nobody gave credentials, or they were wrong: once for each transfer, also where those of
     * the answer are wrong: the next 401 is the answer then. Over http they are sent to a server that asks for Digest; one
     * that asks for Basic gets them with IMGDL_REQUEST_BASIC_OVER_HTTP or IMGDL_CONFIG_BASIC_OVER_HTTP alone, else its 401 is
     * the answer. Answer: with_credentials, unchanged (the 401 is the answer), refused. */
    void (*authenticate)(const imgdl_response *challenge, imgdl_continuation *next, void *user_data);
    void *user_data;
    void (*destructor)(void *user_data); /* nothing will be called any more */
} imgdl_hooks_table;                     /* end of 1.1 */

/** Gives: *hooks, one reference, to name in imgdl_config and imgdl_request. Returns: IMGDL_OK, INVALID_ARGUMENT (no
 *  function at all), UNSUPPORTED_OPTION. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_hooks_create(const imgdl_hooks_table *table, imgdl_hooks **hooks);
/** Another reference, and the same handle; NULL for an invalid one. Since 1.1. */
IMGDL_API imgdl_hooks *imgdl_hooks_retain(imgdl_hooks *hooks);
/** Gives a reference back; downloads and downloaders that use them hold them, too. Since 1.1. */
IMGDL_API void imgdl_hooks_release(imgdl_hooks *hooks);

/* The answers. Each takes the continuation, which is no handle any more afterwards; also when its download has ended
 * meanwhile, which is no error. Returns: IMGDL_OK, INVALID_HANDLE (answered already), INVALID_ARGUMENT (no answer to this
 * question, or not valid: it can still be answered), INVALID_URL, INVALID_HEADER (likewise), FORKED. */

/** Go on as it is. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_continue_unchanged(imgdl_continuation *next);
/** Send this instead; copied. NULL url, method, headers or body: as it was. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_continue_with_request(imgdl_continuation *next, const imgdl_outgoing *request);
/** Take it as a response with this status and these headers; copied. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_continue_with_response(imgdl_continuation *next, int32_t status,
                                                                  const imgdl_header *headers, size_t header_count);
/** Take these bytes, copied, as the body: they count for memory_budget in place of what came. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_continue_with_data(imgdl_continuation *next, const void *bytes, size_t length);
/** Ask once more with these, as Basic or Digest. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_continue_with_credentials(imgdl_continuation *next, const char *user,
                                                                     const char *password);
/** End it with this error and this sentence, which may be NULL. Code 0: INVALID_OPERATION for a request,
 *  INVALID_RESPONSE for a response, BAD_IMAGE_DATA for a body, REDIRECT_REFUSED for a redirect, INVALID_STATUS for a
 *  challenge. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_continue_refused(imgdl_continuation *next, imgdl_status code,
                                                            const char *message);

/* ------------------------------------------------------------------------------------------------------------------
 * 10  The downloader
 *
 * It queues requests, runs at most max_concurrent transfers, and lets requests that ask for the same bytes share one,
 * where nothing differs that could change these (docs/concepts.md has the list, "Requests that share"). What is not
 * about the bytes belongs to each request alone: decode options, limits, timeouts, retries, validation, events,
 * executor. A transfer that waits before another attempt waits for the shortest time that one of its requests would wait
 * by itself, one that joins it meanwhile as before its own first retry (retry_base_ms), but for as long as Retry-After
 * says. A request without retries, and one that would not wait so long itself (retry_max_ms, total_timeout_ms), gets a
 * transfer of its own. A request that is made after its URL, or one that it was redirected to, was removed from the
 * cache (other than by age), or changed by another method that succeeded, joins no transfer that was sent, or answered
 * from the cache, before.
 *
 * Who goes next: the highest priority, then order. A transfer has the priority of its highest request, at any time. One
 * that has waited for ten seconds gets every fourth start, so that nothing waits for ever.
 * --------------------------------------------------------------------------------------------------------------- */

typedef uint32_t imgdl_order;
enum { IMGDL_ORDER_FIFO = 0, IMGDL_ORDER_LIFO = 1 };

#define IMGDL_DEFAULT_MAX_CONCURRENT 6u
#define IMGDL_MAX_CONCURRENT_LIMIT 10000u
#define IMGDL_DEFAULT_MEMORY_BUDGET 536870912u

typedef uint32_t imgdl_config_flags;
enum {
    /* Refuse to connect to loopback, link-local, private, shared, unique-local, multicast and unspecified addresses, in
     * whatever form, on every hop (IMGDL_ERROR_ADDRESS_REFUSED), and this machine's own and those of the networks that it
     * is on. Not together with a proxy (INVALID_OPERATION). */
    IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES = 1u << 0,
    /* file: URLs, and data: URLs; never as the target of a redirect. A file that is not there answers 404; one that may not
     * be read, a folder, a pipe and a device answer 403. */
    IMGDL_CONFIG_ALLOW_FILE_URLS = 1u << 1,
    IMGDL_CONFIG_ALLOW_DATA_URLS = 1u << 2,
    /* A transfer whose last request is cancelled goes on into the cache when its rest would take less time than the server
     * took to answer. It has four times that, 1 s at least and 30 s at most, and ends where its place is asked for; what
     * it has received is kept then as of one that was cancelled. */
    IMGDL_CONFIG_FINISH_NEARLY_DONE = 1u << 3,
    /* IMGDL_REQUEST_BASIC_OVER_HTTP for every request. */
    IMGDL_CONFIG_BASIC_OVER_HTTP = 1u << 4,
    /* TLS 1.3 at least, with servers and HTTPS proxies; without it TLS 1.2. */
    IMGDL_CONFIG_REQUIRE_TLS_1_3 = 1u << 5
};

typedef struct imgdl_config {
    uint32_t struct_size;
    uint32_t max_concurrent;      /* running transfers; 0 is 6; at most IMGDL_MAX_CONCURRENT_LIMIT                    */
    imgdl_order order;            /* among waiting requests of one priority                                          */
    uint32_t decode_threads;      /* 0: one for each core; at most 256                                               */
    uint32_t connect_timeout_ms;  /* name, connection and TLS; 0 is 15 000                                           */
    uint32_t idle_timeout_ms;     /* without a byte of the answer; 0 is 15 000. Neither counts time in which the     */
                                  /* downloader could not look, as in an inline callback or while the process is     */
                                  /* stopped. While others wait for memory next to none is none, see memory_budget   */
    uint32_t max_redirects;       /* 0 is 10; at most 100                                                            */
    uint32_t reserved;
    const char *user_agent;       /* NULL is "imgdl/1.1.0"                                                           */
    const char *ca_file;          /* PEM certificates to trust instead of the system's; NULL: the system's. Read when */
                                  /* the downloader is made, too: see imgdl_downloader_create. Of an https proxy, too; */
                                  /* a request's ca_file and crl_file say nothing of it                              */
    imgdl_executor *executor;     /* of requests that name none; NULL: a thread of the downloader                    */
    /* since 1.1 */
    imgdl_config_flags flags;     /* IMGDL_CONFIG_…                                                                  */
    uint32_t max_per_host;        /* running transfers to one host and port; 0: no limit but max_concurrent. One that */
                                  /* a redirect or a hook leads to another host waits for a place there. What is     */
                                  /* paused in the background has given its place up, and keeps its connection       */
    uint64_t memory_budget;       /* bytes of bodies and pixels that are in work; 0 is IMGDL_DEFAULT_MEMORY_BUDGET.  */
                                  /* What undoing Content-Encodings takes is beside it: 25 MiB a transfer at most.   */
                                  /* When it is reached nothing new starts and HTTP/1.1 transfers pause. What waits  */
                                  /* for an executor counts, too, up to a quarter of it, or as long as something     */
                                  /* else makes room: from then on it counts for that executor alone, whose requests */
                                  /* wait until half is taken. So n executors that take nothing may hold n times as  */
                                  /* much besides, and the pictures that others share with them                      */
                                  /* A body that waits for a hook's answer counts for its hooks alone: while a        */
                                  /* quarter of this or more waits for the same hooks, no request that has them      */
                                  /* begins until half of the quarter is answered; all others go on. What a cache    */
                                  /* has for a request waits as well, for its hooks and for its executor             */
                                  /* A transfer that brings less than 16 KiB in a second while others wait for       */
                                  /* memory takes none from others, though it keeps its place among max_concurrent:  */
                                  /* what it holds counts for its server (host and port, or the scheme where it is   */
                                  /* neither http nor https) alone, with the same rule, until it is quicker or there */
                                  /* is room. Once all such transfers together hold as much as this no others count  */
                                  /* so than those that had begun at such servers, and the rest waits until idle     */
                                  /* timeouts have ended some. Of the others that bring less than 16 KiB a second    */
                                  /* while these wait, one a second ends with IDLE_TIMEOUT, too, once it is behind   */
                                  /* by its idle timeout: one for which others are paused, or the largest.           */
                                  /* So bodies and pixels take three times this at most where servers stand still,   */
                                  /* besides what began there, up to max_concurrent. No transfer else is idle while  */
                                  /* a byte comes now and then: total_timeout_ms ends it                             */
    const char *proxy;            /* such as "http://user:password@host:3128"; "": none; NULL: as the environment says */
    const char *user;             /* Basic or Digest, where neither request nor URL has any                          */
    const char *password;
    const char *client_certificate;  /* these as in imgdl_request: INVALID_OPERATION for files that cannot be used,  */
    const char *client_key;          /* INVALID_ARGUMENT for a pin that is none, or for a key or password without a  */
    const char *client_key_password; /* certificate                                                                  */
    const char *pinned_public_key;
    const char *cookie_file;      /* where the jar is kept (Netscape format), read at the start and written anew at  */
                                  /* the end, with its cookies alone. It need not exist yet, its folder must, where  */
                                  /* new files are made. Links are followed; a relative name is taken from the       */
                                  /* working directory at the time the downloader is made. What cannot be read or    */
                                  /* written is IMGDL_ERROR_INVALID_OPERATION, and so is a folder, a pipe, a device, */
                                  /* a file beyond 16 MiB, or one that holds something else: the first line that is  */
                                  /* neither blank nor a comment is a cookie's, or the format's name stands before   */
                                  /* it. NULL: the jar is in memory, as are always the cookies of requests with a    */
                                  /* partition of their own                                                          */
    imgdl_hooks *hooks;           /* of requests that name none                                                      */
    uint32_t retry_count;         /* 0: none                                                                         */
    uint32_t retry_base_ms;       /* 0 is IMGDL_DEFAULT_RETRY_BASE_MS                                                */
    uint32_t retry_max_ms;        /* 0 is IMGDL_DEFAULT_RETRY_MAX_MS                                                 */
    uint32_t failure_ttl_ms;      /* a request that failed in a way that will not pass (bad picture, redirect that is */
                                  /* refused, certificate, protocol, flood) fails at once for so long (BLACKLISTED), */
                                  /* but for requests with hooks, and unless it has been removed from the cache or   */
                                  /* changed by another method since; 0: off                                         */
    const imgdl_status_range *accepted_statuses; /* NULL: 200 to 299                                                 */
    size_t accepted_status_count;
    const char *const *accepted_types; /* NULL: any                                                                  */
    size_t accepted_type_count;
    double progress_interval;     /* 0 to 1: this part of the whole must come between two PROGRESS; the last is      */
                                  /* always told, and all where the whole is unknown                                 */
    imgdl_cache *cache;           /* NULL: none. Several downloaders may have the same                               */
    imgdl_cache_mode cache_mode;  /* of requests that say DEFAULT; 0 is IMGDL_CACHE_OFF                              */
    uint32_t reserved2;
    const char *dns_servers;      /* who is asked for names, after /etc/hosts: numeric addresses, each with a port   */
                                  /* if it is not 53, such as "192.0.2.1,[2001:db8::1]:5353"; IPv6 in brackets where */
                                  /* a port follows; 8 at most. NULL: as the system has it                           */
    const char *crl_file;         /* PEM: revocation lists of all authorities that servers have; a certificate that  */
                                  /* is in one, or whose authority has none, is IMGDL_ERROR_TLS_CERTIFICATE. NULL:   */
                                  /* revocation is not looked at                                                     */
    const char *nat64_prefixes;   /* of the network, for DENY_PRIVATE_ADDRESSES, besides 64:ff9b::/96: such as       */
                                  /* "2001:db8:64::/96"; with commas between them, 8 at most. Without that flag it   */
                                  /* is INVALID_ARGUMENT                                                             */
    const char *partition;        /* of requests that name none; NULL is ""                                          */
    uint64_t max_stale_ms;        /* of requests that say 0; 0 is IMGDL_NO_LIMIT: as HTTP allows                     */
} imgdl_config;                   /* end of 1.1 */

/** Fills *config with defaults for a caller whose struct has this size; does nothing for NULL or a size below that of
 *  version 1.0. Since 1.0. */
IMGDL_API void imgdl_config_init(imgdl_config *config, size_t struct_size);

/** Makes a downloader. Takes: config, NULL for defaults. Gives: *downloader, one reference.
 *  Returns: IMGDL_OK, INVALID_ARGUMENT (dns_servers, nat64_prefixes and pinned_public_key too, and client_key or
 *  client_key_password without client_certificate), UNSUPPORTED_OPTION, INVALID_HANDLE (executor, hooks, cache), FORKED
 *  (these), INVALID_HEADER (user_agent), INVALID_OPERATION (ca_file, crl_file, client_certificate, client_key,
 *  client_key_password or cookie_file cannot be used, private addresses denied behind a proxy), INVALID_URL (proxy),
 *  OUT_OF_MEMORY (threads, descriptors, or certificates and keys of more than 128 MiB in the process:
 *  imgdl_request.ca_file), SHUT_DOWN (the process exits). Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_create(const imgdl_config *config, imgdl_downloader **downloader);

/** The downloader that the process shares, with defaults, made at the first call (and once more after fork). Gives:
 *  *downloader, one reference to release; the process has one of its own, so that a release too many is ignored. It cannot
 *  be shut down or destroyed (INVALID_OPERATION). Returns: as imgdl_downloader_create. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_shared(imgdl_downloader **downloader);

/** Another reference, and the same handle; NULL for an invalid one. Since 1.0. */
IMGDL_API imgdl_downloader *imgdl_downloader_retain(imgdl_downloader *downloader);

/** Gives a reference back; NULL and stale handles are ignored. With the last one the downloader takes no more requests,
 *  lets those it has run to their end, and is gone. Never waits. Since 1.0. */
IMGDL_API void imgdl_downloader_release(imgdl_downloader *downloader);

/** Sets a header of every request that is handed over from now on; what waits in the queue keeps the ones of its own
 *  time. Value NULL takes it out of the requests, also a default one. The defaults are Accept (any image, then anything) and
 *  User-Agent. Returns: IMGDL_OK, INVALID_HEADER, INVALID_ARGUMENT (name NULL), INVALID_HANDLE, FORKED. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_set_header(imgdl_downloader *downloader, const char *name,
                                                                 const char *value);

/** The value that later requests carry; what imgdl_downloader_set_header set, or the default. Names compare without regard
 *  to case. Writes it with its NUL to buffer, as far as size reaches. Gives: *length, without the NUL; may be NULL.
 *  Returns: IMGDL_OK, NOT_READY (no such header), INVALID_ARGUMENT, INVALID_HANDLE, FORKED. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_get_header(imgdl_downloader *downloader, const char *name,
                                                                 char *buffer, size_t size, size_t *length);

/** How many transfers may run, 1 to IMGDL_MAX_CONCURRENT_LIMIT. Fewer than now: the running ones run on.
 *  Returns: IMGDL_OK, INVALID_ARGUMENT, INVALID_HANDLE, FORKED. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_set_max_concurrent(imgdl_downloader *downloader,
                                                                         uint32_t max_concurrent);

/** The same for each host; 0: no limit of its own. Returns: as set_max_concurrent. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_set_max_per_host(imgdl_downloader *downloader, uint32_t max_per_host);

/** What imgdl_downloader_set_max_concurrent or the config set; 0 for an invalid handle. Since 1.1. */
IMGDL_API uint32_t imgdl_downloader_max_concurrent(imgdl_downloader *downloader);
/** Whether it is suspended: 1 or 0. Since 1.1. */
IMGDL_API int32_t imgdl_downloader_is_suspended(imgdl_downloader *downloader);

/** IMGDL_ORDER_FIFO or IMGDL_ORDER_LIFO, for requests made from now on. Returns: as set_max_concurrent. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_set_order(imgdl_downloader *downloader, imgdl_order order);

/** While suspended (not 0) nothing that waits is started; what runs runs on. No effect after a shutdown.
 *  Returns: IMGDL_OK, INVALID_HANDLE, FORKED. Since 1.0. */
IMGDL_API imgdl_status imgdl_downloader_set_suspended(imgdl_downloader *downloader, int32_t suspended);

/** From now on only requests with IMGDL_REQUEST_CONTINUE_IN_BACKGROUND start and run; the transfers of the others pause, and
 *  their clocks with them. None of them sends a request before the foreground: neither what a redirect or a hook's answer
 *  leads to nor one that waits for a connection, is asked for a password, or whose connection has ended; such a request
 *  begins anew in the foreground, with its whole connect timeout and at no retry's cost. Only what is being sent at that very
 *  moment goes out, and a connection that is being made may still be made, with what it takes: TLS, a proxy's tunnel. After
 *  grace_ms (0: no end) requests with that flag that still run or wait end with BACKGROUND_EXPIRED; those made after that wait for
 *  the foreground as the ones without it do, or for a new grace. Again: a new grace. Returns: IMGDL_OK, INVALID_HANDLE,
 *  FORKED. Since 1.1. */
IMGDL_API imgdl_status imgdl_downloader_enter_background(imgdl_downloader *downloader, uint32_t grace_ms);
/** As before. Returns: IMGDL_OK, INVALID_HANDLE, FORKED. Since 1.1. */
IMGDL_API imgdl_status imgdl_downloader_enter_foreground(imgdl_downloader *downloader);

/** Says that the network may be another one, as after a sleep, a new Wi-Fi or a VPN: connections that are open may be dead
 *  without a word. None of them, idle or in use, serves what is sent once this has returned: requests that have begun and
 *  are not sent yet, redirects, what a hook answers (also the one that calls this), retries. What runs on them, or is being
 *  sent at that very moment, runs on. Addresses of names and URLs that failed (failure_ttl_ms) are forgotten. The downloader
 *  finds out by itself where the machine or the process has slept for more than 10 s. Threads: any. Returns: IMGDL_OK,
 *  INVALID_HANDLE, FORKED. Since 1.1. */
IMGDL_API imgdl_status imgdl_downloader_network_changed(imgdl_downloader *downloader);

/** Takes no more requests (INVALID_OPERATION), until imgdl_downloader_reconfigure. cancels not 0: cancels what there is;
 *  0: what runs runs to its end, what waits ends with INVALID_OPERATION, in batches too. Returns: IMGDL_OK, INVALID_OPERATION (the shared
 *  downloader), INVALID_HANDLE, FORKED. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_invalidate(imgdl_downloader *downloader, int32_t cancels);

/** A new session on a living downloader: cancels what there is, closes its connections, forgets its cookies in memory, and
 *  goes on with this config; decode_threads and executor stay. Headers that were set stay. Returns: as
 *  imgdl_downloader_create, and INVALID_OPERATION (the shared downloader), INVALID_HANDLE, FORKED, SHUT_DOWN. On failure
 *  nothing has changed. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_reconfigure(imgdl_downloader *downloader, const imgdl_config *config);

/** Cancels every download accepted so far that has not ended. What has ended, and waits to be told, is told as it ended, but in
 *  a batch, where it is cancelled as by imgdl_batch_cancel. Returns: IMGDL_OK, INVALID_HANDLE, FORKED. Since 1.0. */
IMGDL_API imgdl_status imgdl_downloader_cancel_all(imgdl_downloader *downloader);

/** Accepted downloads whose terminal callback has not begun; 0 for an invalid handle. Since 1.0. */
IMGDL_API uint64_t imgdl_downloader_current_count(imgdl_downloader *downloader);

/** Waits until every accepted download has had its terminal callback and its destructor has returned, timeout_ms at
 *  most (negative: without limit). Returns: IMGDL_OK, WAIT_TIMEOUT, WOULD_DEADLOCK (on a thread of the library, inside a
 *  callback or destructor of this downloader, or on the thread of a pumped executor that downloads are outstanding on: the one
 *  that dispatched it last or, before that, made it, until your last release, and one that is inside that release; never
 *  where nothing is left to wait for), SHUT_DOWN (the process exits),
 *  INVALID_HANDLE, FORKED. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_wait_idle(imgdl_downloader *downloader, int64_t timeout_ms);

typedef uint32_t imgdl_shutdown_mode;
enum {
    IMGDL_SHUTDOWN_FINISH = 0, /* accepted downloads run to their end */
    IMGDL_SHUTDOWN_CANCEL = 1  /* they are cancelled                  */
};

/** Takes no more requests and ends. Every outstanding terminal is delivered on its own executor; done comes last, on the
 *  downloader's last thread, which ends with it, when no other thread, descriptor or connection of the downloader is left.
 *  Called again with CANCEL it hurries a FINISH up; each done is called, also after the end: then on a thread of its own, or,
 *  where the system gives none, before the return. Ending needs no thread that is not there. Does not release the handle.
 *  Takes:   done, may be NULL; it is called when IMGDL_OK is returned, and only then, but not once exit() has begun.
 *  Returns: IMGDL_OK, INVALID_ARGUMENT (mode), INVALID_OPERATION (the shared downloader), INVALID_HANDLE, FORKED.
 *  Since:   1.0 */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_shutdown(imgdl_downloader *downloader, imgdl_shutdown_mode mode,
                                                               void (*done)(void *user_data), void *user_data);

/** Shutdown with cancel, waiting for its end, and release of one reference. Inside a callback, of whatever downloader, or
 *  where it would wait for the calling thread, it does not wait: what callbacks use must live until their destructors have
 *  run. Two threads that dispatch, and destroy outside callbacks what the other one has to be told, wait for each other.
 *  Returns: IMGDL_OK, INVALID_OPERATION (the shared downloader), INVALID_HANDLE, FORKED (released all the same). Since 1.0. */
IMGDL_API imgdl_status imgdl_downloader_destroy(imgdl_downloader *downloader);

/* ------------------------------------------------------------------------------------------------------------------
 * 11  Downloads and tokens
 * --------------------------------------------------------------------------------------------------------------- */

/** Asks for one download.
 *  Takes:   request, read before return; strings, headers and body are copied.
 *  Gives:   *token, one reference; token may be NULL for callers that never cancel or wait.
 *  Calls:   request->callback: any events of the mask, then TERMINAL once, then request->destructor once. When an error
 *           is returned only the destructor is called, before the return.
 *  Returns: IMGDL_OK, INVALID_URL, UNSUPPORTED_SCHEME, INVALID_HEADER (headers, method), INVALID_ARGUMENT,
 *           UNSUPPORTED_OPTION, INVALID_OPERATION (after imgdl_downloader_invalidate), SHUT_DOWN, INVALID_HANDLE
 *           (downloader, executor), FORKED, OUT_OF_MEMORY.
 *  Since:   1.0 */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_download(imgdl_downloader *downloader, const imgdl_request *request,
                                                    imgdl_token **token);

/** Cancels this download alone; others that share its transfer go on, and the transfer ends with its last one. Any
 *  number of times, at any time. Afterwards nothing is delivered but TERMINAL with IMGDL_ERROR_CANCELLED; only a callback
 *  that has begun, or is about to begin on another thread at this moment, stays what it is. Returns: IMGDL_OK (also when
 *  there is nothing left to cancel), INVALID_HANDLE, FORKED. Since 1.0. */
IMGDL_API imgdl_status imgdl_token_cancel(imgdl_token *token);

/** Changes the priority of this download; a transfer has the highest of those that share it. Returns: IMGDL_OK,
 *  INVALID_ARGUMENT, INVALID_HANDLE, FORKED. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_token_set_priority(imgdl_token *token, imgdl_priority priority);

/** Waits until the terminal callback of this download and its destructor have returned (without a callback: until the result
 *  is there), timeout_ms at most (negative: without limit). Returns: IMGDL_OK whatever the result, WAIT_TIMEOUT,
 *  WOULD_DEADLOCK (on a thread of the library or of the executor that it would wait for, and inside its own destructor),
 *  SHUT_DOWN (the process exits), INVALID_HANDLE, FORKED. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_token_wait(imgdl_token *token, int64_t timeout_ms);

/* How a download ended. Everything in it is borrowed from the token: valid until that is released. */
typedef struct imgdl_result {
    uint32_t struct_size;
    imgdl_status code;
    int32_t http_status;
    uint32_t reserved;
    const char *message;            /* as in the terminal event */
    imgdl_image *image;             /* only of requests without a callback, like data and response */
    imgdl_data *data;
    const imgdl_response *response;
    /* since 1.1 */
    const char *content_type;       /* these four as in the terminal event */
    const void *preview;
    size_t preview_length;
    const imgdl_metrics *metrics;
} imgdl_result;                     /* end of 1.1 */

/** Fills *result with zeros, its size, the code NOT_READY and a message that says so: what nobody fills is no success.
 *  Since 1.0. */
IMGDL_API void imgdl_result_init(imgdl_result *result, size_t struct_size);

/** Fills *result. Returns: IMGDL_OK whatever the download's own code, NOT_READY before its end, INVALID_ARGUMENT,
 *  UNSUPPORTED_OPTION, INVALID_HANDLE, FORKED. Since 1.0. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_token_result(imgdl_token *token, imgdl_result *result);

/** A number that no other download of this process has or had: for logs. 0 for an invalid handle. Since 1.0. */
IMGDL_API uint64_t imgdl_token_id(imgdl_token *token);

/** Another reference, and the same handle; NULL for an invalid one. Since 1.0. */
IMGDL_API imgdl_token *imgdl_token_retain(imgdl_token *token);

/** Gives a reference back. The download goes on: releasing is not cancelling. NULL and stale handles are ignored.
 *  Since 1.0. */
IMGDL_API void imgdl_token_release(imgdl_token *token);

/* ------------------------------------------------------------------------------------------------------------------
 * 12  Batches
 *
 * A list of requests with one progress: prefetching for a list that scrolls, filling a cache (section 15), or a set of
 * files. A batch keeps few of its requests going at a time, at low priority, so that others come first. It holds what it
 * has not asked for yet itself: imgdl_downloader_current_count does not count that, imgdl_downloader_wait_idle waits for
 * it too. With imgdl_downloader_cancel_all every batch is cancelled. When the downloader is shut down, destroyed or
 * released, what a batch has not asked for ends with CANCELLED; IMGDL_SHUTDOWN_FINISH and release let run what it has.
 * --------------------------------------------------------------------------------------------------------------- */

typedef struct imgdl_batch_progress {
    uint32_t struct_size;
    int32_t is_finished; /* 1: the last call */
    size_t finished;     /* succeeded, failed or cancelled */
    size_t failed;       /* of these; not the cancelled ones */
    size_t cancelled;
    size_t total;
} imgdl_batch_progress;  /* end of 1.1 */

#define IMGDL_DEFAULT_BATCH_WIDTH 3u

typedef struct imgdl_batch_options {
    uint32_t struct_size;
    uint32_t max_concurrent;  /* of this batch; 0 is IMGDL_DEFAULT_BATCH_WIDTH                                       */
    imgdl_executor *executor; /* of progress; NULL: the downloader's                                                 */
    void (*progress)(const imgdl_batch_progress *progress, void *user_data); /* after each end; never two at a time  */
    imgdl_destructor destructor;
    void *user_data;
    uint32_t keeps_priority;  /* not 0: each request has its own; 0: all are IMGDL_PRIORITY_LOW                      */
    uint32_t reserved;
} imgdl_batch_options;        /* end of 1.1 */

/** Fills *options with defaults. Since 1.1. */
IMGDL_API void imgdl_batch_options_init(imgdl_batch_options *options, size_t struct_size);

/** Asks for all of them. Each request is one of imgdl_download with its own callback, flags and executor (NULL callback: its
 *  result is dropped; to fill a cache without decoding ask for IMGDL_REQUEST_BODY, with IMGDL_CACHE_USE).
 *  Takes:   count requests, all of one struct_size, read and checked before return; one that is not valid refuses the
 *           batch as a whole, its number is in imgdl_last_error (requests[0] is the first). options, NULL for defaults.
 *  Gives:   *batch, one reference; may be NULL. Written before anything is called.
 *  Calls:   progress for each, after its own TERMINAL, is_finished with the last; with an empty list once, with zeros.
 *           Where it is inline it runs where a TERMINAL of the batch did, as in a dispatch of yours: with two on two
 *           threads at once, one of the threads may tell both. Then the destructor.
 *  Returns: as imgdl_download. Where it is an error only the destructors are called, the requests' and the options'.
 *           Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_prefetch(imgdl_downloader *downloader, const imgdl_request *requests,
                                                               size_t count, const imgdl_batch_options *options,
                                                               imgdl_batch **batch);
/** Cancels all that have not ended, those that wait to be asked for too: each has its TERMINAL; progress is told,
 *  is_finished included. Returns: IMGDL_OK, INVALID_HANDLE, FORKED.
 *  Since 1.1. */
IMGDL_API imgdl_status imgdl_batch_cancel(imgdl_batch *batch);
/** Not 0: no further request of the batch is begun until 0. Returns: as cancel. Since 1.1. */
IMGDL_API imgdl_status imgdl_batch_set_paused(imgdl_batch *batch, int32_t paused);
/** Another priority for the whole batch, waiting ones and running ones. Returns: as cancel, INVALID_ARGUMENT. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_batch_set_priority(imgdl_batch *batch, imgdl_priority priority);
/** How far it is. Returns: IMGDL_OK, INVALID_HANDLE, INVALID_ARGUMENT, FORKED. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_batch_progress_get(imgdl_batch *batch, imgdl_batch_progress *progress);
/** Another reference, and the same handle. Since 1.1. */
IMGDL_API imgdl_batch *imgdl_batch_retain(imgdl_batch *batch);
/** Gives a reference back. The batch goes on. Since 1.1. */
IMGDL_API void imgdl_batch_release(imgdl_batch *batch);

/* ------------------------------------------------------------------------------------------------------------------
 * 13  Observing
 * --------------------------------------------------------------------------------------------------------------- */

/* Where the time of a download went, in nanoseconds; 0 where there was none. The transfer's, of its last attempt, except
 * where said. */
struct imgdl_metrics {
    uint32_t struct_size;
    int32_t http_version;     /* 10, 11, 20; 0 before an answer                                                      */
    int64_t queue_ns;         /* from imgdl_download to the start of the transfer, for this request                  */
    int64_t resolve_ns;       /* the name                                                                            */
    int64_t connect_ns;       /* TCP                                                                                 */
    int64_t tls_ns;
    int64_t first_byte_ns;    /* from the request's end to the first byte of the answer                              */
    int64_t body_ns;          /* from the first byte to the last                                                     */
    int64_t transfer_ns;      /* from the start of the first attempt to the last byte, hops and waits included       */
    int64_t decode_ns;        /* on a thread, for this request's decode options                                      */
    int64_t total_ns;         /* from imgdl_download to the terminal                                                 */
    int64_t bytes_received;   /* on the wire: heads and bodies of all hops and attempts that have ended, as sent; not */
                              /* of an exchange that was cancelled                                                  */
    int64_t bytes_sent;       /* likewise                                                                            */
    int64_t body_bytes;       /* of the body, Content-Encoding undone                                                */
    uint32_t redirect_count;
    uint32_t retry_count;
    int32_t is_connection_reused;
    int32_t is_shared;        /* the transfer was there before this request                                          */
    const char *address;      /* of the server, numeric; "" before a connection. Lives as long as what holds this    */
};                            /* end of 1.1 */

/** Fills *metrics with zeros and its size. Since 1.1. */
IMGDL_API void imgdl_metrics_init(imgdl_metrics *metrics, size_t struct_size);

/** Of a download, so far. address lives as long as the token. Returns: IMGDL_OK, NOT_READY (it waits), INVALID_ARGUMENT,
 *  UNSUPPORTED_OPTION, INVALID_HANDLE, FORKED. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_token_metrics(imgdl_token *token, imgdl_metrics *metrics);

/* What an observer is told of each transfer, in this order; STOPPED and FINISHED come before the terminals of the requests
 * that have not left it before. A transfer that never left the queue is not observed. */
enum {
    IMGDL_OBSERVED_STARTED = 1,  /* it has left the queue, or tries again (retry_count)                              */
    IMGDL_OBSERVED_RESPONSE = 2, /* a head is there that no redirect follows, also one that is then refused          */
    IMGDL_OBSERVED_STOPPED = 3,  /* it has ended at the network, for whatever reason; code, metrics                  */
    IMGDL_OBSERVED_FINISHED = 4  /* STOPPED was with IMGDL_OK: the whole body is there. Its picture may be broken     */
};

typedef struct imgdl_observation {
    uint32_t struct_size;
    uint32_t kind;
    uint64_t transfer;       /* a number for each transfer                                                           */
    const char *url;         /* with dots for the values in its query                                                */
    imgdl_status code;       /* STOPPED: IMGDL_OK or the error                                                       */
    int32_t http_status;
    uint32_t subscriber_count;
    uint32_t retry_count;
    const imgdl_metrics *metrics; /* STOPPED, FINISHED                                                               */
} imgdl_observation;         /* end of 1.1 */

typedef void (*imgdl_observer)(const imgdl_observation *observation, void *user_data);

/** One observer for all transfers of the downloader; NULL takes it out. It is called on the library's thread that drives
 *  them: be quick. destructor is called when nothing will be called any more: soon after another one was set, at the
 *  downloader's end, or before the return of an error. Returns: IMGDL_OK, INVALID_HANDLE, FORKED.
 *  Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_set_observer(imgdl_downloader *downloader, imgdl_observer observer,
                                                                   void *user_data, imgdl_destructor destructor);

/* How long something took, over all transfers: bucket i counts times below 2^i microseconds (and not below 2^(i-1)). */
typedef struct imgdl_histogram {
    uint64_t count;
    uint64_t sum_us;
    uint64_t buckets[40];
} imgdl_histogram;

/** The time in microseconds that a part q (0 to 1) of them stayed below, interpolated: 0.5 is the median. 0 when there is
 *  none. Since 1.1. */
IMGDL_API double imgdl_histogram_quantile(const imgdl_histogram *histogram, double q);

typedef struct imgdl_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t submitted, succeeded, failed, cancelled; /* requests                                                    */
    uint64_t shared;                                  /* requests that joined a transfer                             */
    uint64_t transfers, retries, redirects, connections; /* connections: made, not used again                        */
    uint64_t bytes_received, bytes_sent, pixels;
    uint64_t waiting, running, paused, decoding;      /* transfers, now                                              */
    uint64_t memory;                                  /* bytes of bodies and pixels in work or not yet taken, and of */
                                                      /* what undoing Content-Encodings takes, now: above            */
                                                      /* memory_budget where executors, hooks or codings keep it     */
    uint64_t memory_peak;
    imgdl_histogram queue, resolve, connect, tls, first_byte, transfer, decode, total;
} imgdl_stats;                                        /* end of 1.1 */

/** Fills *stats with zeros and its size. Since 1.1. */
IMGDL_API void imgdl_stats_init(imgdl_stats *stats, size_t struct_size);

/** Since the downloader was made. Returns: IMGDL_OK, INVALID_ARGUMENT, UNSUPPORTED_OPTION, INVALID_HANDLE, FORKED.
 *  Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_downloader_stats(imgdl_downloader *downloader, imgdl_stats *stats);

/* What the library is to do without, each level with all that is below it. */
typedef uint32_t imgdl_trim_level;
enum {
    IMGDL_TRIM_UNUSED = 1,      /* memory of pictures and bodies that nobody has, and what is kept of transfers that  */
                                /* have ended. Costs some page faults                                                */
    IMGDL_TRIM_CONNECTIONS = 2, /* idle connections, with their TLS sessions: the next requests make new ones         */
    IMGDL_TRIM_CACHES = 3       /* bodies and decoded images that caches have in memory. What is on disk stays; what  */
                                /* a cache without a directory had is fetched anew                                   */
};

/** Gives memory back to the system, when that is short of it, for every downloader and cache of the process. No download is
 *  disturbed. A picture or body of a cache that somebody else has too, such as a token, leaves the cache, and its memory
 *  goes with the last reference. Returns: how many bytes of pictures and bodies have been given back when the call returns.
 *  What somebody still has is not counted, nor are handles of transfers and connections, which a downloader's own thread
 *  gives up a moment later. 0 for a level below IMGDL_TRIM_UNUSED; one above the last is as the last. Never waits for disk or
 *  network. What malloc keeps of it is malloc's (malloc_trim). In the child of a fork what it has made itself. Since 1.1. */
IMGDL_API uint64_t imgdl_trim(imgdl_trim_level level);

/* ------------------------------------------------------------------------------------------------------------------
 * 14  Plug-ins: own codecs, own schemes
 * --------------------------------------------------------------------------------------------------------------- */

/* A codec of yours. can_decode, create and the destructor may be called on several threads at the same time; one decoder is
 * used by one thread at a time. What its functions return is an error of imgdl_status; anything else, and IMGDL_OK without an
 * image, is IMGDL_ERROR_INTERNAL. An error stays: after one only partial, to salvage, and destroy are called. */
typedef struct imgdl_coder_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* 1: yes; 0: no; -1: more bytes are needed to tell. The first 64 bytes, or fewer, must be enough. */
    int32_t (*can_decode)(const void *prefix, size_t length, void *user_data);
    void *(*create)(const imgdl_decode_options *options, void *user_data); /* NULL: out of memory */
    imgdl_status (*feed)(void *decoder, const void *bytes, size_t length);
    /* Fills *info, of this version's size; format is not read. IMGDL_ERROR_NOT_READY while unknown. An orientation other than
     * 0 and 1 says that the images are as stored, and the library turns them; width and height are of the turned picture. */
    imgdl_status (*info)(void *decoder, imgdl_image_info *info);
    /* The picture so far, with a reference that is the library's then; NOT_READY for nothing new. May be NULL. */
    imgdl_status (*partial)(void *decoder, imgdl_image **image);
    /* The whole picture, likewise, or the error. Options that it does not obey (size, orientation, pixel format) the
     * library applies afterwards. IMGDL_ERROR_TRUNCATED when bytes are missing. */
    imgdl_status (*finish)(void *decoder, imgdl_image **image);
    void (*destroy)(void *decoder);
    void *user_data;
    void (*destructor)(void *user_data);
} imgdl_coder_table; /* end of 1.1 */

/** For every downloader and imgdl_decode of the process. The newest that can decode something is asked first, and all of
 *  them before the library's own; one that is named in imgdl_decode_options is not asked can_decode. Gives: *coder, one
 *  reference; releasing it takes the codec out again, what decodes with it goes on. The destructor runs when nothing does any
 *  more; not when an error is returned. Returns: IMGDL_OK, INVALID_ARGUMENT (a function but partial is NULL),
 *  UNSUPPORTED_OPTION. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_coder_register(const imgdl_coder_table *table, imgdl_coder **coder);
/** Takes it out. Since 1.1. */
IMGDL_API void imgdl_coder_release(imgdl_coder *coder);

/* A loader of yours for a scheme: "app" for app://…, or "https" in place of the built-in one. Requests share its transfers,
 * and limits, timeouts, retries and validation hold for them, as for any other. URLs of schemes other than http and https are
 * given as they are, percent-encoded where that is needed. A redirect leads to http and https alone. */
typedef struct imgdl_transport_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* Begins; called on the library's thread, must not wait. transfer is a handle to report with, from any thread, inside
     * this call too; one thread at a time. What it returns is given to cancel. Credentials come as an Authorization header. */
    void *(*start)(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user_data);
    /* Nobody wants it any more: report nothing further, release transfer. Called on the library's thread, once at most. It
     * neither runs nor begins any more when imgdl_transfer_end or _release has returned on another thread: what started
     * points to can be freed then. (These two wait for it, so hold no lock there that cancel takes; and inside a cancel
     * or resume end no transfer of another downloader that may do the same to this one: each would wait for the other.) */
    void (*cancel)(void *started, void *user_data);
    void *user_data;
    void (*destructor)(void *user_data);
    /* imgdl_transfer_body has answered NOT_READY, and now may be called again, with the same bytes. Called on the library's
     * thread, must not wait; as cancel it neither runs nor begins any more when imgdl_transfer_end or _release has returned
     * on another thread, and never after cancel. NULL: no body can be told to wait, see imgdl_transfer_body. */
    void (*resume)(void *started, void *user_data);
} imgdl_transport_table; /* end of 1.1 */

/** Takes: scheme in letters, digits, +, - and . (RFC 3986 section 3.1); table NULL takes it out (the built-in one is back).
 *  Running transfers are not touched, and no request that comes later joins one of that scheme. What a loader for http or
 *  https gives is not stored in a cache, nor does what is stored answer for it (IMGDL_CACHE_ONLY: NOT_CACHED). The
 *  destructor runs once when the table was taken out or the downloader has ended and no transfer uses it; not when an error
 *  is returned. Returns: IMGDL_OK, INVALID_ARGUMENT, UNSUPPORTED_OPTION, INVALID_HANDLE, FORKED, SHUT_DOWN. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_transport_register(imgdl_downloader *downloader, const char *scheme,
                                                              const imgdl_transport_table *table);
/** Reports the head, once, before the body: status 200, say, and headers (Content-Length, Content-Type …); copied.
 *  Returns: IMGDL_OK (also when nobody listens any more), INVALID_OPERATION (out of order), INVALID_ARGUMENT,
 *  INVALID_HEADER, INVALID_HANDLE, FORKED. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_transfer_response(imgdl_transfer *transfer, int32_t status,
                                                             const imgdl_header *headers, size_t header_count);
/** Reports bytes of the body, a Content-Encoding undone; copied. Fewer or more than Content-Length are TRUNCATED and PROTOCOL.
 *  While the transfer is paused (memory_budget is used up, the downloader is in the background, a hook owes an answer), or
 *  what came before is still on its way, bytes are held: 1 MiB for each transfer, which counts for memory_budget and
 *  max_body_bytes. A call that brings more answers NOT_READY, nothing of it is taken, and resume is called once it may be
 *  made again. Otherwise one call may bring as much as there is. What is more than max_body_bytes, held or offered, ends in
 *  BODY_LIMIT at once, paused or not: cancel is called. (While a hook is asked about a response that the request would not
 *  take as it is, a 401 say, that is seen with the answer.)
 *  Returns: as imgdl_transfer_response, and NOT_READY; with a table without resume instead BODY_LIMIT, when more than 64 MiB
 *  would be held: it is the end, whatever the transfer waits for, as by imgdl_transfer_end; cancel is not called. What a hook
 *  answers after such an end goes nowhere. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_transfer_body(imgdl_transfer *transfer, const void *bytes, size_t length);
/** Reports the end: IMGDL_OK, or why it failed, with a sentence or NULL. Returns: as imgdl_transfer_response. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_transfer_end(imgdl_transfer *transfer, imgdl_status code, const char *message);
/** Gives the handle back; without an end before it the transfer fails with CONNECTION_LOST. Since 1.1. */
IMGDL_API void imgdl_transfer_release(imgdl_transfer *transfer);

/* ------------------------------------------------------------------------------------------------------------------
 * 15  The HTTP cache
 *
 *     imgdl_cache_config options;
 *     imgdl_cache *cache = NULL;
 *     imgdl_cache_config_init(&options, sizeof options);
 *     options.directory = "/home/me/.cache/viewer";
 *     options.max_memory_bytes = 16u << 20;
 *     imgdl_status status = imgdl_cache_open(&options, &cache);
 *     config.cache = cache;                       // of imgdl_downloader_create
 *     config.cache_mode = IMGDL_CACHE_USE;        // or of each request
 *     if (status == IMGDL_OK)
 *         status = imgdl_downloader_create(&config, &downloader);
 *     imgdl_cache_release(cache);                 // the downloader holds it
 *
 * A private cache as RFC 9111 describes one: freshness, validation, Vary, heuristics, invalidation, Age, and RFC 5861's
 * stale-while-revalidate and stale-if-error. Off unless a downloader is given one and a mode that uses it.
 *
 * Stored     answers to GET over http and https that their server allows to be kept, redirects too, Content-Encoding
 *            undone. They answer HEAD, conditions (If-None-Match, If-Modified-Since: 304) and one range, too; what a Range
 *            of your own brought (206) answers ranges within it. Not stored: no-store, demands for credentials (401), answers
 *            to other methods, Vary: *, file: and data: URLs, what loaders of yours give. All methods but
 *            GET, HEAD, OPTIONS and TRACE, such as PUT, POST, PATCH and DELETE, remove what is stored for their URL when
 *            they succeed.
 *            An error such as a 404 is stored, and answers for its max-age, where a request takes it as an answer: with
 *            ANY_STATUS, or accepted_statuses that name it. To requests that do not, such a stored one is INVALID_STATUS.
 *            A response that ends in INVALID_STATUS or INVALID_CONTENT_TYPE at the server is not stored.
 *            A body that turns out to be no picture, or a damaged one (BAD_IMAGE_DATA, TRUNCATED, without a
 *            transform_body hook and a coder of the request's own), is not used again before the server was asked, by
 *            whatever request but one with IMGDL_CACHE_ONLY, which gets it as stale; what fails after that is fetched
 *            anew. A limit of the request's says nothing of the body.
 * Stale      What has outlived its freshness answers, with IMGDL_CACHE_OUTCOME_STALE, in these cases alone: the request
 *            has Cache-Control: max-stale (at once, without the server); the response has stale-while-revalidate, and no
 *            request that shares the transfer has IMGDL_REQUEST_IGNORE_CACHED (but with only-if-cached); the server cannot
 *            be reached (no address, no connection, a lost one, the proxy, a flood, or connect_timeout_ms or idle_timeout_ms
 *            is over, before its answer has begun) and neither side has stale-if-error, for any time; either has
 *            stale-if-error, for that time, and the server cannot be reached or answers 500, 502, 503 or 504;
 *            IMGDL_CACHE_ONLY. Of a server that cannot be reached the request's retries come first, with the times between
 *            them; total_timeout_ms ends the request without a stale answer. Responses with must-revalidate or no-cache
 *            answer so with IMGDL_CACHE_ONLY alone; there what has no-cache is stale from the moment on that it was made
 *            or validated. Nothing stored, fresh or stale, answers a request with IMGDL_CACHE_RELOAD, or, even with
 *            IMGDL_CACHE_ONLY, with Cache-Control: no-store, If-Match or If-Unmodified-Since. Nothing stale answers one
 *            with IMGDL_CACHE_REFRESH; nor, but for IMGDL_CACHE_ONLY, one with no-cache or min-fresh in its Cache-Control;
 *            one with max-age gets only what its max-stale allows, no older than that max-age. For a server that cannot be
 *            reached, or answers so, a GET of the whole alone gets it: no HEAD, Range or conditions of your own.
 *            max_stale_ms bounds all of them. An answer that comes and is not stored (no-store, 404, too large) makes what
 *            is stored stale for who has asked, from then on, and no stale-while-revalidate holds for it until its server
 *            was asked.
 * Background Nobody waits for validations after a stale answer (stale-while-revalidate): each has 30 s, and ends as soon as a
 *            request waits for the place that it takes. Each has the timeouts, max_body_bytes, accepted_statuses and
 *            accepted_types of the request that was answered, of several that shared a transfer those of the first: what that
 *            would not take, or what may not be stored, leaves what is stored as it is.
 * Whose      What is stored answers requests of the same context alone: credentials, the Cookie field (given, or what the jar
 *            would send), TLS options with what is in their files, proxy, denied addresses, partition, Host, and all header
 *            fields of yours but a few that say nothing of who asks (docs/caching.md has them, as a table). Of the same TLS
 *            options, proxy, denial and partition an answer with `public` is for all credentials and cookies; what the server
 *            says of it to others (304, HEAD) without `public` is theirs. What came with ALLOW_INVALID_CERTIFICATES is not
 *            stored, and what is stored answers no request with it, over https or http. Bodies, URLs and headers lie on the disk
 *            as they are, readable to their user alone, contexts as keyed digests.
 * Modes      imgdl_cache_mode, of the request, else of the downloader. Cache-Control, Pragma, Range and conditions among the
 *            headers of a request are obeyed besides. A request with a modify_request hook looks into the cache when its
 *            turn comes, after the hook; all others before they wait in the queue, and what is stored answers them
 *            without a place in it. Where an answer came from, imgdl_response.cache_outcome tells.
 * Resuming   What a transfer that broke off, or was cancelled, has received is kept, if its answer was a 200 with a strong
 *            ETag (or a Last-Modified a minute older than its Date) and no Content-Encoding. The next request continues it
 *            (Range, If-Range); its decoder gets what is there at once. A server that does not go along costs no retry.
 * Processes  Any number of processes, caches and downloaders may use one directory at the same time; only the child of a
 *            fork() does not get at one that was open then (UNWRITABLE). What is served was wholly written and has the
 *            checksum that it was stored with, also after kill -9 or a full disk. A crash loses at most what was stored in
 *            the last second (where the disk stands still, the last 256 answers; while another program writes to the index,
 *            what has come since it began, for the five seconds that it is waited for), a power cut what was not flushed.
 * Memory     Two tiers, each with a size of its own: bodies as received, and decoded images. An image comes from there for
 *            requests with the same decode options, the same one for everybody.
 * Limits     What is stored counts with all that it takes: bodies in blocks of 4 KiB, headers, URLs, and some hundred bytes
 *            for each answer, in memory likewise. One that takes more than half of max_memory_bytes is never kept in memory.
 *            Room is made before anything is written: what was used least recently goes
 *            first, and what has not been used for max_age_s goes from the disk in the background, and from memory
 *            when anything is asked for or stored. By the blocks of its files the directory
 *            never holds more than max_bytes and a tenth, one body for each process that is writing, and 8 MiB for index and
 *            log. Of one URL 32 variants (Vary, contexts, ranges) are kept. What validations add to headers stays within the
 *            limit of one head, 256 KiB.
 * Behind     No download waits for an answer to be written. Before a download begins, the cache is asked what it has; that
 *            does wait for the disk. Cancelling ends it, no timeout does. What comes while 32 MiB wait to be written, has waited
 *            for 0.3 seconds with 256 others behind it, or has no room within max_bytes, is not stored: it is counted
 *            (not_stored), and an event says so (NOT_STORED), once a second at most. So is what comes while another program reads
 *            the index in one transaction for long, once its log is full, or has been writing to it for more than five seconds,
 *            and what came before another program put another key into the directory.
 *            Removals do not wait behind bodies, and have room in the log for longer; should 8 MiB of removals wait, also for a
 *            disk that does not work, all that is stored is removed once that can be.
 * Failures   A disk that is full, read-only or broken, or an index that another program has been writing to for half a minute,
 *            makes no download fail: there is an event, nothing is stored, what is there is served, and it is tried again after
 *            a second, then after twice as long each time, up to five minutes, and by each flush. A corrupt, foreign or newer
 *            index is moved aside, and begun anew. The last such one stays beside it (…aside-…), if it is no larger than an
 *            eighth of max_bytes, until you delete it; it counts.
 * --------------------------------------------------------------------------------------------------------------- */

#define IMGDL_DEFAULT_CACHE_BYTES 268435456u
#define IMGDL_DEFAULT_CACHE_MEMORY_BYTES 33554432u

/* Something the host may want to know of its cache. The library goes on. */
enum {
    IMGDL_CACHE_MOVED_ASIDE = 1, /* the index was corrupt, foreign or newer: it was renamed, and begun anew          */
    IMGDL_CACHE_UNWRITABLE = 2,  /* the disk is full, read-only or broken, or another program has been writing to    */
                                 /* the index for half a minute: nothing is stored until it works again              */
    IMGDL_CACHE_WRITABLE = 3,    /* it works again                                                                   */
    IMGDL_CACHE_NOT_STORED = 4   /* answers were not stored: the disk takes them slower than they come, max_bytes    */
                                 /* has no room for them, another program keeps reading the index or writing to it   */
                                 /* or has replaced the directory's key, or the cache was closed before; in memory   */
                                 /* alone: they take more than half of max_memory_bytes. The message says how many   */
};

typedef struct imgdl_cache_event {
    uint32_t struct_size;
    uint32_t kind;       /* IMGDL_CACHE_MOVED_ASIDE … */
    const char *message; /* names the cause, and the file where there is one; valid until the callback returns */
} imgdl_cache_event;     /* end of 1.1 */

typedef struct imgdl_cache_config {
    uint32_t struct_size;
    uint32_t reserved;
    const char *directory;      /* made when it is not there, for this user alone. NULL: in memory alone            */
    uint64_t max_bytes;         /* of what lies on the disk, see Limits; 0 is IMGDL_DEFAULT_CACHE_BYTES. Of several */
                                /* caches of a directory the smallest decides, from the moment it is opened         */
    uint64_t max_memory_bytes;  /* of bodies and headers in memory, where no answer is kept that takes more than    */
                                /* half of it; 0: none, and without a directory IMGDL_DEFAULT_CACHE_MEMORY_BYTES    */
    uint64_t max_image_bytes;   /* of decoded images; 0: none                                                       */
    uint64_t max_partial_bytes; /* of bodies that broke off, within max_bytes (without a directory: within          */
                                /* max_memory_bytes); 0: an eighth of that                                          */
    int64_t max_age_s;          /* what has not been used or validated for so long is removed, from memory when     */
                                /* anything is asked for or stored; 0: never for its age                            */
    void (*callback)(const imgdl_cache_event *event, void *user_data); /* on a thread of the cache; may be NULL.    */
                                /* In memory alone, where the system gives it none, on the thread that closes it    */
    imgdl_destructor destructor; /* of user_data; may be NULL                                                       */
    void *user_data;
} imgdl_cache_config;            /* end of 1.1 */

/** Fills *config with defaults. Since 1.1. */
IMGDL_API void imgdl_cache_config_init(imgdl_cache_config *config, size_t struct_size);

/** Opens a cache, or makes it. Waits for no other process for long. A directory that cannot be written to is no error but an
 *  UNWRITABLE event: nothing is stored on disk, and what is in it is served. One that belongs to somebody else (root's
 *  excepted, for reading) or that others may write to is not used, and never changed: the event says why, on the calling
 *  thread, and the call fails.
 *  Takes:   config, NULL for defaults.
 *  Gives:   *cache, one reference.
 *  Calls:   callback, also before the return, until the cache is closed or process exits; then the destructor, once. When
 *           an error is returned only the destructor is called, before the return; with UNSAFE_DIRECTORY the callback, too.
 *  Returns: IMGDL_OK, INVALID_ARGUMENT (an empty directory, a negative age, a size above INT64_MAX), UNSUPPORTED_OPTION,
 *           OUT_OF_MEMORY (threads, descriptors), UNSAFE_DIRECTORY, SHUT_DOWN (the process exits).
 *  Since:   1.1 */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_cache_open(const imgdl_cache_config *config, imgdl_cache **cache);

/** Another reference, and the same handle; NULL for an invalid one. Since 1.1. */
IMGDL_API imgdl_cache *imgdl_cache_retain(imgdl_cache *cache);

/** Gives a reference back; NULL and stale handles are ignored. Downloaders hold their caches, too. The last one writes what
 *  is left and closes, and waits for that (for the disk), except inside the cache's own callback. What the disk has not taken
 *  after 0.5 seconds is not stored (NOT_STORED). What was removed (a call, or a method such as POST that succeeded) and
 *  another program's writing has kept in the index has two seconds more; then its bodies are removed without the index, and
 *  answers with one are served by nobody. Those without a body, such as redirects, may remain; and all remain where the
 *  index could not be opened while the cache was open, as a program prevents that has it locked for itself, and where 8 MiB
 *  of removals had waited and imgdl_cache_clear was not called. Since 1.1. */
IMGDL_API void imgdl_cache_release(imgdl_cache *cache);

/* What is stored for a URL. Times are seconds since 1970. */
typedef struct imgdl_cache_entry {
    uint32_t struct_size;
    int32_t status;      /* such as 200                                                                             */
    int64_t body_bytes;  /* that are stored, Content-Encoding undone                                                */
    int64_t stored_s;    /* when; never later than now, as used_s, though a clock may have run ahead                */
    int64_t used_s;      /* used or validated for the last time                                                     */
    int64_t fresh_s;     /* it is fresh for so many more seconds; 0 or negative: stale for so many, as what is to be */
                         /* validated before each use (no-cache, no picture) is from the moment on that it was made; */
                         /* 0 where nobody knows: it was stored while the clock was ahead by more than a day        */
    int32_t is_complete; /* 0: the beginning of one, or a range of it                                                */
    uint32_t reserved;
} imgdl_cache_entry;     /* end of 1.1 */

/** Fills *entry with zeros and its size. Since 1.1. */
IMGDL_API void imgdl_cache_entry_init(imgdl_cache_entry *entry, size_t struct_size);

/* The functions below wait for the disk, never for the network. What an earlier download has stored they see, from its
 * terminal event on (imgdl_cache_statistics once it is written), the beginning of a cancelled one soon after. Inside the
 * cache's own callback they answer
 * WOULD_DEADLOCK; wherever else a function may be called they may. URLs are those of downloads, whatever their fragment,
 * user and password. All of them return IMGDL_OK, INVALID_HANDLE, FORKED, WOULD_DEADLOCK, and what is said besides. */

/** The newest that is stored for url, whatever its Vary says, and whoever may have it. What was stored while this machine's
 *  clock was ahead is newer than another only where its Date is later, and not in the future, too.
 *  Gives: *entry (struct_size set by imgdl_cache_entry_init).
 *  Returns besides: NOT_CACHED, INVALID_URL, UNSUPPORTED_SCHEME (not http or https), INVALID_ARGUMENT, UNSUPPORTED_OPTION.
 *  Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_cache_query(imgdl_cache *cache, const char *url, imgdl_cache_entry *entry);

/* What removes waits five seconds at most for other programs that write (a thread that draws should not call it), and on a
 * full disk makes room by what it removes. When it returns IMGDL_OK no program serves what was removed, from memory neither.
 * When it could not, it returns one of
 *
 * CACHE_BUSY        another program has been writing to the index for five seconds, or reading it for so long that its
 *                   log is full
 * DISK_FULL         no room, also after what was to be removed had gone from the disk
 * READ_ONLY         the directory may be read and not written
 * DISK_FAILED       anything else that the disk says: see imgdl_last_error
 * UNSAFE_DIRECTORY  somebody has put another directory in its place
 *
 * This program then serves it no more, other programs may, and it is removed when the disk allows that while the cache is
 * open; what imgdl_cache_remove_older could not remove stays, and is served. */

/** Removes everything that is stored for url; when there is nothing, that is no error, also on a full disk or in a directory
 *  that may only be read. Answers to requests that were sent before this call are not stored either (in a directory that this
 *  program may only read, those of others are), and no request that is made after it shares them. Returns besides:
 *  INVALID_URL, UNSUPPORTED_SCHEME, and why it could not. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_cache_remove(imgdl_cache *cache, const char *url);

/** Removes what was used or validated for the last time more than age_s whole seconds ago: what was used in this second
 *  stays, also with 0 (imgdl_cache_clear takes all). A use in the future, by a clock that ran ahead, counts as now, and so does what
 *  another program has fetched and not written yet. When nothing is that old, that is no error, as with imgdl_cache_remove.
 *  What it could not remove is not removed later: call it again. Returns besides: INVALID_ARGUMENT (negative), and why it
 *  could not. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_cache_remove_older(imgdl_cache *cache, int64_t age_s);

/** Removes everything. Answers to requests that were sent before this call are not stored either, and no request that is
 *  made after it shares them. Where a full disk has no room for saying so in the index, that goes itself. Returns besides:
 *  why it could not. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_cache_clear(imgdl_cache *cache);

/** Writes what has been stored so far to the disk for good: a power cut loses none of it. Returns besides: why it could not,
 *  as above, also, once, when something that came since the last flush could not be stored, as where the disk did not
 *  work when it came, also if it works now, where somebody has taken its file away or replaced the directory's key, or
 *  the index turned out to be damaged; imgdl_cache_stats.unflushed tells how far it came. What had no room within
 *  max_bytes, or came faster than the disk takes it, is no error here: not_stored counts it. A disk that has failed is
 *  tried again before. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_cache_flush(imgdl_cache *cache);

typedef struct imgdl_cache_stats {
    uint32_t struct_size;
    int32_t is_writable;                             /* 0: in memory alone, or see IMGDL_CACHE_UNWRITABLE           */
    uint64_t entries, bytes;                         /* on disk, those of all processes: once they are written,     */
                                                     /* see imgdl_cache_flush. Bytes are what counts for the limit, */
                                                     /* here and below                                              */
    uint64_t partial_entries, partial_bytes;         /* bodies that broke off                                       */
    uint64_t memory_entries, memory_bytes;           /* bodies in memory                                            */
    uint64_t image_entries, image_bytes;             /* decoded images                                              */
    /* Look-ups since it was opened, by this process: each is one of these, or was answered anew by a server that was asked
     * whether it is still good, or failed there. */
    uint64_t hits, memory_hits, image_hits;          /* fresh: read from disk, from memory, as a decoded image      */
    uint64_t validated, stale, misses, resumed;
    /* Likewise, once they are written. */
    uint64_t stored, evicted;
    uint64_t damaged;                                /* checksum or length wrong, or file gone: removed             */
    uint64_t not_stored;                             /* to be stored, and not: see NOT_STORED and UNWRITABLE        */
    uint64_t unflushed;                              /* stored by this process, still there, and not safe from a    */
                                                     /* power cut, see imgdl_cache_flush: 0 after one that has      */
                                                     /* written all                                                 */
} imgdl_cache_stats;                                 /* end of 1.1 */

/** Fills *stats with zeros and its size. Since 1.1. */
IMGDL_API void imgdl_cache_stats_init(imgdl_cache_stats *stats, size_t struct_size);

/** Fills *stats. Returns besides: INVALID_ARGUMENT, UNSUPPORTED_OPTION. Since 1.1. */
IMGDL_API IMGDL_CHECKED imgdl_status imgdl_cache_statistics(imgdl_cache *cache, imgdl_cache_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
