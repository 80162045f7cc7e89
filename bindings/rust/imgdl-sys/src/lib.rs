//! The C interface of libimgdl, one declaration for each of `imgdl.h`, in the header's order.
//!
//! What each of them means stands in the header. `tests/layout.rs` compares this file with it: every function with its
//! types, every struct with its offsets, every constant with its value. For a safe interface use the crate `imgdl`.

#![allow(non_camel_case_types)]
// 1 << 0 as in the header.
#![allow(clippy::identity_op)]

use std::os::raw::{c_char, c_void};

macro_rules! handles {
    ($($name:ident)*) => {
        $(
            /// Known by pointer alone.
            #[repr(C)]
            pub struct $name {
                _opaque: [u8; 0],
                _neither_send_nor_sync: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
            }
        )*
    };
}

handles! {
    imgdl_downloader imgdl_token imgdl_executor imgdl_decoder imgdl_image imgdl_data imgdl_hooks imgdl_continuation
    imgdl_batch imgdl_coder imgdl_transfer imgdl_cache
}

pub type imgdl_status = i32;
pub type imgdl_format = u32;
pub type imgdl_pixel_format = u32;
pub type imgdl_colour_notes = u32;
pub type imgdl_picture_notes = u32;
pub type imgdl_decode_flags = u32;
pub type imgdl_colour = u32;
pub type imgdl_event_mask = u32;
pub type imgdl_cache_outcome = u32;
pub type imgdl_priority = i32;
pub type imgdl_request_flags = u32;
pub type imgdl_cache_mode = u32;
pub type imgdl_order = u32;
pub type imgdl_config_flags = u32;
pub type imgdl_shutdown_mode = u32;
pub type imgdl_trim_level = u32;

pub type imgdl_event_callback = Option<unsafe extern "C" fn(event: *const imgdl_event, user_data: *mut c_void)>;
pub type imgdl_allocate = Option<
    unsafe extern "C" fn(
        width: u32,
        height: u32,
        bytes_per_pixel: u32,
        stride: *mut usize,
        user_data: *mut c_void,
    ) -> *mut c_void,
>;
pub type imgdl_deallocate = Option<unsafe extern "C" fn(pixels: *mut c_void, user_data: *mut c_void)>;
pub type imgdl_destructor = Option<unsafe extern "C" fn(user_data: *mut c_void)>;
pub type imgdl_observer = Option<unsafe extern "C" fn(observation: *const imgdl_observation, user_data: *mut c_void)>;

pub const IMGDL_VERSION_MAJOR: u32 = 1;
pub const IMGDL_VERSION_MINOR: u32 = 1;
pub const IMGDL_VERSION_PATCH: u32 = 0;
pub const IMGDL_VERSION_NUMBER: u32 =
    IMGDL_VERSION_MAJOR * 1_000_000 + IMGDL_VERSION_MINOR * 1_000 + IMGDL_VERSION_PATCH;
pub const IMGDL_VERSION_STRING: &str = "1.1.0";

pub const IMGDL_DEFAULT_MAX_PIXELS: u32 = 100_000_000;
pub const IMGDL_DEFAULT_MAX_FRAMES: u32 = 1_000;
pub const IMGDL_DEFAULT_MAX_SCANS: u32 = 500;
pub const IMGDL_DEFAULT_MAX_METADATA_BYTES: u32 = 16_777_216;
pub const IMGDL_DEFAULT_MAX_MEMORY_BYTES: u32 = 1_073_741_824;
pub const IMGDL_DEFAULT_MAX_DECODE_MS: u32 = 10_000;
pub const IMGDL_NO_LIMIT: u64 = u64::MAX;
pub const IMGDL_NO_LIMIT_32: u32 = u32::MAX;
pub const IMGDL_DEFAULT_SCALE_DOWN_BYTES: u32 = 62_914_560;
pub const IMGDL_MAX_TARGET: u32 = 1_048_576;
pub const IMGDL_RETRY_NONE: u32 = u32::MAX;
pub const IMGDL_STALE_NEVER: u64 = u64::MAX - 1;
pub const IMGDL_DEFAULT_RETRY_BASE_MS: u32 = 500;
pub const IMGDL_DEFAULT_RETRY_MAX_MS: u32 = 60_000;
pub const IMGDL_DEFAULT_MAX_BODY_BYTES: u32 = 268_435_456;
pub const IMGDL_DEFAULT_MAX_CONCURRENT: u32 = 6;
pub const IMGDL_MAX_CONCURRENT_LIMIT: u32 = 10_000;
pub const IMGDL_DEFAULT_MEMORY_BUDGET: u32 = 536_870_912;
pub const IMGDL_DEFAULT_BATCH_WIDTH: u32 = 3;
pub const IMGDL_DEFAULT_CACHE_BYTES: u32 = 268_435_456;
pub const IMGDL_DEFAULT_CACHE_MEMORY_BYTES: u32 = 33_554_432;

