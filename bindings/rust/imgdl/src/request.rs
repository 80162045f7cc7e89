//! What to download, and how.

use std::ffi::CString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use imgdl_sys as sys;

use crate::cache::CacheMode;
use crate::convert::{c_option, c_string, check, filled, milliseconds, pointer};
use crate::decode::DecodeOptions;
use crate::error::{Code, Result};
use crate::event::{Event, Events};
use crate::executor::{Executor, Pump};
use crate::headers::CHeaders;
use crate::hooks::Hooks;
use crate::options::{common_options, write_common, CCommon, Common, Retry};
use crate::sink::{self, Callback, Panics, Sink};
use crate::token::Token;

/// Which of the waiting requests go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Priority {
    /// After the others.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Before the others.
    High,
}

impl Priority {
    pub(crate) fn raw(self) -> sys::imgdl_priority {
        match self {
            Priority::Low => sys::IMGDL_PRIORITY_LOW,
            Priority::Normal => sys::IMGDL_PRIORITY_NORMAL,
            Priority::High => sys::IMGDL_PRIORITY_HIGH,
        }
    }
}

/// A request, for [`Downloader::download`](crate::Downloader::download). Nothing is checked before that.
///
/// ```
/// use std::time::Duration;
/// use imgdl::{DecodeOptions, Events, Priority, Request};
///
/// let request = Request::new("https://example.org/picture.jpg")
///     .header("Accept-Language", "nl")
///     .priority(Priority::High)
///     .total_timeout(Duration::from_secs(20))
///     .decode_options(DecodeOptions::new().salvage())
///     .on_event(Events::PROGRESS, |token, event| println!("{token:?}: {event:?}"));
/// ```
#[must_use = "a request does nothing until it is given to a downloader"]
pub struct Request {
    url: String,
    method: Option<String>,
    headers: Vec<(String, Option<String>)>,
    send: Vec<u8>,
    priority: Priority,
    flags: sys::imgdl_request_flags,
    max_body_bytes: u64,
    total_timeout: Duration,
    partial_interval: Duration,
    decode: DecodeOptions,
    executor: Executor,
    events: Events,
    callback: Option<Callback>,
    scale_factor: f64,
    cache_mode: sys::imgdl_cache_mode,
    common: Common,
}

common_options!(Request);

impl Request {
    /// GET of an http or https URL, decoded to an image.
    pub fn new(url: impl Into<String>) -> Request {
        Request {
            url: url.into(),
            method: None,
            headers: Vec::new(),
            send: Vec::new(),
            priority: Priority::Normal,
            flags: 0,
            max_body_bytes: 0,
            total_timeout: Duration::ZERO,
            partial_interval: Duration::ZERO,
            decode: DecodeOptions::new(),
            executor: Executor::default(),
            events: Events::NONE,
            callback: None,
            scale_factor: 0.0,
            cache_mode: sys::IMGDL_CACHE_DEFAULT,
            common: Common::default(),
        }
    }

    /// Another method than GET.
    pub fn method(self, method: impl Into<String>) -> Request {
        Request { method: Some(method.into()), ..self }
    }

    /// One more header. It takes the place of the downloader's of the same name.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Request {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// Does not send a header that the downloader would.
    pub fn without_header(mut self, name: impl Into<String>) -> Request {
        self.headers.push((name.into(), None));
        self
    }

    /// A body to send.
    pub fn send(self, body: impl Into<Vec<u8>>) -> Request {
        Request { send: body.into(), ..self }
    }

    /// Which of the waiting requests go first.
    pub fn priority(self, priority: Priority) -> Request {
        Request { priority, ..self }
    }

    /// Hands over the body, of any type, and decodes nothing.
    pub fn body_only(self) -> Request {
        let flags = (self.flags | sys::IMGDL_REQUEST_BODY) & !sys::IMGDL_REQUEST_DECODE;
        Request { flags, ..self }
    }

    /// Hands over the body besides the image.
    pub fn keep_body(self) -> Request {
        self.with(sys::IMGDL_REQUEST_BODY | sys::IMGDL_REQUEST_DECODE)
    }

    /// A redirect is an answer like any other: it is not followed.
    pub fn no_redirects(self) -> Request {
        self.with(sys::IMGDL_REQUEST_NO_REDIRECTS)
    }

    /// Follows redirects from https to http too.
    pub fn allow_downgrade(self) -> Request {
        self.with(sys::IMGDL_REQUEST_ALLOW_DOWNGRADE)
    }

    /// Sends and keeps cookies, in the downloader's jar. Otherwise a request has nothing to do with cookies.
    pub fn cookies(self) -> Request {
        self.with(sys::IMGDL_REQUEST_COOKIES)
    }

