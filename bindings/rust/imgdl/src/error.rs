//! What can go wrong.

use std::fmt;

use crate::convert::static_text;
use crate::image::Image;
use crate::observing::Metrics;

/// Short for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The number of an error. The numbers are stable, and later versions may add some: treat one that you do not know like
/// [`Code::INTERNAL`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(i32);

macro_rules! codes {
    ($($(#[$text:meta])* $name:ident = $raw:ident;)*) => {
        impl Code {
            $( $(#[$text])* pub const $name: Code = Code(imgdl_sys::$raw); )*
        }
    };
}

codes! {
    /// The URL is empty, malformed, or holds control characters.
    INVALID_URL = IMGDL_ERROR_INVALID_URL;
    /// Not a picture, a broken one, or an empty body.
    BAD_IMAGE_DATA = IMGDL_ERROR_BAD_IMAGE_DATA;
    /// The server says that the caller's copy is still good.
    NOT_MODIFIED = IMGDL_ERROR_NOT_MODIFIED;
    /// It failed for good less than [`failure_ttl`](crate::Builder::failure_ttl) ago.
    BLACKLISTED = IMGDL_ERROR_BLACKLISTED;
    /// The downloader could not begin it.
    INVALID_OPERATION = IMGDL_ERROR_INVALID_OPERATION;
    /// The HTTP status is not an accepted one; [`Error::http_status`] tells which.
    INVALID_STATUS = IMGDL_ERROR_INVALID_STATUS;
    /// By [`Token::cancel`](crate::Token::cancel), `cancel_all`, `shutdown`, `close`, or a panic in its callback.
    CANCELLED = IMGDL_ERROR_CANCELLED;
    /// A hook refused the response.
    INVALID_RESPONSE = IMGDL_ERROR_INVALID_RESPONSE;
    /// The response is of none of the [accepted types](crate::Request::accepted_types).
    INVALID_CONTENT_TYPE = IMGDL_ERROR_INVALID_CONTENT_TYPE;
    /// A value out of range.
    INVALID_ARGUMENT = IMGDL_ERROR_INVALID_ARGUMENT;
    /// A handle that is not valid any more, such as that of a dropped executor.
    INVALID_HANDLE = IMGDL_ERROR_INVALID_HANDLE;
    /// An option that the loaded library does not know.
    UNSUPPORTED_OPTION = IMGDL_ERROR_UNSUPPORTED_OPTION;
    /// Waiting here would wait for this very thread.
    WOULD_DEADLOCK = IMGDL_ERROR_WOULD_DEADLOCK;
    /// The downloader takes no more requests, or the process exits.
    SHUT_DOWN = IMGDL_ERROR_SHUT_DOWN;
    /// The handle belongs to the parent process.
    FORKED = IMGDL_ERROR_FORKED;
    /// Memory, threads or descriptors ran out.
    OUT_OF_MEMORY = IMGDL_ERROR_OUT_OF_MEMORY;
    /// The time given to a wait is over; nothing else happened.
    WAIT_TIMEOUT = IMGDL_ERROR_WAIT_TIMEOUT;
    /// Not yet: there is nothing to give, or no room to take.
    NOT_READY = IMGDL_ERROR_NOT_READY;
    /// A defect of the library: please report it.
    INTERNAL = IMGDL_ERROR_INTERNAL;
    /// CR, LF, NUL or other bytes that no header, method or credential has.
    INVALID_HEADER = IMGDL_ERROR_INVALID_HEADER;
    /// Neither http nor https, nor a scheme that was allowed or registered.
    UNSUPPORTED_SCHEME = IMGDL_ERROR_UNSUPPORTED_SCHEME;
    /// The time given to [`enter_background`](crate::Downloader::enter_background) is over.
    BACKGROUND_EXPIRED = IMGDL_ERROR_BACKGROUND_EXPIRED;
    /// The host's name has no address.
    RESOLVE_FAILED = IMGDL_ERROR_RESOLVE_FAILED;
    /// No connection could be made.
    CONNECT_FAILED = IMGDL_ERROR_CONNECT_FAILED;
    /// Closed or reset before the answer was complete.
    CONNECTION_LOST = IMGDL_ERROR_CONNECTION_LOST;
    /// No TLS session could be made.
    TLS_FAILED = IMGDL_ERROR_TLS_FAILED;
    /// The server's certificate is not trusted, expired, or another host's.
    TLS_CERTIFICATE = IMGDL_ERROR_TLS_CERTIFICATE;
    /// The server's answer is not HTTP.
    PROTOCOL = IMGDL_ERROR_PROTOCOL;
    /// The body or the picture ends too early.
    TRUNCATED = IMGDL_ERROR_TRUNCATED;
    /// Name, connection and TLS took too long.
    CONNECT_TIMEOUT = IMGDL_ERROR_CONNECT_TIMEOUT;
    /// No byte for too long.
    IDLE_TIMEOUT = IMGDL_ERROR_IDLE_TIMEOUT;
    /// The request's own [`total_timeout`](crate::Request::total_timeout).
    TOTAL_TIMEOUT = IMGDL_ERROR_TOTAL_TIMEOUT;
    /// The proxy cannot be reached, refused, or is none.
    PROXY_FAILED = IMGDL_ERROR_PROXY_FAILED;
    /// More than [`max_redirects`](crate::Builder::max_redirects), or a loop.
    TOO_MANY_REDIRECTS = IMGDL_ERROR_TOO_MANY_REDIRECTS;
    /// From https to http, to another scheme, or without a usable Location.
    REDIRECT_REFUSED = IMGDL_ERROR_REDIRECT_REFUSED;
    /// The compressed body is broken, in a coding that is not known, or takes too much work to undo.
    CONTENT_ENCODING = IMGDL_ERROR_CONTENT_ENCODING;
    /// A private address, with [`deny_private_addresses`](crate::Builder::deny_private_addresses).
    ADDRESS_REFUSED = IMGDL_ERROR_ADDRESS_REFUSED;
    /// The server's public key is not the pinned one.
    TLS_PIN = IMGDL_ERROR_TLS_PIN;
    /// [`CacheMode::Only`](crate::CacheMode::Only), and nothing that is stored fits.
    NOT_CACHED = IMGDL_ERROR_NOT_CACHED;
    /// [`max_body_bytes`](crate::Request::max_body_bytes), announced or received.
    BODY_LIMIT = IMGDL_ERROR_BODY_LIMIT;
    /// More than 256 KiB of response header.
    HEADER_LIMIT = IMGDL_ERROR_HEADER_LIMIT;
    /// [`max_pixels`](crate::DecodeOptions::max_pixels), from the picture's header.
    PIXEL_LIMIT = IMGDL_ERROR_PIXEL_LIMIT;
    /// [`max_frames`](crate::DecodeOptions::max_frames).
    FRAME_LIMIT = IMGDL_ERROR_FRAME_LIMIT;
    /// [`max_scans`](crate::DecodeOptions::max_scans).
    SCAN_LIMIT = IMGDL_ERROR_SCAN_LIMIT;
    /// [`max_side`](crate::DecodeOptions::max_side).
    SIZE_LIMIT = IMGDL_ERROR_SIZE_LIMIT;
    /// [`max_animation_pixels`](crate::DecodeOptions::max_animation_pixels).
    ANIMATION_LIMIT = IMGDL_ERROR_ANIMATION_LIMIT;
    /// [`max_metadata_bytes`](crate::DecodeOptions::max_metadata_bytes).
    METADATA_LIMIT = IMGDL_ERROR_METADATA_LIMIT;
    /// [`max_memory_bytes`](crate::DecodeOptions::max_memory_bytes).
    MEMORY_LIMIT = IMGDL_ERROR_MEMORY_LIMIT;
    /// [`max_decode_ms`](crate::DecodeOptions::max_decode_ms).
    DECODE_TIMEOUT = IMGDL_ERROR_DECODE_TIMEOUT;
    /// What the server sends for no request keeps the downloader busy; or, over TLS, 192 KiB and more came that give nothing of
    /// an answer, before an idle timeout, or before the server closed the connection without having begun an answer.
    FLOOD = IMGDL_ERROR_FLOOD;
    /// Another program writes to the cache's index.
    CACHE_BUSY = IMGDL_ERROR_CACHE_BUSY;
    /// The cache's disk has no room.
    DISK_FULL = IMGDL_ERROR_DISK_FULL;
    /// The cache's directory may be read and not written.
    READ_ONLY = IMGDL_ERROR_READ_ONLY;
    /// Anything else that the cache's disk says.
    DISK_FAILED = IMGDL_ERROR_DISK_FAILED;
    /// The cache's directory is somebody else's, or others may write to it.
    UNSAFE_DIRECTORY = IMGDL_ERROR_UNSAFE_DIRECTORY;
}

impl Code {
    pub(crate) fn from_raw(raw: i32) -> Code {
        Code(raw)
    }

    /// The number.
    pub fn number(self) -> i32 {
        self.0
    }

    /// The symbolic name, such as "IMGDL_ERROR_CANCELLED"; "IMGDL_ERROR_UNKNOWN" for numbers that are none.
    pub fn name(self) -> &'static str {
        // SAFETY: takes any number; static.
        unsafe { static_text(imgdl_sys::imgdl_error_name(self.0)) }
    }

    /// A sentence that says what the code means in general. An [`Error`]'s own message is a better one.
    pub fn description(self) -> &'static str {
        // SAFETY: takes any number; static.
        unsafe { static_text(imgdl_sys::imgdl_error_message(self.0)) }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

/// Why a download, a decode or a call failed.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// # fn main() {
/// # let downloader = imgdl::Downloader::new().unwrap();
/// # offline(&downloader);
/// match downloader.get("https://example.org/picture.jpg") {
///     Ok(image) => println!("{image:?}"),
///     Err(error) if error.code() == imgdl::Code::INVALID_STATUS => println!("HTTP {}", error.http_status()),
///     Err(error) => println!("{}: {error}", error.name()),
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Error {
    code: Code,
    message: String,
    http_status: i32,
    image: Option<Image>,
    is_panic: bool,
    details: Option<Box<Details>>,
}

/// What only downloads that failed at their end have.
#[derive(Clone)]
pub(crate) struct Details {
    pub(crate) content_type: String,
    pub(crate) preview: Vec<u8>,
    pub(crate) metrics: Option<Metrics>,
}

impl Error {
    pub(crate) fn new(code: Code, message: String) -> Error {
        Error { code, message, http_status: 0, image: None, is_panic: false, details: None }
    }

    pub(crate) fn with_http_status(self, http_status: i32) -> Error {
        Error { http_status, ..self }
    }

    pub(crate) fn with_image(self, image: Option<Image>) -> Error {
        Error { image, ..self }
    }

    pub(crate) fn with_details(self, details: Details) -> Error {
        Error { details: Some(Box::new(details)), ..self }
    }

    /// The same, with what it is about before the message.
    pub(crate) fn about(self, subject: &str) -> Error {
        Error { message: format!("{subject}: {}", self.message), ..self }
    }

    pub(crate) fn panic(message: &str) -> Error {
        let message = format!("its callback panicked: {message}");
        Error { is_panic: true, ..Error::new(Code::CANCELLED, message) }
    }

    /// What it is, for programs.
    pub fn code(&self) -> Code {
        self.code
    }

    /// [`code`](Error::code)'s symbolic name, such as "IMGDL_ERROR_CANCELLED".
    pub fn name(&self) -> &'static str {
        self.code.name()
    }

    /// A sentence for a person that names the URL and the cause.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Of the last response; 0 if there was none.
    pub fn http_status(&self) -> i32 {
        self.http_status
    }

    /// The media type of the last response, in lower case, without parameters; "" when it said none.
    pub fn content_type(&self) -> &str {
        self.details.as_ref().map_or("", |details| &details.content_type)
    }

    /// The first bytes of the body that was refused, 512 at most: what a server says about an error, for instance.
    pub fn preview(&self) -> &[u8] {
        self.details.as_ref().map_or(&[], |details| &details.preview)
    }

    /// Where the time went, of a download that was accepted.
    pub fn metrics(&self) -> Option<&Metrics> {
        self.details.as_ref().and_then(|details| details.metrics.as_ref())
    }

    /// With [`DecodeOptions::salvage`](crate::DecodeOptions::salvage), the pixels that could be had.
    pub fn image(&self) -> Option<&Image> {
        self.image.as_ref()
    }

    /// The same, to keep.
    pub fn into_image(self) -> Option<Image> {
        self.image
    }

    /// Whether a callback of yours panicked; the code is then [`Code::CANCELLED`].
    pub fn is_panic(&self) -> bool {
        self.is_panic
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.message.is_empty() { self.code.description() } else { &self.message })
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = f.debug_struct("Error");
        parts.field("code", &self.code).field("message", &self.message).field("http_status", &self.http_status);
        if let Some(image) = &self.image {
            parts.field("image", image);
        }
        parts.finish()
    }
}

impl std::error::Error for Error {}
