//! What to download, and how.

use std::ffi::CString;
use std::fmt;
use std::mem::{size_of, MaybeUninit};
use std::os::raw::{c_char, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use imgdl_sys as sys;

use crate::convert::{c_string, milliseconds};
use crate::decode::DecodeOptions;
use crate::error::{Code, Result};
use crate::event::{Event, Events};
use crate::executor::Executor;
use crate::sink::{self, Callback, Panics, Sink};
use crate::token::Token;

/// Which of the waiting requests go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
/// ```no_run
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
}

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

    /// Any HTTP status is a success.
    pub fn any_status(self) -> Request {
        self.with(sys::IMGDL_REQUEST_ANY_STATUS)
    }

    /// The longest body to receive, Content-Encoding undone; 0 is the default of 256 MiB.
    pub fn max_body_bytes(self, max_body_bytes: u64) -> Request {
        Request { max_body_bytes, ..self }
    }

    /// From the start of the transfer to the last decode; zero is the default: none.
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
    /// overlap, and come in order; they may begin before `download` returns. After the last call the closure is dropped,
    /// and so it is when `download` returns an error: exactly once.
    ///
    /// Without a callback the result waits in the token.
    pub fn on_event(self, events: Events, callback: impl FnMut(&Token, Event<'_>) + Send + 'static) -> Request {
        Request { events, callback: Some(Box::new(callback)), ..self }
    }

    fn with(self, flags: sys::imgdl_request_flags) -> Request {
        Request { flags: self.flags | flags, ..self }
    }

    /// Gives it to the library.
    ///
    /// # Safety
    /// `downloader` is a living handle.
    pub(crate) unsafe fn submit(self, downloader: *mut sys::imgdl_downloader) -> Result<Option<Token>> {
        // All of these live to the end: "strings, headers and body are copied" before the library returns.
        let url = c_string(&self.url, Code::INVALID_URL, "the URL")?;
        let method = self.method.as_ref().map(|method| c_string(method, Code::INVALID_HEADER, "the method"));
        let method = method.transpose()?;
        let headers = CHeaders::new(&self.headers)?;
        let decode = self.decode.to_raw();
        let (executor, _keeps_executor) = self.executor.resolve()?;

        let mut raw = MaybeUninit::<sys::imgdl_request>::zeroed();
        // SAFETY: as many bytes as it is told; all zeros is a valid value besides.
        let mut raw = unsafe {
            sys::imgdl_request_init(raw.as_mut_ptr(), size_of::<sys::imgdl_request>());
            raw.assume_init()
        };
        raw.priority = self.priority.raw();
        raw.flags = self.flags;
        raw.event_mask = self.events.raw();
        raw.url = url.as_ptr();
        raw.method = method.as_ref().map_or(ptr::null(), |method| method.as_ptr());
        raw.headers = headers.raw.as_ptr();
        raw.header_count = headers.raw.len();
        raw.body = self.send.as_ptr().cast::<c_void>();
        raw.body_length = self.send.len();
        raw.max_body_bytes = self.max_body_bytes;
        raw.total_timeout_ms = milliseconds(self.total_timeout);
        raw.partial_interval_ms = milliseconds(self.partial_interval);
        raw.decode = &decode;
        raw.executor = executor;

        let panics = Arc::new(Panics::default());
        if let Some(callback) = self.callback {
            raw.callback = Some(sink::deliver);
            raw.destructor = Some(sink::dispose);
            raw.user_data = Sink::into_user_data(callback, panics.clone());
        }
        let mut token = ptr::null_mut();
        // SAFETY: the struct and what it points to live until the library returns. The closure is Send, as the executor's
        // thread needs; it is disposed of in any case: "When an error is returned only the destructor is called".
        let status = unsafe { sys::imgdl_download(downloader, &raw, &mut token) };
        crate::convert::check(status)?;
        Ok(Token::from_owned(token, panics))
    }
}

/// Headers as C wants them.
struct CHeaders {
    raw: Vec<sys::imgdl_header>,
    _texts: Vec<CString>,
}

impl CHeaders {
    fn new(headers: &[(String, Option<String>)]) -> Result<CHeaders> {
        let mut texts = Vec::with_capacity(headers.len() * 2);
        let mut raw = Vec::with_capacity(headers.len());
        // A CString's bytes stay where they are when the CString moves.
        let mut keep = |text: &str| -> Result<*const c_char> {
            texts.push(c_string(text, Code::INVALID_HEADER, "a header")?);
            Ok(texts[texts.len() - 1].as_ptr())
        };
        for (name, value) in headers {
            let name = keep(name)?;
            let value = value.as_ref().map_or(Ok(ptr::null()), |value| keep(value))?;
            raw.push(sys::imgdl_header { name, value });
        }
        Ok(CHeaders { raw, _texts: texts })
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither headers nor the query go into logs: they may hold secrets.
        let url = self.url.split('?').next().unwrap_or("");
        f.debug_struct("Request").field("url", &url).field("priority", &self.priority).finish_non_exhaustive()
    }
}