pub const IMGDL_EXECUTOR_INLINE: *mut imgdl_executor = 1 as *mut imgdl_executor;
pub const IMGDL_OK: imgdl_status = 0;
pub const IMGDL_ERROR_INVALID_URL: imgdl_status = 1000;
pub const IMGDL_ERROR_BAD_IMAGE_DATA: imgdl_status = 1001;
pub const IMGDL_ERROR_NOT_MODIFIED: imgdl_status = 1002;
pub const IMGDL_ERROR_BLACKLISTED: imgdl_status = 1003;
pub const IMGDL_ERROR_INVALID_OPERATION: imgdl_status = 2000;
pub const IMGDL_ERROR_INVALID_STATUS: imgdl_status = 2001;
pub const IMGDL_ERROR_CANCELLED: imgdl_status = 2002;
pub const IMGDL_ERROR_INVALID_RESPONSE: imgdl_status = 2003;
pub const IMGDL_ERROR_INVALID_CONTENT_TYPE: imgdl_status = 2004;
pub const IMGDL_ERROR_INVALID_ARGUMENT: imgdl_status = 2100;
pub const IMGDL_ERROR_INVALID_HANDLE: imgdl_status = 2101;
pub const IMGDL_ERROR_UNSUPPORTED_OPTION: imgdl_status = 2102;
pub const IMGDL_ERROR_WOULD_DEADLOCK: imgdl_status = 2103;
pub const IMGDL_ERROR_SHUT_DOWN: imgdl_status = 2104;
pub const IMGDL_ERROR_FORKED: imgdl_status = 2105;
pub const IMGDL_ERROR_OUT_OF_MEMORY: imgdl_status = 2106;
pub const IMGDL_ERROR_WAIT_TIMEOUT: imgdl_status = 2107;
pub const IMGDL_ERROR_NOT_READY: imgdl_status = 2108;
pub const IMGDL_ERROR_INTERNAL: imgdl_status = 2109;
pub const IMGDL_ERROR_INVALID_HEADER: imgdl_status = 2110;
pub const IMGDL_ERROR_UNSUPPORTED_SCHEME: imgdl_status = 2111;
pub const IMGDL_ERROR_BACKGROUND_EXPIRED: imgdl_status = 2112;
pub const IMGDL_ERROR_RESOLVE_FAILED: imgdl_status = 2200;
pub const IMGDL_ERROR_CONNECT_FAILED: imgdl_status = 2201;
pub const IMGDL_ERROR_CONNECTION_LOST: imgdl_status = 2202;
pub const IMGDL_ERROR_TLS_FAILED: imgdl_status = 2203;
pub const IMGDL_ERROR_TLS_CERTIFICATE: imgdl_status = 2204;
pub const IMGDL_ERROR_PROTOCOL: imgdl_status = 2205;
pub const IMGDL_ERROR_TRUNCATED: imgdl_status = 2206;
pub const IMGDL_ERROR_CONNECT_TIMEOUT: imgdl_status = 2207;
pub const IMGDL_ERROR_IDLE_TIMEOUT: imgdl_status = 2208;
pub const IMGDL_ERROR_TOTAL_TIMEOUT: imgdl_status = 2209;
pub const IMGDL_ERROR_PROXY_FAILED: imgdl_status = 2210;
pub const IMGDL_ERROR_TOO_MANY_REDIRECTS: imgdl_status = 2211;
pub const IMGDL_ERROR_REDIRECT_REFUSED: imgdl_status = 2212;
pub const IMGDL_ERROR_CONTENT_ENCODING: imgdl_status = 2213;
pub const IMGDL_ERROR_ADDRESS_REFUSED: imgdl_status = 2214;
pub const IMGDL_ERROR_TLS_PIN: imgdl_status = 2215;
pub const IMGDL_ERROR_NOT_CACHED: imgdl_status = 2216;
pub const IMGDL_ERROR_BODY_LIMIT: imgdl_status = 2300;
pub const IMGDL_ERROR_HEADER_LIMIT: imgdl_status = 2301;
pub const IMGDL_ERROR_PIXEL_LIMIT: imgdl_status = 2302;
pub const IMGDL_ERROR_FRAME_LIMIT: imgdl_status = 2303;
pub const IMGDL_ERROR_SCAN_LIMIT: imgdl_status = 2304;
pub const IMGDL_ERROR_SIZE_LIMIT: imgdl_status = 2305;
pub const IMGDL_ERROR_ANIMATION_LIMIT: imgdl_status = 2306;
pub const IMGDL_ERROR_METADATA_LIMIT: imgdl_status = 2307;
pub const IMGDL_ERROR_MEMORY_LIMIT: imgdl_status = 2308;
pub const IMGDL_ERROR_DECODE_TIMEOUT: imgdl_status = 2309;
pub const IMGDL_ERROR_FLOOD: imgdl_status = 2310;
pub const IMGDL_ERROR_CACHE_BUSY: imgdl_status = 2400;
pub const IMGDL_ERROR_DISK_FULL: imgdl_status = 2401;
pub const IMGDL_ERROR_READ_ONLY: imgdl_status = 2402;
pub const IMGDL_ERROR_DISK_FAILED: imgdl_status = 2403;
pub const IMGDL_ERROR_UNSAFE_DIRECTORY: imgdl_status = 2404;

pub const IMGDL_FORMAT_UNKNOWN: imgdl_format = 0;
pub const IMGDL_FORMAT_JPEG: imgdl_format = 1;
pub const IMGDL_FORMAT_PNG: imgdl_format = 2;
pub const IMGDL_FORMAT_WEBP: imgdl_format = 3;
pub const IMGDL_FORMAT_GIF: imgdl_format = 4;
pub const IMGDL_FORMAT_OTHER: imgdl_format = 100;

pub const IMGDL_PIXEL_FORMAT_DEFAULT: imgdl_pixel_format = 0;
pub const IMGDL_PIXEL_FORMAT_RGBA8: imgdl_pixel_format = 1;
pub const IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED: imgdl_pixel_format = 2;
pub const IMGDL_PIXEL_FORMAT_BGRA8: imgdl_pixel_format = 3;
pub const IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED: imgdl_pixel_format = 4;
pub const IMGDL_PIXEL_FORMAT_RGB8: imgdl_pixel_format = 5;
pub const IMGDL_PIXEL_FORMAT_RGBA16: imgdl_pixel_format = 6;

