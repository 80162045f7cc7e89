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

handles! { imgdl_downloader imgdl_token imgdl_executor imgdl_decoder imgdl_image imgdl_data }

pub type imgdl_status = i32;
pub type imgdl_format = u32;
pub type imgdl_pixel_format = u32;
pub type imgdl_decode_flags = u32;
pub type imgdl_event_mask = u32;
pub type imgdl_priority = i32;
pub type imgdl_request_flags = u32;
pub type imgdl_order = u32;
pub type imgdl_shutdown_mode = u32;

pub type imgdl_event_callback = Option<unsafe extern "C" fn(event: *const imgdl_event, user_data: *mut c_void)>;
pub type imgdl_destructor = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

pub const IMGDL_VERSION_MAJOR: u32 = 1;
pub const IMGDL_VERSION_MINOR: u32 = 0;
pub const IMGDL_VERSION_PATCH: u32 = 0;
pub const IMGDL_VERSION_NUMBER: u32 =
    IMGDL_VERSION_MAJOR * 1_000_000 + IMGDL_VERSION_MINOR * 1_000 + IMGDL_VERSION_PATCH;
pub const IMGDL_VERSION_STRING: &str = "1.0.0";

pub const IMGDL_DEFAULT_MAX_PIXELS: u32 = 100_000_000;
pub const IMGDL_DEFAULT_MAX_BODY_BYTES: u32 = 268_435_456;
pub const IMGDL_DEFAULT_MAX_CONCURRENT: u32 = 6;
pub const IMGDL_MAX_CONCURRENT_LIMIT: u32 = 10_000;

pub const IMGDL_EXECUTOR_INLINE: *mut imgdl_executor = 1 as *mut imgdl_executor;
pub const IMGDL_OK: imgdl_status = 0;
pub const IMGDL_ERROR_INVALID_URL: imgdl_status = 1000;
pub const IMGDL_ERROR_BAD_IMAGE_DATA: imgdl_status = 1001;
pub const IMGDL_ERROR_NOT_MODIFIED: imgdl_status = 1002;
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
pub const IMGDL_ERROR_BODY_LIMIT: imgdl_status = 2300;
pub const IMGDL_ERROR_HEADER_LIMIT: imgdl_status = 2301;
pub const IMGDL_ERROR_PIXEL_LIMIT: imgdl_status = 2302;

pub const IMGDL_FORMAT_UNKNOWN: imgdl_format = 0;
pub const IMGDL_FORMAT_JPEG: imgdl_format = 1;
pub const IMGDL_FORMAT_PNG: imgdl_format = 2;
pub const IMGDL_FORMAT_WEBP: imgdl_format = 3;
pub const IMGDL_FORMAT_GIF: imgdl_format = 4;

pub const IMGDL_PIXEL_FORMAT_DEFAULT: imgdl_pixel_format = 0;
pub const IMGDL_PIXEL_FORMAT_RGBA8: imgdl_pixel_format = 1;
pub const IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED: imgdl_pixel_format = 2;
pub const IMGDL_PIXEL_FORMAT_BGRA8: imgdl_pixel_format = 3;
pub const IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED: imgdl_pixel_format = 4;

pub const IMGDL_DECODE_IGNORE_ORIENTATION: imgdl_decode_flags = 1 << 0;
pub const IMGDL_DECODE_SALVAGE: imgdl_decode_flags = 1 << 1;

pub const IMGDL_EVENT_STARTED: imgdl_event_mask = 1 << 0;
pub const IMGDL_EVENT_RESPONSE: imgdl_event_mask = 1 << 1;
pub const IMGDL_EVENT_HEADER: imgdl_event_mask = 1 << 2;
pub const IMGDL_EVENT_PROGRESS: imgdl_event_mask = 1 << 3;
pub const IMGDL_EVENT_PARTIAL: imgdl_event_mask = 1 << 4;
pub const IMGDL_EVENT_TERMINAL: imgdl_event_mask = 1 << 5;
pub const IMGDL_EVENT_ALL: imgdl_event_mask = (1 << 6) - 1;

pub const IMGDL_PRIORITY_LOW: imgdl_priority = -1;
pub const IMGDL_PRIORITY_NORMAL: imgdl_priority = 0;
pub const IMGDL_PRIORITY_HIGH: imgdl_priority = 1;

pub const IMGDL_REQUEST_BODY: imgdl_request_flags = 1 << 0;
pub const IMGDL_REQUEST_DECODE: imgdl_request_flags = 1 << 1;
pub const IMGDL_REQUEST_NO_REDIRECTS: imgdl_request_flags = 1 << 2;
pub const IMGDL_REQUEST_ALLOW_DOWNGRADE: imgdl_request_flags = 1 << 3;
pub const IMGDL_REQUEST_ANY_STATUS: imgdl_request_flags = 1 << 4;

pub const IMGDL_ORDER_FIFO: imgdl_order = 0;
pub const IMGDL_ORDER_LIFO: imgdl_order = 1;

pub const IMGDL_SHUTDOWN_FINISH: imgdl_shutdown_mode = 0;
pub const IMGDL_SHUTDOWN_CANCEL: imgdl_shutdown_mode = 1;

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
pub struct imgdl_response {
    pub struct_size: u32,
    pub status: i32,
    pub http_version: i32,
    pub redirect_count: u32,
    pub content_length: i64,
    pub url: *const c_char,
    pub headers: *const imgdl_header,
    pub header_count: usize,
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
    pub fn imgdl_image_orientation(image: *const imgdl_image) -> u32;
    pub fn imgdl_image_is_complete(image: *const imgdl_image) -> i32;
    pub fn imgdl_image_pass(image: *const imgdl_image) -> u32;
    pub fn imgdl_image_ready(image: *const imgdl_image) -> imgdl_rectangle;
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
    pub fn imgdl_downloader_set_max_concurrent(downloader: *mut imgdl_downloader, max_concurrent: u32) -> imgdl_status;
    pub fn imgdl_downloader_set_order(downloader: *mut imgdl_downloader, order: imgdl_order) -> imgdl_status;
    pub fn imgdl_downloader_set_suspended(downloader: *mut imgdl_downloader, suspended: i32) -> imgdl_status;
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
}
