"""include/imgdl.h for ctypes, and nothing else: every constant, struct and function under the name it has there.

tests/test_header.py holds this file against the header. Handles are plain integers here (0 or None for NULL).
"""

from __future__ import annotations

import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, Structure
from ctypes import c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable

from . import _once

_once.refuse_reload(globals())

# 1  Conventions: imgdl_status and every handle

imgdl_status = c_int32
imgdl_downloader = c_void_p
imgdl_token = c_void_p
imgdl_executor = c_void_p
imgdl_decoder = c_void_p
imgdl_image = c_void_p
imgdl_data = c_void_p
imgdl_hooks = c_void_p
imgdl_continuation = c_void_p
imgdl_batch = c_void_p
imgdl_coder = c_void_p
imgdl_transfer = c_void_p
imgdl_cache = c_void_p

# 2  Version

IMGDL_VERSION_MAJOR = 1
IMGDL_VERSION_MINOR = 1
IMGDL_VERSION_PATCH = 0
IMGDL_VERSION_NUMBER = IMGDL_VERSION_MAJOR * 1000000 + IMGDL_VERSION_MINOR * 1000 + IMGDL_VERSION_PATCH
IMGDL_VERSION_STRING = b"1.1.0"

# 3  Errors

IMGDL_OK = 0
IMGDL_ERROR_INVALID_URL = 1000
IMGDL_ERROR_BAD_IMAGE_DATA = 1001
IMGDL_ERROR_NOT_MODIFIED = 1002
IMGDL_ERROR_BLACKLISTED = 1003
IMGDL_ERROR_INVALID_OPERATION = 2000
IMGDL_ERROR_INVALID_STATUS = 2001
IMGDL_ERROR_CANCELLED = 2002
IMGDL_ERROR_INVALID_RESPONSE = 2003
IMGDL_ERROR_INVALID_CONTENT_TYPE = 2004
IMGDL_ERROR_INVALID_ARGUMENT = 2100
IMGDL_ERROR_INVALID_HANDLE = 2101
IMGDL_ERROR_UNSUPPORTED_OPTION = 2102
IMGDL_ERROR_WOULD_DEADLOCK = 2103
IMGDL_ERROR_SHUT_DOWN = 2104
IMGDL_ERROR_FORKED = 2105
IMGDL_ERROR_OUT_OF_MEMORY = 2106
IMGDL_ERROR_WAIT_TIMEOUT = 2107
IMGDL_ERROR_NOT_READY = 2108
IMGDL_ERROR_INTERNAL = 2109
IMGDL_ERROR_INVALID_HEADER = 2110
IMGDL_ERROR_UNSUPPORTED_SCHEME = 2111
IMGDL_ERROR_BACKGROUND_EXPIRED = 2112
IMGDL_ERROR_RESOLVE_FAILED = 2200
IMGDL_ERROR_CONNECT_FAILED = 2201
IMGDL_ERROR_CONNECTION_LOST = 2202
IMGDL_ERROR_TLS_FAILED = 2203
IMGDL_ERROR_TLS_CERTIFICATE = 2204
IMGDL_ERROR_PROTOCOL = 2205
IMGDL_ERROR_TRUNCATED = 2206
IMGDL_ERROR_CONNECT_TIMEOUT = 2207
IMGDL_ERROR_IDLE_TIMEOUT = 2208
IMGDL_ERROR_TOTAL_TIMEOUT = 2209
IMGDL_ERROR_PROXY_FAILED = 2210
IMGDL_ERROR_TOO_MANY_REDIRECTS = 2211
IMGDL_ERROR_REDIRECT_REFUSED = 2212
IMGDL_ERROR_CONTENT_ENCODING = 2213
IMGDL_ERROR_ADDRESS_REFUSED = 2214
IMGDL_ERROR_TLS_PIN = 2215
IMGDL_ERROR_NOT_CACHED = 2216
IMGDL_ERROR_BODY_LIMIT = 2300
IMGDL_ERROR_HEADER_LIMIT = 2301
IMGDL_ERROR_PIXEL_LIMIT = 2302
IMGDL_ERROR_FRAME_LIMIT = 2303
IMGDL_ERROR_SCAN_LIMIT = 2304
IMGDL_ERROR_SIZE_LIMIT = 2305
IMGDL_ERROR_ANIMATION_LIMIT = 2306
IMGDL_ERROR_METADATA_LIMIT = 2307
IMGDL_ERROR_MEMORY_LIMIT = 2308
IMGDL_ERROR_DECODE_TIMEOUT = 2309
IMGDL_ERROR_FLOOD = 2310
IMGDL_ERROR_CACHE_BUSY = 2400
IMGDL_ERROR_DISK_FULL = 2401
IMGDL_ERROR_READ_ONLY = 2402
IMGDL_ERROR_DISK_FAILED = 2403
IMGDL_ERROR_UNSAFE_DIRECTORY = 2404
IMGDL_STATUS_FORCE32 = 0x7FFFFFFF

# 4  Images and bodies

imgdl_format = c_uint32
IMGDL_FORMAT_UNKNOWN = 0
IMGDL_FORMAT_JPEG = 1
IMGDL_FORMAT_PNG = 2
IMGDL_FORMAT_WEBP = 3
IMGDL_FORMAT_GIF = 4
IMGDL_FORMAT_OTHER = 100
IMGDL_FORMAT_FORCE32 = 0x7FFFFFFF