pub const IMGDL_IMAGE_INCOMPLETE_END: imgdl_picture_notes = 1 << 0;
pub const IMGDL_COLOUR_NOTE_ICC: imgdl_colour_notes = 1 << 0;
pub const IMGDL_COLOUR_NOTE_SRGB: imgdl_colour_notes = 1 << 1;
pub const IMGDL_COLOUR_NOTE_GAMMA: imgdl_colour_notes = 1 << 2;
pub const IMGDL_COLOUR_NOTE_CHROMATICITIES: imgdl_colour_notes = 1 << 3;
pub const IMGDL_COLOUR_NOTE_CONVERTED: imgdl_colour_notes = 1 << 4;
pub const IMGDL_COLOUR_NOTE_UNUSABLE_PROFILE: imgdl_colour_notes = 1 << 5;
pub const IMGDL_COLOUR_NOTE_COSTLY_PROFILE: imgdl_colour_notes = 1 << 6;

pub const IMGDL_COLOUR_AS_STORED: imgdl_colour = 0;
pub const IMGDL_COLOUR_SRGB: imgdl_colour = 1;

pub const IMGDL_DECODE_IGNORE_ORIENTATION: imgdl_decode_flags = 1 << 0;
pub const IMGDL_DECODE_SALVAGE: imgdl_decode_flags = 1 << 1;
pub const IMGDL_DECODE_ALL_FRAMES: imgdl_decode_flags = 1 << 2;
pub const IMGDL_DECODE_REQUIRE_ANIMATION: imgdl_decode_flags = 1 << 3;
pub const IMGDL_DECODE_STRETCH: imgdl_decode_flags = 1 << 4;
pub const IMGDL_DECODE_SCALE_DOWN: imgdl_decode_flags = 1 << 5;
pub const IMGDL_DECODE_THUMBNAIL_FIRST: imgdl_decode_flags = 1 << 6;

pub const IMGDL_EVENT_STARTED: imgdl_event_mask = 1 << 0;
pub const IMGDL_EVENT_RESPONSE: imgdl_event_mask = 1 << 1;
pub const IMGDL_EVENT_HEADER: imgdl_event_mask = 1 << 2;
pub const IMGDL_EVENT_PROGRESS: imgdl_event_mask = 1 << 3;
pub const IMGDL_EVENT_PARTIAL: imgdl_event_mask = 1 << 4;
pub const IMGDL_EVENT_TERMINAL: imgdl_event_mask = 1 << 5;
pub const IMGDL_EVENT_ALL: imgdl_event_mask = (1 << 6) - 1;

pub const IMGDL_CACHE_OUTCOME_NETWORK: imgdl_cache_outcome = 0;
pub const IMGDL_CACHE_OUTCOME_HIT: imgdl_cache_outcome = 1;
pub const IMGDL_CACHE_OUTCOME_VALIDATED: imgdl_cache_outcome = 2;
pub const IMGDL_CACHE_OUTCOME_STALE: imgdl_cache_outcome = 3;
pub const IMGDL_CACHE_OUTCOME_RESUMED: imgdl_cache_outcome = 4;

pub const IMGDL_PRIORITY_LOW: imgdl_priority = -1;
pub const IMGDL_PRIORITY_NORMAL: imgdl_priority = 0;
pub const IMGDL_PRIORITY_HIGH: imgdl_priority = 1;

pub const IMGDL_REQUEST_BODY: imgdl_request_flags = 1 << 0;
pub const IMGDL_REQUEST_DECODE: imgdl_request_flags = 1 << 1;
pub const IMGDL_REQUEST_NO_REDIRECTS: imgdl_request_flags = 1 << 2;
pub const IMGDL_REQUEST_ALLOW_DOWNGRADE: imgdl_request_flags = 1 << 3;
pub const IMGDL_REQUEST_ANY_STATUS: imgdl_request_flags = 1 << 4;
pub const IMGDL_REQUEST_COOKIES: imgdl_request_flags = 1 << 5;
pub const IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES: imgdl_request_flags = 1 << 6;
pub const IMGDL_REQUEST_CONTINUE_IN_BACKGROUND: imgdl_request_flags = 1 << 7;
pub const IMGDL_REQUEST_RETRY_FAILED: imgdl_request_flags = 1 << 8;
pub const IMGDL_REQUEST_FULL_URLS: imgdl_request_flags = 1 << 9;
pub const IMGDL_REQUEST_IGNORE_CACHED: imgdl_request_flags = 1 << 10;
pub const IMGDL_REQUEST_BASIC_OVER_HTTP: imgdl_request_flags = 1 << 11;

pub const IMGDL_CACHE_DEFAULT: imgdl_cache_mode = 0;
pub const IMGDL_CACHE_OFF: imgdl_cache_mode = 1;
pub const IMGDL_CACHE_USE: imgdl_cache_mode = 2;
pub const IMGDL_CACHE_RELOAD: imgdl_cache_mode = 3;
pub const IMGDL_CACHE_ONLY: imgdl_cache_mode = 4;
pub const IMGDL_CACHE_REFRESH: imgdl_cache_mode = 5;

pub const IMGDL_ORDER_FIFO: imgdl_order = 0;
pub const IMGDL_ORDER_LIFO: imgdl_order = 1;

pub const IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES: imgdl_config_flags = 1 << 0;
pub const IMGDL_CONFIG_ALLOW_FILE_URLS: imgdl_config_flags = 1 << 1;
pub const IMGDL_CONFIG_ALLOW_DATA_URLS: imgdl_config_flags = 1 << 2;
pub const IMGDL_CONFIG_FINISH_NEARLY_DONE: imgdl_config_flags = 1 << 3;
pub const IMGDL_CONFIG_BASIC_OVER_HTTP: imgdl_config_flags = 1 << 4;
pub const IMGDL_CONFIG_REQUIRE_TLS_1_3: imgdl_config_flags = 1 << 5;