    /// Takes any server certificate, self-signed ones too, of any name. Over https its connection is not used for requests that
    /// do not say so. Nothing of it is stored, and nothing stored answers it, over https or http.
    pub fn allow_invalid_certificates(self) -> Request {
        self.with(sys::IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES)
    }

    /// Goes on while the downloader is [in the background](crate::Downloader::enter_background).
    pub fn continue_in_background(self) -> Request {
        self.with(sys::IMGDL_REQUEST_CONTINUE_IN_BACKGROUND)
    }

    /// Asks again, whatever failed less than [`failure_ttl`](crate::Builder::failure_ttl) ago.
    pub fn retry_failed(self) -> Request {
        self.with(sys::IMGDL_REQUEST_RETRY_FAILED)
    }

    /// Response, hops and errors show URLs with the values of their queries: may be secrets of signed URLs.
    pub fn full_urls(self) -> Request {
        self.with(sys::IMGDL_REQUEST_FULL_URLS)
    }

    /// Pixels of the picture for each pixel of the layout, for [`Image::scale_factor`](crate::Image::scale_factor); by
    /// default what the URL's file name says (photo@2x.png), else 1.
    pub fn scale_factor(self, scale_factor: f64) -> Request {
        Request { scale_factor, ..self }
    }

    /// How it uses the downloader's [cache](crate::Builder::cache), in place of the
    /// [downloader's mode](crate::Builder::cache_mode).
    pub fn cache(self, mode: CacheMode) -> Request {
        Request { cache_mode: mode.raw(), ..self }
    }

    /// Only if it has changed: what comes from the cache, or has the very bytes that were stored when the request began,
    /// ends with [`Code::NOT_MODIFIED`]. It waits for the validation of what is stale, also within stale-while-revalidate,
    /// but where the request itself takes what is stale (`Cache-Control: max-stale`, [`CacheMode::Only`]).
    pub fn ignore_cached(self) -> Request {
        self.with(sys::IMGDL_REQUEST_IGNORE_CACHED)
    }

    /// Answers a challenge for Basic over http too, where everybody on the way can read the password.
    pub fn basic_over_http(self) -> Request {
        self.with(sys::IMGDL_REQUEST_BASIC_OVER_HTTP)
    }

    /// Any HTTP status is a success.
    pub fn any_status(self) -> Request {
        self.with(sys::IMGDL_REQUEST_ANY_STATUS)
    }

    /// The longest body to receive, Content-Encoding undone; 0 is the default of 256 MiB.
    pub fn max_body_bytes(self, max_body_bytes: u64) -> Request {
        Request { max_body_bytes, ..self }
    }

    /// From the start of the transfer, once the cache has been looked at, to the last decode; zero is the default: none.
    pub fn total_timeout(self, timeout: Duration) -> Request {
        Request { total_timeout: timeout, ..self }
    }

    /// At least so long between two partial images; zero is the default of 100 ms.
    pub fn partial_interval(self, interval: Duration) -> Request {
        Request { partial_interval: interval, ..self }
    }

    /// How to decode.
    pub fn decode_options(self, options: DecodeOptions) -> Request {
        Request { decode: options, ..self }
    }

    /// Where the callback runs, in place of the downloader's executor.
    pub fn executor(self, executor: impl Into<Executor>) -> Request {
        Request { executor: executor.into(), ..self }
    }