imgdl_pixel_format = c_uint32
IMGDL_PIXEL_FORMAT_DEFAULT = 0
IMGDL_PIXEL_FORMAT_RGBA8 = 1
IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED = 2
IMGDL_PIXEL_FORMAT_BGRA8 = 3
IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED = 4
IMGDL_PIXEL_FORMAT_RGB8 = 5
IMGDL_PIXEL_FORMAT_RGBA16 = 6
IMGDL_PIXEL_FORMAT_FORCE32 = 0x7FFFFFFF


class imgdl_rectangle(Structure):
    _fields_ = [("x", c_uint32), ("y", c_uint32), ("width", c_uint32), ("height", c_uint32)]


imgdl_colour_notes = c_uint32
imgdl_picture_notes = c_uint32
IMGDL_IMAGE_INCOMPLETE_END = 1 << 0
IMGDL_COLOUR_NOTE_ICC = 1 << 0
IMGDL_COLOUR_NOTE_SRGB = 1 << 1
IMGDL_COLOUR_NOTE_GAMMA = 1 << 2
IMGDL_COLOUR_NOTE_CHROMATICITIES = 1 << 3
IMGDL_COLOUR_NOTE_CONVERTED = 1 << 4
IMGDL_COLOUR_NOTE_UNUSABLE_PROFILE = 1 << 5
IMGDL_COLOUR_NOTE_COSTLY_PROFILE = 1 << 6

# 5  Decoding

imgdl_decode_flags = c_uint32
IMGDL_DECODE_IGNORE_ORIENTATION = 1 << 0
IMGDL_DECODE_SALVAGE = 1 << 1
IMGDL_DECODE_ALL_FRAMES = 1 << 2
IMGDL_DECODE_REQUIRE_ANIMATION = 1 << 3
IMGDL_DECODE_STRETCH = 1 << 4
IMGDL_DECODE_SCALE_DOWN = 1 << 5
IMGDL_DECODE_THUMBNAIL_FIRST = 1 << 6
imgdl_colour = c_uint32
IMGDL_COLOUR_AS_STORED = 0
IMGDL_COLOUR_SRGB = 1
IMGDL_COLOUR_FORCE32 = 0x7FFFFFFF
imgdl_allocate = CFUNCTYPE(c_void_p, c_uint32, c_uint32, c_uint32, POINTER(c_size_t), c_void_p)
imgdl_deallocate = CFUNCTYPE(None, c_void_p, c_void_p)
IMGDL_DEFAULT_MAX_PIXELS = 100000000
IMGDL_DEFAULT_MAX_FRAMES = 1000
IMGDL_DEFAULT_MAX_SCANS = 500
IMGDL_DEFAULT_MAX_METADATA_BYTES = 16777216
IMGDL_DEFAULT_MAX_MEMORY_BYTES = 1073741824
IMGDL_DEFAULT_MAX_DECODE_MS = 10000
IMGDL_NO_LIMIT = 0xFFFFFFFFFFFFFFFF
IMGDL_NO_LIMIT_32 = 0xFFFFFFFF
IMGDL_DEFAULT_SCALE_DOWN_BYTES = 62914560
IMGDL_MAX_TARGET = 1048576


class imgdl_decode_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("pixel_format", imgdl_pixel_format),
        ("flags", imgdl_decode_flags),
        ("reserved", c_uint32),
        ("max_pixels", c_uint64),
        ("target_width", c_uint32),
        ("target_height", c_uint32),
        ("max_output_bytes", c_uint64),
        ("max_frames", c_uint32),
        ("format_hint", imgdl_format),
        ("coder", imgdl_coder),
        ("max_side", c_uint32),
        ("max_scans", c_uint32),
        ("max_animation_pixels", c_uint64),
        ("max_metadata_bytes", c_uint64),
        ("max_memory_bytes", c_uint64),
        ("max_decode_ms", c_uint32),
        ("colour", imgdl_colour),
        ("allocate", imgdl_allocate),
        ("deallocate", imgdl_deallocate),
        ("allocator_user_data", c_void_p),
        ("good_enough_scan", c_uint32),
        ("reserved2", c_uint32),
    ]


class imgdl_image_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("format", imgdl_format),
        ("width", c_uint32),
        ("height", c_uint32),
        ("orientation", c_uint32),
        ("frame_count", c_uint32),
        ("has_alpha", c_int32),
        ("is_progressive", c_int32),
    ]


# 6  Executors

IMGDL_EXECUTOR_INLINE = 1

# 7  Events

imgdl_event_mask = c_uint32
IMGDL_EVENT_STARTED = 1 << 0
IMGDL_EVENT_RESPONSE = 1 << 1
IMGDL_EVENT_HEADER = 1 << 2
IMGDL_EVENT_PROGRESS = 1 << 3
IMGDL_EVENT_PARTIAL = 1 << 4
IMGDL_EVENT_TERMINAL = 1 << 5
IMGDL_EVENT_ALL = (1 << 6) - 1