pub const IMGDL_SHUTDOWN_FINISH: imgdl_shutdown_mode = 0;
pub const IMGDL_SHUTDOWN_CANCEL: imgdl_shutdown_mode = 1;

pub const IMGDL_OBSERVED_STARTED: u32 = 1;
pub const IMGDL_OBSERVED_RESPONSE: u32 = 2;
pub const IMGDL_OBSERVED_STOPPED: u32 = 3;
pub const IMGDL_OBSERVED_FINISHED: u32 = 4;

pub const IMGDL_TRIM_UNUSED: imgdl_trim_level = 1;
pub const IMGDL_TRIM_CONNECTIONS: imgdl_trim_level = 2;
pub const IMGDL_TRIM_CACHES: imgdl_trim_level = 3;

pub const IMGDL_CACHE_MOVED_ASIDE: u32 = 1;
pub const IMGDL_CACHE_UNWRITABLE: u32 = 2;
pub const IMGDL_CACHE_WRITABLE: u32 = 3;
pub const IMGDL_CACHE_NOT_STORED: u32 = 4;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_rectangle {
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_decode_options {
    pub struct_size: u32,
    pub pixel_format: imgdl_pixel_format,
    pub flags: imgdl_decode_flags,
    pub reserved: u32,
    pub max_pixels: u64,
    pub target_width: u32,
    pub target_height: u32,
    pub max_output_bytes: u64,
    pub max_frames: u32,
    pub format_hint: imgdl_format,
    pub coder: *mut imgdl_coder,
    pub max_side: u32,
    pub max_scans: u32,
    pub max_animation_pixels: u64,
    pub max_metadata_bytes: u64,
    pub max_memory_bytes: u64,
    pub max_decode_ms: u32,
    pub colour: imgdl_colour,
    pub allocate: imgdl_allocate,
    pub deallocate: imgdl_deallocate,
    pub allocator_user_data: *mut c_void,
    pub good_enough_scan: u32,
    pub reserved2: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_image_info {
    pub struct_size: u32,
    pub format: imgdl_format,
    pub width: u32,
    pub height: u32,
    pub orientation: u32,
    pub frame_count: u32,
    pub has_alpha: i32,
    pub is_progressive: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_header {
    pub name: *const c_char,
    pub value: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_hop {
    pub url: *const c_char,
    pub status: i32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_response {
    pub struct_size: u32,
    pub status: i32,
    pub http_version: i32,
    pub redirect_count: u32,
    pub content_length: i64,
    pub url: *const c_char,
    pub headers: *const imgdl_header,
    pub header_count: usize,
    pub hops: *const imgdl_hop,
    pub content_type: *const c_char,
    pub cache_outcome: imgdl_cache_outcome,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_event {
    pub struct_size: u32,
    pub kind: u32,
    pub token: *mut imgdl_token,
    pub received: i64,
    pub expected: i64,
    pub response: *const imgdl_response,
    pub info: *const imgdl_image_info,
    pub image: *mut imgdl_image,
    pub data: *mut imgdl_data,
    pub code: imgdl_status,
    pub http_status: i32,
    pub message: *const c_char,
    pub content_type: *const c_char,
    pub preview: *const c_void,
    pub preview_length: usize,
    pub metrics: *const imgdl_metrics,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_status_range {
    pub first: i32,
    pub last: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_request {
    pub struct_size: u32,
    pub priority: imgdl_priority,
    pub flags: imgdl_request_flags,
    pub event_mask: imgdl_event_mask,
    pub url: *const c_char,
    pub method: *const c_char,
    pub headers: *const imgdl_header,
    pub header_count: usize,
    pub body: *const c_void,
    pub body_length: usize,
    pub max_body_bytes: u64,
    pub total_timeout_ms: u32,
    pub partial_interval_ms: u32,
    pub decode: *const imgdl_decode_options,
    pub executor: *mut imgdl_executor,
    pub callback: imgdl_event_callback,
    pub destructor: imgdl_destructor,
    pub user_data: *mut c_void,
    pub user: *const c_char,
    pub password: *const c_char,
    pub connect_timeout_ms: u32,
    pub idle_timeout_ms: u32,
    pub retry_count: u32,
    pub retry_base_ms: u32,
    pub retry_max_ms: u32,
    pub reserved: u32,
    pub accepted_statuses: *const imgdl_status_range,
    pub accepted_status_count: usize,
    pub accepted_types: *const *const c_char,
    pub accepted_type_count: usize,
    pub ca_file: *const c_char,
    pub client_certificate: *const c_char,
    pub client_key: *const c_char,
    pub client_key_password: *const c_char,
    pub pinned_public_key: *const c_char,
    pub hooks: *mut imgdl_hooks,
    pub scale_factor: f64,
    pub cache_mode: imgdl_cache_mode,
    pub reserved2: u32,
    pub partition: *const c_char,
    pub max_stale_ms: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_outgoing {
    pub struct_size: u32,
    pub reserved: u32,
    pub url: *const c_char,
    pub method: *const c_char,
    pub headers: *const imgdl_header,
    pub header_count: usize,
    pub body: *const c_void,
    pub body_length: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_hooks_table {
    pub struct_size: u32,
    pub reserved: u32,
    pub modify_request: Option<
        unsafe extern "C" fn(request: *const imgdl_outgoing, next: *mut imgdl_continuation, user_data: *mut c_void),
    >,
    pub modify_response: Option<
        unsafe extern "C" fn(response: *const imgdl_response, next: *mut imgdl_continuation, user_data: *mut c_void),
    >,
    pub transform_body:
        Option<unsafe extern "C" fn(body: *mut imgdl_data, next: *mut imgdl_continuation, user_data: *mut c_void)>,
    pub redirect: Option<
        unsafe extern "C" fn(
            response: *const imgdl_response,
            url: *const c_char,
            next: *mut imgdl_continuation,
            user_data: *mut c_void,
        ),
    >,
    pub authenticate: Option<
        unsafe extern "C" fn(challenge: *const imgdl_response, next: *mut imgdl_continuation, user_data: *mut c_void),
    >,
    pub user_data: *mut c_void,
    pub destructor: Option<unsafe extern "C" fn(user_data: *mut c_void)>,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_config {
    pub struct_size: u32,
    pub max_concurrent: u32,
    pub order: imgdl_order,
    pub decode_threads: u32,
    pub connect_timeout_ms: u32,
    pub idle_timeout_ms: u32,
    pub max_redirects: u32,
    pub reserved: u32,
    pub user_agent: *const c_char,
    pub ca_file: *const c_char,
    pub executor: *mut imgdl_executor,
    pub flags: imgdl_config_flags,
    pub max_per_host: u32,
    pub memory_budget: u64,
    pub proxy: *const c_char,
    pub user: *const c_char,
    pub password: *const c_char,
    pub client_certificate: *const c_char,
    pub client_key: *const c_char,
    pub client_key_password: *const c_char,
    pub pinned_public_key: *const c_char,
    pub cookie_file: *const c_char,
    pub hooks: *mut imgdl_hooks,
    pub retry_count: u32,
    pub retry_base_ms: u32,
    pub retry_max_ms: u32,
    pub failure_ttl_ms: u32,
    pub accepted_statuses: *const imgdl_status_range,
    pub accepted_status_count: usize,
    pub accepted_types: *const *const c_char,
    pub accepted_type_count: usize,
    pub progress_interval: f64,
    pub cache: *mut imgdl_cache,
    pub cache_mode: imgdl_cache_mode,
    pub reserved2: u32,
    pub dns_servers: *const c_char,
    pub crl_file: *const c_char,
    pub nat64_prefixes: *const c_char,
    pub partition: *const c_char,
    pub max_stale_ms: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_result {
    pub struct_size: u32,
    pub code: imgdl_status,
    pub http_status: i32,
    pub reserved: u32,
    pub message: *const c_char,
    pub image: *mut imgdl_image,
    pub data: *mut imgdl_data,
    pub response: *const imgdl_response,
    pub content_type: *const c_char,
    pub preview: *const c_void,
    pub preview_length: usize,
    pub metrics: *const imgdl_metrics,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_batch_progress {
    pub struct_size: u32,
    pub is_finished: i32,
    pub finished: usize,
    pub failed: usize,
    pub cancelled: usize,
    pub total: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_batch_options {
    pub struct_size: u32,
    pub max_concurrent: u32,
    pub executor: *mut imgdl_executor,
    pub progress: Option<unsafe extern "C" fn(progress: *const imgdl_batch_progress, user_data: *mut c_void)>,
    pub destructor: imgdl_destructor,
    pub user_data: *mut c_void,
    pub keeps_priority: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_metrics {
    pub struct_size: u32,
    pub http_version: i32,
    pub queue_ns: i64,
    pub resolve_ns: i64,
    pub connect_ns: i64,
    pub tls_ns: i64,
    pub first_byte_ns: i64,
    pub body_ns: i64,
    pub transfer_ns: i64,
    pub decode_ns: i64,
    pub total_ns: i64,
    pub bytes_received: i64,
    pub bytes_sent: i64,
    pub body_bytes: i64,
    pub redirect_count: u32,
    pub retry_count: u32,
    pub is_connection_reused: i32,
    pub is_shared: i32,
    pub address: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_observation {
    pub struct_size: u32,
    pub kind: u32,
    pub transfer: u64,
    pub url: *const c_char,
    pub code: imgdl_status,
    pub http_status: i32,
    pub subscriber_count: u32,
    pub retry_count: u32,
    pub metrics: *const imgdl_metrics,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_histogram {
    pub count: u64,
    pub sum_us: u64,
    pub buckets: [u64; 40],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_stats {
    pub struct_size: u32,
    pub reserved: u32,
    pub submitted: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub shared: u64,
    pub transfers: u64,
    pub retries: u64,
    pub redirects: u64,
    pub connections: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    pub pixels: u64,
    pub waiting: u64,
    pub running: u64,
    pub paused: u64,
    pub decoding: u64,
    pub memory: u64,
    pub memory_peak: u64,
    pub queue: imgdl_histogram,
    pub resolve: imgdl_histogram,
    pub connect: imgdl_histogram,
    pub tls: imgdl_histogram,
    pub first_byte: imgdl_histogram,
    pub transfer: imgdl_histogram,
    pub decode: imgdl_histogram,
    pub total: imgdl_histogram,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_coder_table {
    pub struct_size: u32,
    pub reserved: u32,
    pub can_decode: Option<unsafe extern "C" fn(prefix: *const c_void, length: usize, user_data: *mut c_void) -> i32>,
    pub create:
        Option<unsafe extern "C" fn(options: *const imgdl_decode_options, user_data: *mut c_void) -> *mut c_void>,
    pub feed: Option<unsafe extern "C" fn(decoder: *mut c_void, bytes: *const c_void, length: usize) -> imgdl_status>,
    pub info: Option<unsafe extern "C" fn(decoder: *mut c_void, info: *mut imgdl_image_info) -> imgdl_status>,
    pub partial: Option<unsafe extern "C" fn(decoder: *mut c_void, image: *mut *mut imgdl_image) -> imgdl_status>,
    pub finish: Option<unsafe extern "C" fn(decoder: *mut c_void, image: *mut *mut imgdl_image) -> imgdl_status>,
    pub destroy: Option<unsafe extern "C" fn(decoder: *mut c_void)>,
    pub user_data: *mut c_void,
    pub destructor: Option<unsafe extern "C" fn(user_data: *mut c_void)>,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_transport_table {
    pub struct_size: u32,
    pub reserved: u32,
    pub start: Option<
        unsafe extern "C" fn(
            request: *const imgdl_outgoing,
            transfer: *mut imgdl_transfer,
            user_data: *mut c_void,
        ) -> *mut c_void,
    >,
    pub cancel: Option<unsafe extern "C" fn(started: *mut c_void, user_data: *mut c_void)>,
    pub user_data: *mut c_void,
    pub destructor: Option<unsafe extern "C" fn(user_data: *mut c_void)>,
    pub resume: Option<unsafe extern "C" fn(started: *mut c_void, user_data: *mut c_void)>,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_cache_event {
    pub struct_size: u32,
    pub kind: u32,
    pub message: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_cache_config {
    pub struct_size: u32,
    pub reserved: u32,
    pub directory: *const c_char,
    pub max_bytes: u64,
    pub max_memory_bytes: u64,
    pub max_image_bytes: u64,
    pub max_partial_bytes: u64,
    pub max_age_s: i64,
    pub callback: Option<unsafe extern "C" fn(event: *const imgdl_cache_event, user_data: *mut c_void)>,
    pub destructor: imgdl_destructor,
    pub user_data: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_cache_entry {
    pub struct_size: u32,
    pub status: i32,
    pub body_bytes: i64,
    pub stored_s: i64,
    pub used_s: i64,
    pub fresh_s: i64,
    pub is_complete: i32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct imgdl_cache_stats {
    pub struct_size: u32,
    pub is_writable: i32,
    pub entries: u64,
    pub bytes: u64,
    pub partial_entries: u64,
    pub partial_bytes: u64,
    pub memory_entries: u64,
    pub memory_bytes: u64,
    pub image_entries: u64,
    pub image_bytes: u64,
    pub hits: u64,
    pub memory_hits: u64,
    pub image_hits: u64,
    pub validated: u64,
    pub stale: u64,
    pub misses: u64,
    pub resumed: u64,
    pub stored: u64,
    pub evicted: u64,
    pub damaged: u64,
    pub not_stored: u64,
    pub unflushed: u64,
}

extern "C" {
    pub fn imgdl_version() -> u32;
    pub fn imgdl_version_string() -> *const c_char;

    pub fn imgdl_error_name(code: imgdl_status) -> *const c_char;
    pub fn imgdl_error_message(code: imgdl_status) -> *const c_char;
    pub fn imgdl_last_error() -> *const c_char;

    pub fn imgdl_image_width(image: *const imgdl_image) -> u32;
    pub fn imgdl_image_height(image: *const imgdl_image) -> u32;
    pub fn imgdl_image_stride(image: *const imgdl_image) -> usize;
    pub fn imgdl_image_format(image: *const imgdl_image) -> imgdl_format;
    pub fn imgdl_image_pixel_format(image: *const imgdl_image) -> imgdl_pixel_format;
    pub fn imgdl_image_pixels(image: *const imgdl_image) -> *const c_void;
    pub fn imgdl_image_frame_count(image: *const imgdl_image) -> u32;
    pub fn imgdl_image_frame(image: *const imgdl_image, index: u32, frame: *mut *mut imgdl_image) -> imgdl_status;
    pub fn imgdl_image_frame_duration_ms(image: *const imgdl_image, index: u32) -> u32;
    pub fn imgdl_image_loop_count(image: *const imgdl_image) -> u32;
    pub fn imgdl_image_scale_factor(image: *const imgdl_image) -> f64;
    pub fn imgdl_image_orientation(image: *const imgdl_image) -> u32;
    pub fn imgdl_image_is_complete(image: *const imgdl_image) -> i32;
    pub fn imgdl_image_is_good_enough(image: *const imgdl_image) -> i32;
    pub fn imgdl_image_notes(image: *const imgdl_image) -> imgdl_picture_notes;
    pub fn imgdl_image_colour_notes(image: *const imgdl_image) -> imgdl_colour_notes;
    pub fn imgdl_image_icc_profile(image: *const imgdl_image, length: *mut usize) -> *const c_void;
    pub fn imgdl_image_pass(image: *const imgdl_image) -> u32;
    pub fn imgdl_image_ready(image: *const imgdl_image) -> imgdl_rectangle;
    pub fn imgdl_image_create(
        width: u32,
        height: u32,
        format: imgdl_pixel_format,
        pixels: *const c_void,
        stride: usize,
        image: *mut *mut imgdl_image,
    ) -> imgdl_status;
    pub fn imgdl_image_retain(image: *mut imgdl_image) -> *mut imgdl_image;
    pub fn imgdl_image_release(image: *mut imgdl_image);

    pub fn imgdl_data_bytes(data: *const imgdl_data) -> *const c_void;
    pub fn imgdl_data_length(data: *const imgdl_data) -> usize;
    pub fn imgdl_data_retain(data: *mut imgdl_data) -> *mut imgdl_data;
    pub fn imgdl_data_release(data: *mut imgdl_data);

    pub fn imgdl_decode_options_init(options: *mut imgdl_decode_options, struct_size: usize);
    pub fn imgdl_image_info_init(info: *mut imgdl_image_info, struct_size: usize);
    pub fn imgdl_decode(
        bytes: *const c_void,
        length: usize,
        options: *const imgdl_decode_options,
        image: *mut *mut imgdl_image,
    ) -> imgdl_status;
    pub fn imgdl_decoder_create(options: *const imgdl_decode_options, decoder: *mut *mut imgdl_decoder)
        -> imgdl_status;
    pub fn imgdl_decoder_feed(decoder: *mut imgdl_decoder, bytes: *const c_void, length: usize) -> imgdl_status;
    pub fn imgdl_decoder_info(decoder: *mut imgdl_decoder, info: *mut imgdl_image_info) -> imgdl_status;
    pub fn imgdl_decoder_partial(decoder: *mut imgdl_decoder, image: *mut *mut imgdl_image) -> imgdl_status;
    pub fn imgdl_decoder_finish(decoder: *mut imgdl_decoder, image: *mut *mut imgdl_image) -> imgdl_status;
    pub fn imgdl_decoder_destroy(decoder: *mut imgdl_decoder);

    pub fn imgdl_executor_create_pumped(executor: *mut *mut imgdl_executor) -> imgdl_status;
    pub fn imgdl_executor_fd(executor: *mut imgdl_executor) -> i32;
    pub fn imgdl_executor_dispatch(
        executor: *mut imgdl_executor,
        max_events: u32,
        dispatched: *mut u32,
    ) -> imgdl_status;
    pub fn imgdl_executor_retain(executor: *mut imgdl_executor) -> *mut imgdl_executor;
    pub fn imgdl_executor_release(executor: *mut imgdl_executor);

    pub fn imgdl_request_init(request: *mut imgdl_request, struct_size: usize);

    pub fn imgdl_outgoing_init(outgoing: *mut imgdl_outgoing, struct_size: usize);
    pub fn imgdl_hooks_create(table: *const imgdl_hooks_table, hooks: *mut *mut imgdl_hooks) -> imgdl_status;
    pub fn imgdl_hooks_retain(hooks: *mut imgdl_hooks) -> *mut imgdl_hooks;
    pub fn imgdl_hooks_release(hooks: *mut imgdl_hooks);
    pub fn imgdl_continue_unchanged(next: *mut imgdl_continuation) -> imgdl_status;
    pub fn imgdl_continue_with_request(next: *mut imgdl_continuation, request: *const imgdl_outgoing) -> imgdl_status;
    pub fn imgdl_continue_with_response(
        next: *mut imgdl_continuation,
        status: i32,
        headers: *const imgdl_header,
        header_count: usize,
    ) -> imgdl_status;
    pub fn imgdl_continue_with_data(next: *mut imgdl_continuation, bytes: *const c_void, length: usize)
        -> imgdl_status;
    pub fn imgdl_continue_with_credentials(
        next: *mut imgdl_continuation,
        user: *const c_char,
        password: *const c_char,
    ) -> imgdl_status;
    pub fn imgdl_continue_refused(
        next: *mut imgdl_continuation,
        code: imgdl_status,
        message: *const c_char,
    ) -> imgdl_status;

    pub fn imgdl_config_init(config: *mut imgdl_config, struct_size: usize);
    pub fn imgdl_downloader_create(config: *const imgdl_config, downloader: *mut *mut imgdl_downloader)
        -> imgdl_status;
    pub fn imgdl_downloader_shared(downloader: *mut *mut imgdl_downloader) -> imgdl_status;
    pub fn imgdl_downloader_retain(downloader: *mut imgdl_downloader) -> *mut imgdl_downloader;
    pub fn imgdl_downloader_release(downloader: *mut imgdl_downloader);
    pub fn imgdl_downloader_set_header(
        downloader: *mut imgdl_downloader,
        name: *const c_char,
        value: *const c_char,
    ) -> imgdl_status;
    pub fn imgdl_downloader_get_header(
        downloader: *mut imgdl_downloader,
        name: *const c_char,
        buffer: *mut c_char,
        size: usize,
        length: *mut usize,
    ) -> imgdl_status;
    pub fn imgdl_downloader_set_max_concurrent(downloader: *mut imgdl_downloader, max_concurrent: u32) -> imgdl_status;
    pub fn imgdl_downloader_set_max_per_host(downloader: *mut imgdl_downloader, max_per_host: u32) -> imgdl_status;
    pub fn imgdl_downloader_max_concurrent(downloader: *mut imgdl_downloader) -> u32;
    pub fn imgdl_downloader_is_suspended(downloader: *mut imgdl_downloader) -> i32;
    pub fn imgdl_downloader_set_order(downloader: *mut imgdl_downloader, order: imgdl_order) -> imgdl_status;
    pub fn imgdl_downloader_set_suspended(downloader: *mut imgdl_downloader, suspended: i32) -> imgdl_status;
    pub fn imgdl_downloader_enter_background(downloader: *mut imgdl_downloader, grace_ms: u32) -> imgdl_status;
    pub fn imgdl_downloader_enter_foreground(downloader: *mut imgdl_downloader) -> imgdl_status;
    pub fn imgdl_downloader_network_changed(downloader: *mut imgdl_downloader) -> imgdl_status;
    pub fn imgdl_downloader_invalidate(downloader: *mut imgdl_downloader, cancels: i32) -> imgdl_status;
    pub fn imgdl_downloader_reconfigure(downloader: *mut imgdl_downloader, config: *const imgdl_config)
        -> imgdl_status;
    pub fn imgdl_downloader_cancel_all(downloader: *mut imgdl_downloader) -> imgdl_status;
    pub fn imgdl_downloader_current_count(downloader: *mut imgdl_downloader) -> u64;
    pub fn imgdl_downloader_wait_idle(downloader: *mut imgdl_downloader, timeout_ms: i64) -> imgdl_status;
    pub fn imgdl_downloader_shutdown(
        downloader: *mut imgdl_downloader,
        mode: imgdl_shutdown_mode,
        done: imgdl_destructor,
        user_data: *mut c_void,
    ) -> imgdl_status;
    pub fn imgdl_downloader_destroy(downloader: *mut imgdl_downloader) -> imgdl_status;

    pub fn imgdl_download(
        downloader: *mut imgdl_downloader,
        request: *const imgdl_request,
        token: *mut *mut imgdl_token,
    ) -> imgdl_status;
    pub fn imgdl_token_cancel(token: *mut imgdl_token) -> imgdl_status;
    pub fn imgdl_token_set_priority(token: *mut imgdl_token, priority: imgdl_priority) -> imgdl_status;
    pub fn imgdl_token_wait(token: *mut imgdl_token, timeout_ms: i64) -> imgdl_status;
    pub fn imgdl_result_init(result: *mut imgdl_result, struct_size: usize);
    pub fn imgdl_token_result(token: *mut imgdl_token, result: *mut imgdl_result) -> imgdl_status;
    pub fn imgdl_token_id(token: *mut imgdl_token) -> u64;
    pub fn imgdl_token_retain(token: *mut imgdl_token) -> *mut imgdl_token;
    pub fn imgdl_token_release(token: *mut imgdl_token);

    pub fn imgdl_batch_options_init(options: *mut imgdl_batch_options, struct_size: usize);
    pub fn imgdl_downloader_prefetch(
        downloader: *mut imgdl_downloader,
        requests: *const imgdl_request,
        count: usize,
        options: *const imgdl_batch_options,
        batch: *mut *mut imgdl_batch,
    ) -> imgdl_status;
    pub fn imgdl_batch_cancel(batch: *mut imgdl_batch) -> imgdl_status;
    pub fn imgdl_batch_set_paused(batch: *mut imgdl_batch, paused: i32) -> imgdl_status;
    pub fn imgdl_batch_set_priority(batch: *mut imgdl_batch, priority: imgdl_priority) -> imgdl_status;
    pub fn imgdl_batch_progress_get(batch: *mut imgdl_batch, progress: *mut imgdl_batch_progress) -> imgdl_status;
    pub fn imgdl_batch_retain(batch: *mut imgdl_batch) -> *mut imgdl_batch;
    pub fn imgdl_batch_release(batch: *mut imgdl_batch);

    pub fn imgdl_metrics_init(metrics: *mut imgdl_metrics, struct_size: usize);
    pub fn imgdl_token_metrics(token: *mut imgdl_token, metrics: *mut imgdl_metrics) -> imgdl_status;
    pub fn imgdl_downloader_set_observer(
        downloader: *mut imgdl_downloader,
        observer: imgdl_observer,
        user_data: *mut c_void,
        destructor: imgdl_destructor,
    ) -> imgdl_status;
    pub fn imgdl_histogram_quantile(histogram: *const imgdl_histogram, q: f64) -> f64;
    pub fn imgdl_stats_init(stats: *mut imgdl_stats, struct_size: usize);
    pub fn imgdl_downloader_stats(downloader: *mut imgdl_downloader, stats: *mut imgdl_stats) -> imgdl_status;
    pub fn imgdl_trim(level: imgdl_trim_level) -> u64;

    pub fn imgdl_coder_register(table: *const imgdl_coder_table, coder: *mut *mut imgdl_coder) -> imgdl_status;
    pub fn imgdl_coder_release(coder: *mut imgdl_coder);
    pub fn imgdl_transport_register(
        downloader: *mut imgdl_downloader,
        scheme: *const c_char,
        table: *const imgdl_transport_table,
    ) -> imgdl_status;
    pub fn imgdl_transfer_response(
        transfer: *mut imgdl_transfer,
        status: i32,
        headers: *const imgdl_header,
        header_count: usize,
    ) -> imgdl_status;
    pub fn imgdl_transfer_body(transfer: *mut imgdl_transfer, bytes: *const c_void, length: usize) -> imgdl_status;
    pub fn imgdl_transfer_end(
        transfer: *mut imgdl_transfer,
        code: imgdl_status,
        message: *const c_char,
    ) -> imgdl_status;
    pub fn imgdl_transfer_release(transfer: *mut imgdl_transfer);

    pub fn imgdl_cache_config_init(config: *mut imgdl_cache_config, struct_size: usize);
    pub fn imgdl_cache_open(config: *const imgdl_cache_config, cache: *mut *mut imgdl_cache) -> imgdl_status;
    pub fn imgdl_cache_retain(cache: *mut imgdl_cache) -> *mut imgdl_cache;
    pub fn imgdl_cache_release(cache: *mut imgdl_cache);
    pub fn imgdl_cache_entry_init(entry: *mut imgdl_cache_entry, struct_size: usize);
    pub fn imgdl_cache_query(
        cache: *mut imgdl_cache,
        url: *const c_char,
        entry: *mut imgdl_cache_entry,
    ) -> imgdl_status;
    pub fn imgdl_cache_remove(cache: *mut imgdl_cache, url: *const c_char) -> imgdl_status;
    pub fn imgdl_cache_remove_older(cache: *mut imgdl_cache, age_s: i64) -> imgdl_status;
    pub fn imgdl_cache_clear(cache: *mut imgdl_cache) -> imgdl_status;
    pub fn imgdl_cache_flush(cache: *mut imgdl_cache) -> imgdl_status;
    pub fn imgdl_cache_stats_init(stats: *mut imgdl_cache_stats, struct_size: usize);
    pub fn imgdl_cache_statistics(cache: *mut imgdl_cache, stats: *mut imgdl_cache_stats) -> imgdl_status;
}