    /// Calls `callback` with the events asked for, and with [`Event::Finished`] always. For one download calls never
    /// overlap, and come in order; they may begin before `download` returns. After the last call the closure is
    /// dropped, and so it is when `download` returns an error: exactly once.
    ///
    /// Without a callback the result waits in the token. With one the image, the body and the response are in the events:
    /// [`Token::wait`](crate::Token::wait) then tells how it ended, and has none of them.
    ///
    /// It runs on another thread, and so what it captures has to be `Send`:
    ///
    /// ```compile_fail,E0277
    /// use imgdl::{Events, Request};
    /// let count = std::rc::Rc::new(0);
    /// let request = Request::new("https://example.org/picture.jpg").on_event(Events::ALL, move |_, _| drop(count.clone()));
    /// ```
    pub fn on_event(self, events: Events, callback: impl FnMut(&Token, Event<'_>) + Send + 'static) -> Request {
        Request { events, callback: Some(Box::new(callback)), ..self }
    }

    /// The request without its callback and what that asked for. One that has none runs where `place` says, unless it
    /// names an executor.
    pub(crate) fn take_callback(mut self, place: Executor) -> (Request, Option<Callback>, Events) {
        let callback = self.callback.take();
        let executor = if callback.is_none() { self.executor.or(place) } else { self.executor };
        let events = self.events;
        (Request { executor, events: Events::NONE, ..self }, callback, events)
    }

    fn with(self, flags: sys::imgdl_request_flags) -> Request {
        Request { flags: self.flags | flags, ..self }
    }

    /// Gives it to the library.
    ///
    /// # Safety
    /// `downloader` is a living handle.
    pub(crate) unsafe fn submit(self, downloader: *mut sys::imgdl_downloader) -> Result<Option<Token>> {
        let mut request = self.prepare()?;
        let callback = request.callback.take();
        // "strings, headers and body are copied" before the library returns: until then `request` lives.
        let mut raw = request.raw();
        let panics = arm(&mut raw, callback);
        let mut token = ptr::null_mut();
        // SAFETY: the struct and what it points to live until the library returns. The closure is Send, as the
        // executor's thread needs; it is disposed of in any case: "When an error is returned only the destructor is
        // called".
        check(unsafe { sys::imgdl_download(downloader, &raw, &mut token) })?;
        Ok(Token::from_owned(token, panics))
    }

    pub(crate) fn prepare(self) -> Result<Prepared> {
        let (executor, pump) = self.executor.resolve()?;
        Ok(Prepared {
            url: c_string(&self.url, Code::INVALID_URL, "the URL")?,
            method: c_option(self.method.as_deref(), Code::INVALID_HEADER, "the method")?,
            headers: CHeaders::new(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())))?,
            send: self.send,
            priority: self.priority,
            flags: self.flags,
            events: self.events,
            max_body_bytes: self.max_body_bytes,
            total_timeout_ms: milliseconds(self.total_timeout),
            partial_interval_ms: milliseconds(self.partial_interval),
            decode: self.decode.to_raw(),
            executor,
            pump,
            scale_factor: self.scale_factor,
            cache_mode: self.cache_mode,
            common: CCommon::new(self.common)?,
            callback: self.callback,
        })
    }
}

/// A request as C wants it.
pub(crate) struct Prepared {
    url: CString,
    method: Option<CString>,
    headers: CHeaders,
    send: Vec<u8>,
    priority: Priority,
    flags: sys::imgdl_request_flags,
    events: Events,
    max_body_bytes: u64,
    total_timeout_ms: u32,
    partial_interval_ms: u32,
    decode: sys::imgdl_decode_options,
    executor: *mut sys::imgdl_executor,
    /// Keeps the executor.
    pub(crate) pump: Option<Arc<Pump>>,
    scale_factor: f64,
    cache_mode: sys::imgdl_cache_mode,
    common: CCommon,
    pub(crate) callback: Option<Callback>,
}

impl Prepared {
    /// Valid as long as `self` stays where it is. Without its callback: see `arm`.
    pub(crate) fn raw(&self) -> sys::imgdl_request {
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_request_init) };
        raw.priority = self.priority.raw();
        raw.flags = self.flags;
        raw.event_mask = self.events.raw();
        raw.url = self.url.as_ptr();
        raw.method = pointer(&self.method);
        raw.headers = self.headers.raw.as_ptr();
        raw.header_count = self.headers.raw.len();
        raw.body = self.send.as_ptr().cast();
        raw.body_length = self.send.len();
        raw.max_body_bytes = self.max_body_bytes;
        raw.total_timeout_ms = self.total_timeout_ms;
        raw.partial_interval_ms = self.partial_interval_ms;
        raw.decode = &self.decode;
        raw.executor = self.executor;
        raw.scale_factor = self.scale_factor;
        raw.cache_mode = self.cache_mode;
        write_common!(raw, self.common);
        raw
    }
}

/// Puts the callback into a request, which is to be given to the library then: that disposes of it.
pub(crate) fn arm(raw: &mut sys::imgdl_request, callback: Option<Callback>) -> Arc<Panics> {
    let panics = Arc::new(Panics::default());
    if let Some(callback) = callback {
        raw.callback = Some(sink::deliver);
        raw.destructor = Some(sink::dispose);
        raw.user_data = Sink::into_user_data(callback, panics.clone());
    }
    panics
}

impl From<&str> for Request {
    fn from(url: &str) -> Request {
        Request::new(url)
    }
}

impl From<String> for Request {
    fn from(url: String) -> Request {
        Request::new(url)
    }
}

impl From<&String> for Request {
    fn from(url: &String) -> Request {
        Request::new(url.as_str())
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither headers nor the query go into logs: they may hold secrets.
        let url = self.url.split('?').next().unwrap_or("");
        f.debug_struct("Request").field("url", &url).field("priority", &self.priority).finish_non_exhaustive()
    }
}