class imgdl_header(Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class imgdl_hop(Structure):
    _fields_ = [("url", c_char_p), ("status", c_int32), ("reserved", c_uint32)]


imgdl_cache_outcome = c_uint32
IMGDL_CACHE_OUTCOME_NETWORK = 0
IMGDL_CACHE_OUTCOME_HIT = 1
IMGDL_CACHE_OUTCOME_VALIDATED = 2
IMGDL_CACHE_OUTCOME_STALE = 3
IMGDL_CACHE_OUTCOME_RESUMED = 4
IMGDL_CACHE_OUTCOME_FORCE32 = 0x7FFFFFFF


class imgdl_response(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("status", c_int32),
        ("http_version", c_int32),
        ("redirect_count", c_uint32),
        ("content_length", c_int64),
        ("url", c_char_p),
        ("headers", POINTER(imgdl_header)),
        ("header_count", c_size_t),
        ("hops", POINTER(imgdl_hop)),
        ("content_type", c_char_p),
        ("cache_outcome", imgdl_cache_outcome),
        ("reserved", c_uint32),
    ]


# Of section 13, which events already point to.
class imgdl_metrics(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("http_version", c_int32),
        ("queue_ns", c_int64),
        ("resolve_ns", c_int64),
        ("connect_ns", c_int64),
        ("tls_ns", c_int64),
        ("first_byte_ns", c_int64),
        ("body_ns", c_int64),
        ("transfer_ns", c_int64),
        ("decode_ns", c_int64),
        ("total_ns", c_int64),
        ("bytes_received", c_int64),
        ("bytes_sent", c_int64),
        ("body_bytes", c_int64),
        ("redirect_count", c_uint32),
        ("retry_count", c_uint32),
        ("is_connection_reused", c_int32),
        ("is_shared", c_int32),
        ("address", c_char_p),
    ]


class imgdl_event(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("token", imgdl_token),
        ("received", c_int64),
        ("expected", c_int64),
        ("response", POINTER(imgdl_response)),
        ("info", POINTER(imgdl_image_info)),
        ("image", imgdl_image),
        ("data", imgdl_data),
        ("code", imgdl_status),
        ("http_status", c_int32),
        ("message", c_char_p),
        ("content_type", c_char_p),
        ("preview", c_void_p),
        ("preview_length", c_size_t),
        ("metrics", POINTER(imgdl_metrics)),
    ]


imgdl_event_callback = CFUNCTYPE(None, POINTER(imgdl_event), c_void_p)
imgdl_destructor = CFUNCTYPE(None, c_void_p)

# 8  Requests

imgdl_priority = c_int32
IMGDL_PRIORITY_LOW = -1
IMGDL_PRIORITY_NORMAL = 0
IMGDL_PRIORITY_HIGH = 1

imgdl_request_flags = c_uint32
IMGDL_REQUEST_BODY = 1 << 0
IMGDL_REQUEST_DECODE = 1 << 1
IMGDL_REQUEST_NO_REDIRECTS = 1 << 2
IMGDL_REQUEST_ALLOW_DOWNGRADE = 1 << 3
IMGDL_REQUEST_ANY_STATUS = 1 << 4
IMGDL_REQUEST_COOKIES = 1 << 5
IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES = 1 << 6
IMGDL_REQUEST_CONTINUE_IN_BACKGROUND = 1 << 7
IMGDL_REQUEST_RETRY_FAILED = 1 << 8
IMGDL_REQUEST_FULL_URLS = 1 << 9
IMGDL_REQUEST_IGNORE_CACHED = 1 << 10
IMGDL_REQUEST_BASIC_OVER_HTTP = 1 << 11

imgdl_cache_mode = c_uint32
IMGDL_CACHE_DEFAULT = 0
IMGDL_CACHE_OFF = 1
IMGDL_CACHE_USE = 2
IMGDL_CACHE_RELOAD = 3
IMGDL_CACHE_ONLY = 4
IMGDL_CACHE_REFRESH = 5
IMGDL_CACHE_FORCE32 = 0x7FFFFFFF


class imgdl_status_range(Structure):
    _fields_ = [("first", c_int32), ("last", c_int32)]


IMGDL_STALE_NEVER = 0xFFFFFFFFFFFFFFFE
IMGDL_RETRY_NONE = 0xFFFFFFFF
IMGDL_DEFAULT_RETRY_BASE_MS = 500
IMGDL_DEFAULT_RETRY_MAX_MS = 60000
IMGDL_DEFAULT_MAX_BODY_BYTES = 268435456


class imgdl_request(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("priority", imgdl_priority),
        ("flags", imgdl_request_flags),
        ("event_mask", imgdl_event_mask),
        ("url", c_char_p),
        ("method", c_char_p),
        ("headers", POINTER(imgdl_header)),
        ("header_count", c_size_t),
        ("body", c_void_p),
        ("body_length", c_size_t),
        ("max_body_bytes", c_uint64),
        ("total_timeout_ms", c_uint32),
        ("partial_interval_ms", c_uint32),
        ("decode", POINTER(imgdl_decode_options)),
        ("executor", imgdl_executor),
        ("callback", imgdl_event_callback),
        ("destructor", imgdl_destructor),
        ("user_data", c_void_p),
        ("user", c_char_p),
        ("password", c_char_p),
        ("connect_timeout_ms", c_uint32),
        ("idle_timeout_ms", c_uint32),
        ("retry_count", c_uint32),
        ("retry_base_ms", c_uint32),
        ("retry_max_ms", c_uint32),
        ("reserved", c_uint32),
        ("accepted_statuses", POINTER(imgdl_status_range)),
        ("accepted_status_count", c_size_t),
        ("accepted_types", POINTER(c_char_p)),
        ("accepted_type_count", c_size_t),
        ("ca_file", c_char_p),
        ("client_certificate", c_char_p),
        ("client_key", c_char_p),
        ("client_key_password", c_char_p),
        ("pinned_public_key", c_char_p),
        ("hooks", imgdl_hooks),
        ("scale_factor", c_double),
        ("cache_mode", imgdl_cache_mode),
        ("reserved2", c_uint32),
        ("partition", c_char_p),
        ("max_stale_ms", c_uint64),
    ]


# 9  Hooks


class imgdl_outgoing(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("url", c_char_p),
        ("method", c_char_p),
        ("headers", POINTER(imgdl_header)),
        ("header_count", c_size_t),
        ("body", c_void_p),
        ("body_length", c_size_t),
    ]


class imgdl_hooks_table(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("modify_request", CFUNCTYPE(None, POINTER(imgdl_outgoing), imgdl_continuation, c_void_p)),
        ("modify_response", CFUNCTYPE(None, POINTER(imgdl_response), imgdl_continuation, c_void_p)),
        ("transform_body", CFUNCTYPE(None, imgdl_data, imgdl_continuation, c_void_p)),
        ("redirect", CFUNCTYPE(None, POINTER(imgdl_response), c_char_p, imgdl_continuation, c_void_p)),
        ("authenticate", CFUNCTYPE(None, POINTER(imgdl_response), imgdl_continuation, c_void_p)),
        ("user_data", c_void_p),
        ("destructor", CFUNCTYPE(None, c_void_p)),
    ]


# 10  The downloader

imgdl_order = c_uint32
IMGDL_ORDER_FIFO = 0
IMGDL_ORDER_LIFO = 1
IMGDL_DEFAULT_MAX_CONCURRENT = 6
IMGDL_MAX_CONCURRENT_LIMIT = 10000
IMGDL_DEFAULT_MEMORY_BUDGET = 536870912

imgdl_config_flags = c_uint32
IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES = 1 << 0
IMGDL_CONFIG_ALLOW_FILE_URLS = 1 << 1
IMGDL_CONFIG_ALLOW_DATA_URLS = 1 << 2
IMGDL_CONFIG_FINISH_NEARLY_DONE = 1 << 3
IMGDL_CONFIG_BASIC_OVER_HTTP = 1 << 4
IMGDL_CONFIG_REQUIRE_TLS_1_3 = 1 << 5


class imgdl_config(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_concurrent", c_uint32),
        ("order", imgdl_order),
        ("decode_threads", c_uint32),
        ("connect_timeout_ms", c_uint32),
        ("idle_timeout_ms", c_uint32),
        ("max_redirects", c_uint32),
        ("reserved", c_uint32),
        ("user_agent", c_char_p),
        ("ca_file", c_char_p),
        ("executor", imgdl_executor),
        ("flags", imgdl_config_flags),
        ("max_per_host", c_uint32),
        ("memory_budget", c_uint64),
        ("proxy", c_char_p),
        ("user", c_char_p),
        ("password", c_char_p),
        ("client_certificate", c_char_p),
        ("client_key", c_char_p),
        ("client_key_password", c_char_p),
        ("pinned_public_key", c_char_p),
        ("cookie_file", c_char_p),
        ("hooks", imgdl_hooks),
        ("retry_count", c_uint32),
        ("retry_base_ms", c_uint32),
        ("retry_max_ms", c_uint32),
        ("failure_ttl_ms", c_uint32),
        ("accepted_statuses", POINTER(imgdl_status_range)),
        ("accepted_status_count", c_size_t),
        ("accepted_types", POINTER(c_char_p)),
        ("accepted_type_count", c_size_t),
        ("progress_interval", c_double),
        ("cache", imgdl_cache),
        ("cache_mode", imgdl_cache_mode),
        ("reserved2", c_uint32),
        ("dns_servers", c_char_p),
        ("crl_file", c_char_p),
        ("nat64_prefixes", c_char_p),
        ("partition", c_char_p),
        ("max_stale_ms", c_uint64),
    ]


imgdl_shutdown_mode = c_uint32
IMGDL_SHUTDOWN_FINISH = 0
IMGDL_SHUTDOWN_CANCEL = 1

# 11  Downloads and tokens


class imgdl_result(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("code", imgdl_status),
        ("http_status", c_int32),
        ("reserved", c_uint32),
        ("message", c_char_p),
        ("image", imgdl_image),
        ("data", imgdl_data),
        ("response", POINTER(imgdl_response)),
        ("content_type", c_char_p),
        ("preview", c_void_p),
        ("preview_length", c_size_t),
        ("metrics", POINTER(imgdl_metrics)),
    ]


# 12  Batches


class imgdl_batch_progress(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("is_finished", c_int32),
        ("finished", c_size_t),
        ("failed", c_size_t),
        ("cancelled", c_size_t),
        ("total", c_size_t),
    ]


IMGDL_DEFAULT_BATCH_WIDTH = 3


class imgdl_batch_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_concurrent", c_uint32),
        ("executor", imgdl_executor),
        ("progress", CFUNCTYPE(None, POINTER(imgdl_batch_progress), c_void_p)),
        ("destructor", imgdl_destructor),
        ("user_data", c_void_p),
        ("keeps_priority", c_uint32),
        ("reserved", c_uint32),
    ]


# 13  Observing

IMGDL_OBSERVED_STARTED = 1
IMGDL_OBSERVED_RESPONSE = 2
IMGDL_OBSERVED_STOPPED = 3
IMGDL_OBSERVED_FINISHED = 4


class imgdl_observation(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("transfer", c_uint64),
        ("url", c_char_p),
        ("code", imgdl_status),
        ("http_status", c_int32),
        ("subscriber_count", c_uint32),
        ("retry_count", c_uint32),
        ("metrics", POINTER(imgdl_metrics)),
    ]


imgdl_observer = CFUNCTYPE(None, POINTER(imgdl_observation), c_void_p)


class imgdl_histogram(Structure):
    _fields_ = [("count", c_uint64), ("sum_us", c_uint64), ("buckets", c_uint64 * 40)]


class imgdl_stats(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("submitted", c_uint64),
        ("succeeded", c_uint64),
        ("failed", c_uint64),
        ("cancelled", c_uint64),
        ("shared", c_uint64),
        ("transfers", c_uint64),
        ("retries", c_uint64),
        ("redirects", c_uint64),
        ("connections", c_uint64),
        ("bytes_received", c_uint64),
        ("bytes_sent", c_uint64),
        ("pixels", c_uint64),
        ("waiting", c_uint64),
        ("running", c_uint64),
        ("paused", c_uint64),
        ("decoding", c_uint64),
        ("memory", c_uint64),
        ("memory_peak", c_uint64),
        ("queue", imgdl_histogram),
        ("resolve", imgdl_histogram),
        ("connect", imgdl_histogram),
        ("tls", imgdl_histogram),
        ("first_byte", imgdl_histogram),
        ("transfer", imgdl_histogram),
        ("decode", imgdl_histogram),
        ("total", imgdl_histogram),
    ]


imgdl_trim_level = c_uint32
IMGDL_TRIM_UNUSED = 1
IMGDL_TRIM_CONNECTIONS = 2
IMGDL_TRIM_CACHES = 3

# 14  Plug-ins


class imgdl_coder_table(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("can_decode", CFUNCTYPE(c_int32, c_void_p, c_size_t, c_void_p)),
        ("create", CFUNCTYPE(c_void_p, POINTER(imgdl_decode_options), c_void_p)),
        ("feed", CFUNCTYPE(imgdl_status, c_void_p, c_void_p, c_size_t)),
        ("info", CFUNCTYPE(imgdl_status, c_void_p, POINTER(imgdl_image_info))),
        ("partial", CFUNCTYPE(imgdl_status, c_void_p, POINTER(imgdl_image))),
        ("finish", CFUNCTYPE(imgdl_status, c_void_p, POINTER(imgdl_image))),
        ("destroy", CFUNCTYPE(None, c_void_p)),
        ("user_data", c_void_p),
        ("destructor", CFUNCTYPE(None, c_void_p)),
    ]


class imgdl_transport_table(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("start", CFUNCTYPE(c_void_p, POINTER(imgdl_outgoing), imgdl_transfer, c_void_p)),
        ("cancel", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("user_data", c_void_p),
        ("destructor", CFUNCTYPE(None, c_void_p)),
        ("resume", CFUNCTYPE(None, c_void_p, c_void_p)),
    ]


# 15  The HTTP cache

IMGDL_DEFAULT_CACHE_BYTES = 268435456
IMGDL_DEFAULT_CACHE_MEMORY_BYTES = 33554432
IMGDL_CACHE_MOVED_ASIDE = 1
IMGDL_CACHE_UNWRITABLE = 2
IMGDL_CACHE_WRITABLE = 3
IMGDL_CACHE_NOT_STORED = 4


class imgdl_cache_event(Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_uint32), ("message", c_char_p)]


class imgdl_cache_config(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("directory", c_char_p),
        ("max_bytes", c_uint64),
        ("max_memory_bytes", c_uint64),
        ("max_image_bytes", c_uint64),
        ("max_partial_bytes", c_uint64),
        ("max_age_s", c_int64),
        ("callback", CFUNCTYPE(None, POINTER(imgdl_cache_event), c_void_p)),
        ("destructor", imgdl_destructor),
        ("user_data", c_void_p),
    ]


class imgdl_cache_entry(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("status", c_int32),
        ("body_bytes", c_int64),
        ("stored_s", c_int64),
        ("used_s", c_int64),
        ("fresh_s", c_int64),
        ("is_complete", c_int32),
        ("reserved", c_uint32),
    ]


class imgdl_cache_stats(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("is_writable", c_int32),
        ("entries", c_uint64),
        ("bytes", c_uint64),
        ("partial_entries", c_uint64),
        ("partial_bytes", c_uint64),
        ("memory_entries", c_uint64),
        ("memory_bytes", c_uint64),
        ("image_entries", c_uint64),
        ("image_bytes", c_uint64),
        ("hits", c_uint64),
        ("memory_hits", c_uint64),
        ("image_hits", c_uint64),
        ("validated", c_uint64),
        ("stale", c_uint64),
        ("misses", c_uint64),
        ("resumed", c_uint64),
        ("stored", c_uint64),
        ("evicted", c_uint64),
        ("damaged", c_uint64),
        ("not_stored", c_uint64),
        ("unflushed", c_uint64),
    ]


def callback_type(struct: Any, field: str) -> Any:
    """Of a field that is a function: what makes a Python function one of C."""
    return dict(struct._fields_)[field]


# The library, and its functions


def _find_library() -> str:
    given = os.environ.get("IMGDL_LIBRARY")
    if given:
        return given
    here = os.path.dirname(os.path.realpath(__file__))
    # As a wheel has it, and as the repository does.
    for path in ("libimgdl.so.1", "../../../build/lib/libimgdl.so"):
        path = os.path.normpath(os.path.join(here, path))
        if os.path.exists(path):
            return path
    return "libimgdl.so.1"


library_path = _find_library()
# Calls that may take their time let other Python threads run meanwhile. All others keep them waiting: letting go of the
# interpreter and taking it back costs more than the call itself, up to a whole switch interval when Python is busy.
# Callbacks that run inside such a call, in imgdl_executor_dispatch, save the same. A call that could wait for a thread
# of the library lets go, too: that thread may be waiting for the interpreter, to call a hook.
try:
    _waiting = ctypes.CDLL(library_path)
    _quick = ctypes.PyDLL(library_path)
except OSError as problem:
    raise ImportError(f"cannot load the library of imgdl ({problem}); IMGDL_LIBRARY may say where it is") from None

functions: dict[str, Callable[..., Any]] = {}


def _unfit() -> ImportError:
    needed = f"this package needs {IMGDL_VERSION_MAJOR}.{IMGDL_VERSION_MINOR} or a later {IMGDL_VERSION_MAJOR}.x"
    try:
        version = _quick.imgdl_version_string
    except AttributeError:
        return ImportError(f"{library_path} is no library of imgdl; {needed}")
    version.restype = c_char_p
    return ImportError(f"{library_path} is imgdl {version().decode()}; {needed}")


def _declare(library: ctypes.CDLL, name: str, result: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    try:
        function: Any = getattr(library, name)
    except AttributeError:
        raise _unfit() from None
    function.restype = result
    function.argtypes = arguments
    functions[name] = function
    return functions[name]


def _function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return _declare(_quick, name, result, arguments)


def _waits(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return _declare(_waiting, name, result, arguments)


def giving(name: str, result: Any) -> Callable[..., Any]:
    """A function that has been declared, with another type of its result."""
    declared: Any = functions[name]
    prototype: Any = ctypes.PYFUNCTYPE(result, *declared.argtypes)
    return prototype(ctypes.cast(declared, c_void_p).value)  # type: ignore[no-any-return]


imgdl_version = _function("imgdl_version", c_uint32)
imgdl_version_string = _function("imgdl_version_string", c_char_p)

imgdl_error_name = _function("imgdl_error_name", c_char_p, imgdl_status)
imgdl_error_message = _function("imgdl_error_message", c_char_p, imgdl_status)
imgdl_last_error = _function("imgdl_last_error", c_char_p)

imgdl_image_width = _function("imgdl_image_width", c_uint32, imgdl_image)
imgdl_image_height = _function("imgdl_image_height", c_uint32, imgdl_image)
imgdl_image_stride = _function("imgdl_image_stride", c_size_t, imgdl_image)
imgdl_image_format = _function("imgdl_image_format", imgdl_format, imgdl_image)
imgdl_image_pixel_format = _function("imgdl_image_pixel_format", imgdl_pixel_format, imgdl_image)
imgdl_image_pixels = _function("imgdl_image_pixels", c_void_p, imgdl_image)
imgdl_image_frame_count = _function("imgdl_image_frame_count", c_uint32, imgdl_image)
imgdl_image_frame = _function("imgdl_image_frame", imgdl_status, imgdl_image, c_uint32, POINTER(imgdl_image))
imgdl_image_frame_duration_ms = _function("imgdl_image_frame_duration_ms", c_uint32, imgdl_image, c_uint32)
imgdl_image_loop_count = _function("imgdl_image_loop_count", c_uint32, imgdl_image)
imgdl_image_scale_factor = _function("imgdl_image_scale_factor", c_double, imgdl_image)
imgdl_image_orientation = _function("imgdl_image_orientation", c_uint32, imgdl_image)
imgdl_image_is_complete = _function("imgdl_image_is_complete", c_int32, imgdl_image)
imgdl_image_is_good_enough = _function("imgdl_image_is_good_enough", c_int32, imgdl_image)
imgdl_image_notes = _function("imgdl_image_notes", imgdl_picture_notes, imgdl_image)
imgdl_image_colour_notes = _function("imgdl_image_colour_notes", imgdl_colour_notes, imgdl_image)
imgdl_image_icc_profile = _function("imgdl_image_icc_profile", c_void_p, imgdl_image, POINTER(c_size_t))
imgdl_image_pass = _function("imgdl_image_pass", c_uint32, imgdl_image)
imgdl_image_ready = _function("imgdl_image_ready", imgdl_rectangle, imgdl_image)
imgdl_image_create = _waits(
    "imgdl_image_create",
    imgdl_status,
    c_uint32,
    c_uint32,
    imgdl_pixel_format,
    c_void_p,
    c_size_t,
    POINTER(imgdl_image),
)
imgdl_image_retain = _function("imgdl_image_retain", imgdl_image, imgdl_image)
imgdl_image_release = _waits("imgdl_image_release", None, imgdl_image)

imgdl_data_bytes = _function("imgdl_data_bytes", c_void_p, imgdl_data)
imgdl_data_length = _function("imgdl_data_length", c_size_t, imgdl_data)
imgdl_data_retain = _function("imgdl_data_retain", imgdl_data, imgdl_data)
imgdl_data_release = _waits("imgdl_data_release", None, imgdl_data)

imgdl_decode_options_init = _function("imgdl_decode_options_init", None, POINTER(imgdl_decode_options), c_size_t)
imgdl_image_info_init = _function("imgdl_image_info_init", None, POINTER(imgdl_image_info), c_size_t)
imgdl_decode = _waits(
    "imgdl_decode", imgdl_status, c_void_p, c_size_t, POINTER(imgdl_decode_options), POINTER(imgdl_image)
)
imgdl_decoder_create = _function(
    "imgdl_decoder_create", imgdl_status, POINTER(imgdl_decode_options), POINTER(imgdl_decoder)
)
imgdl_decoder_feed = _waits("imgdl_decoder_feed", imgdl_status, imgdl_decoder, c_void_p, c_size_t)
imgdl_decoder_info = _function("imgdl_decoder_info", imgdl_status, imgdl_decoder, POINTER(imgdl_image_info))
imgdl_decoder_partial = _waits("imgdl_decoder_partial", imgdl_status, imgdl_decoder, POINTER(imgdl_image))
imgdl_decoder_finish = _waits("imgdl_decoder_finish", imgdl_status, imgdl_decoder, POINTER(imgdl_image))
imgdl_decoder_destroy = _waits("imgdl_decoder_destroy", None, imgdl_decoder)

imgdl_executor_create_pumped = _function("imgdl_executor_create_pumped", imgdl_status, POINTER(imgdl_executor))
imgdl_executor_fd = _function("imgdl_executor_fd", c_int32, imgdl_executor)
imgdl_executor_dispatch = _function(
    "imgdl_executor_dispatch", imgdl_status, imgdl_executor, c_uint32, POINTER(c_uint32)
)
imgdl_executor_retain = _function("imgdl_executor_retain", imgdl_executor, imgdl_executor)
imgdl_executor_release = _function("imgdl_executor_release", None, imgdl_executor)

imgdl_request_init = _function("imgdl_request_init", None, POINTER(imgdl_request), c_size_t)

imgdl_outgoing_init = _function("imgdl_outgoing_init", None, POINTER(imgdl_outgoing), c_size_t)
imgdl_hooks_create = _function("imgdl_hooks_create", imgdl_status, POINTER(imgdl_hooks_table), POINTER(imgdl_hooks))
imgdl_hooks_retain = _function("imgdl_hooks_retain", imgdl_hooks, imgdl_hooks)
imgdl_hooks_release = _waits("imgdl_hooks_release", None, imgdl_hooks)
imgdl_continue_unchanged = _waits("imgdl_continue_unchanged", imgdl_status, imgdl_continuation)
imgdl_continue_with_request = _waits(
    "imgdl_continue_with_request", imgdl_status, imgdl_continuation, POINTER(imgdl_outgoing)
)
imgdl_continue_with_response = _waits(
    "imgdl_continue_with_response", imgdl_status, imgdl_continuation, c_int32, POINTER(imgdl_header), c_size_t
)
imgdl_continue_with_data = _waits(
    "imgdl_continue_with_data", imgdl_status, imgdl_continuation, c_void_p, c_size_t
)
imgdl_continue_with_credentials = _waits(
    "imgdl_continue_with_credentials", imgdl_status, imgdl_continuation, c_char_p, c_char_p
)
imgdl_continue_refused = _waits(
    "imgdl_continue_refused", imgdl_status, imgdl_continuation, imgdl_status, c_char_p
)

imgdl_config_init = _function("imgdl_config_init", None, POINTER(imgdl_config), c_size_t)
imgdl_downloader_create = _waits(
    "imgdl_downloader_create", imgdl_status, POINTER(imgdl_config), POINTER(imgdl_downloader)
)
imgdl_downloader_shared = _waits("imgdl_downloader_shared", imgdl_status, POINTER(imgdl_downloader))
imgdl_downloader_retain = _function("imgdl_downloader_retain", imgdl_downloader, imgdl_downloader)
imgdl_downloader_release = _function("imgdl_downloader_release", None, imgdl_downloader)
imgdl_downloader_set_header = _function(
    "imgdl_downloader_set_header", imgdl_status, imgdl_downloader, c_char_p, c_char_p
)
imgdl_downloader_get_header = _waits(
    "imgdl_downloader_get_header",
    imgdl_status,
    imgdl_downloader,
    c_char_p,
    c_char_p,
    c_size_t,
    POINTER(c_size_t),
)
imgdl_downloader_set_max_concurrent = _function(
    "imgdl_downloader_set_max_concurrent", imgdl_status, imgdl_downloader, c_uint32
)
imgdl_downloader_set_max_per_host = _function(
    "imgdl_downloader_set_max_per_host", imgdl_status, imgdl_downloader, c_uint32
)
imgdl_downloader_max_concurrent = _waits("imgdl_downloader_max_concurrent", c_uint32, imgdl_downloader)
imgdl_downloader_is_suspended = _waits("imgdl_downloader_is_suspended", c_int32, imgdl_downloader)
imgdl_downloader_set_order = _function("imgdl_downloader_set_order", imgdl_status, imgdl_downloader, imgdl_order)
imgdl_downloader_set_suspended = _function(
    "imgdl_downloader_set_suspended", imgdl_status, imgdl_downloader, c_int32
)
imgdl_downloader_enter_background = _function(
    "imgdl_downloader_enter_background", imgdl_status, imgdl_downloader, c_uint32
)
imgdl_downloader_enter_foreground = _function("imgdl_downloader_enter_foreground", imgdl_status, imgdl_downloader)
imgdl_downloader_network_changed = _function("imgdl_downloader_network_changed", imgdl_status, imgdl_downloader)
imgdl_downloader_invalidate = _waits("imgdl_downloader_invalidate", imgdl_status, imgdl_downloader, c_int32)
imgdl_downloader_reconfigure = _waits(
    "imgdl_downloader_reconfigure", imgdl_status, imgdl_downloader, POINTER(imgdl_config)
)
imgdl_downloader_cancel_all = _function("imgdl_downloader_cancel_all", imgdl_status, imgdl_downloader)
imgdl_downloader_current_count = _function("imgdl_downloader_current_count", c_uint64, imgdl_downloader)
imgdl_downloader_wait_idle = _waits("imgdl_downloader_wait_idle", imgdl_status, imgdl_downloader, c_int64)
# Its third parameter is a callback of the same type as a destructor.
imgdl_downloader_shutdown = _function(
    "imgdl_downloader_shutdown", imgdl_status, imgdl_downloader, imgdl_shutdown_mode, imgdl_destructor, c_void_p
)
imgdl_downloader_destroy = _waits("imgdl_downloader_destroy", imgdl_status, imgdl_downloader)

imgdl_download = _function(
    "imgdl_download", imgdl_status, imgdl_downloader, POINTER(imgdl_request), POINTER(imgdl_token)
)
imgdl_token_cancel = _function("imgdl_token_cancel", imgdl_status, imgdl_token)
imgdl_token_set_priority = _function("imgdl_token_set_priority", imgdl_status, imgdl_token, imgdl_priority)
imgdl_token_wait = _waits("imgdl_token_wait", imgdl_status, imgdl_token, c_int64)
imgdl_result_init = _function("imgdl_result_init", None, POINTER(imgdl_result), c_size_t)
imgdl_token_result = _function("imgdl_token_result", imgdl_status, imgdl_token, POINTER(imgdl_result))
imgdl_token_id = _function("imgdl_token_id", c_uint64, imgdl_token)
imgdl_token_retain = _function("imgdl_token_retain", imgdl_token, imgdl_token)
imgdl_token_release = _function("imgdl_token_release", None, imgdl_token)

imgdl_batch_options_init = _function("imgdl_batch_options_init", None, POINTER(imgdl_batch_options), c_size_t)
imgdl_downloader_prefetch = _function(
    "imgdl_downloader_prefetch",
    imgdl_status,
    imgdl_downloader,
    POINTER(imgdl_request),
    c_size_t,
    POINTER(imgdl_batch_options),
    POINTER(imgdl_batch),
)
imgdl_batch_cancel = _function("imgdl_batch_cancel", imgdl_status, imgdl_batch)
imgdl_batch_set_paused = _function("imgdl_batch_set_paused", imgdl_status, imgdl_batch, c_int32)
imgdl_batch_set_priority = _function("imgdl_batch_set_priority", imgdl_status, imgdl_batch, imgdl_priority)
imgdl_batch_progress_get = _waits(
    "imgdl_batch_progress_get", imgdl_status, imgdl_batch, POINTER(imgdl_batch_progress)
)
imgdl_batch_retain = _function("imgdl_batch_retain", imgdl_batch, imgdl_batch)
imgdl_batch_release = _function("imgdl_batch_release", None, imgdl_batch)

imgdl_metrics_init = _function("imgdl_metrics_init", None, POINTER(imgdl_metrics), c_size_t)
imgdl_token_metrics = _waits("imgdl_token_metrics", imgdl_status, imgdl_token, POINTER(imgdl_metrics))
imgdl_downloader_set_observer = _waits(
    "imgdl_downloader_set_observer", imgdl_status, imgdl_downloader, imgdl_observer, c_void_p, imgdl_destructor
)
imgdl_histogram_quantile = _function("imgdl_histogram_quantile", c_double, POINTER(imgdl_histogram), c_double)
imgdl_stats_init = _function("imgdl_stats_init", None, POINTER(imgdl_stats), c_size_t)
imgdl_downloader_stats = _waits("imgdl_downloader_stats", imgdl_status, imgdl_downloader, POINTER(imgdl_stats))
imgdl_trim = _waits("imgdl_trim", c_uint64, imgdl_trim_level)

imgdl_coder_register = _waits(
    "imgdl_coder_register", imgdl_status, POINTER(imgdl_coder_table), POINTER(imgdl_coder)
)
imgdl_coder_release = _waits("imgdl_coder_release", None, imgdl_coder)
imgdl_transport_register = _waits(
    "imgdl_transport_register", imgdl_status, imgdl_downloader, c_char_p, POINTER(imgdl_transport_table)
)
imgdl_transfer_response = _waits(
    "imgdl_transfer_response", imgdl_status, imgdl_transfer, c_int32, POINTER(imgdl_header), c_size_t
)
imgdl_transfer_body = _waits("imgdl_transfer_body", imgdl_status, imgdl_transfer, c_void_p, c_size_t)
imgdl_transfer_end = _waits("imgdl_transfer_end", imgdl_status, imgdl_transfer, imgdl_status, c_char_p)
imgdl_transfer_release = _waits("imgdl_transfer_release", None, imgdl_transfer)

imgdl_cache_config_init = _function("imgdl_cache_config_init", None, POINTER(imgdl_cache_config), c_size_t)
imgdl_cache_open = _waits("imgdl_cache_open", imgdl_status, POINTER(imgdl_cache_config), POINTER(imgdl_cache))
imgdl_cache_retain = _function("imgdl_cache_retain", imgdl_cache, imgdl_cache)
imgdl_cache_release = _waits("imgdl_cache_release", None, imgdl_cache)
imgdl_cache_entry_init = _function("imgdl_cache_entry_init", None, POINTER(imgdl_cache_entry), c_size_t)
imgdl_cache_query = _waits("imgdl_cache_query", imgdl_status, imgdl_cache, c_char_p, POINTER(imgdl_cache_entry))
imgdl_cache_remove = _waits("imgdl_cache_remove", imgdl_status, imgdl_cache, c_char_p)
imgdl_cache_remove_older = _waits("imgdl_cache_remove_older", imgdl_status, imgdl_cache, c_int64)
imgdl_cache_clear = _waits("imgdl_cache_clear", imgdl_status, imgdl_cache)
imgdl_cache_flush = _waits("imgdl_cache_flush", imgdl_status, imgdl_cache)
imgdl_cache_stats_init = _function("imgdl_cache_stats_init", None, POINTER(imgdl_cache_stats), c_size_t)
imgdl_cache_statistics = _waits("imgdl_cache_statistics", imgdl_status, imgdl_cache, POINTER(imgdl_cache_stats))

if imgdl_version() // 1000000 != IMGDL_VERSION_MAJOR:
    raise _unfit()
