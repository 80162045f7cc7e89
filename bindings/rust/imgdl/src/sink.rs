//! Between the library's callbacks and closures: what crosses here must not unwind.

use std::any::Any;
use std::os::raw::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use imgdl_sys as sys;

use crate::body::Body;
use crate::convert::{copied_text, lent_bytes};
use crate::error::{Code, Details, Error, Result};
use crate::event::{known, Download, Event, Response};
use crate::format::ImageInfo;
use crate::guard::{contained, discard, guarded, panic_text};
use crate::image::Image;
use crate::observing::Metrics;
use crate::token::Token;

pub(crate) type Callback = Box<dyn FnMut(&Token, Event<'_>) + Send>;

/// What a callback's tokens know of its panic. The lock is never held while user code runs.
#[derive(Default)]
pub(crate) struct Panics(Mutex<Option<Panic>>);

struct Panic {
    message: String,
    /// Until somebody takes it.
    payload: Option<Box<dyn Any + Send>>,
}

impl Panics {
    fn lock(&self) -> MutexGuard<'_, Option<Panic>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn have_happened(&self) -> bool {
        self.lock().is_some()
    }

    /// The first one counts.
    pub(crate) fn remember(&self, payload: Box<dyn Any + Send>) {
        let message = panic_text(&*payload);
        let mut first = self.lock();
        if first.is_some() {
            drop(first);
            discard(payload);
        } else {
            *first = Some(Panic { message, payload: Some(payload) });
        }
    }

    pub(crate) fn error(&self) -> Result<()> {
        self.lock().as_ref().map_or(Ok(()), |panic| Err(Error::panic(&panic.message)))
    }

    pub(crate) fn take(&self) -> Option<Box<dyn Any + Send>> {
        self.lock().as_mut().and_then(|panic| panic.payload.take())
    }
}

/// What a download's user_data points to: from `imgdl_download` until the destructor.
pub(crate) struct Sink {
    callback: Callback,
    panics: Arc<Panics>,
    /// What the callback sees; made at the first event, which may come before `imgdl_download` has returned.
    token: Option<Token>,
}

impl Sink {
    /// To be given to `dispose`, once.
    pub(crate) fn into_user_data(callback: Callback, panics: Arc<Panics>) -> *mut c_void {
        Box::into_raw(Box::new(Sink { callback, panics, token: None })).cast()
    }

    /// # Safety
    /// `raw` and what it points to are valid during the call.
    unsafe fn deliver(&mut self, raw: &sys::imgdl_event) {
        if self.token.is_none() {
            // SAFETY: "To keep an image, a body or the token, retain it."
            self.token = unsafe { Token::from_borrowed(raw.token, self.panics.clone()) };
        }
        let token = match &self.token {
            Some(token) => token,
            None => return,
        };
        let callback = &mut self.callback;
        match raw.kind {
            sys::IMGDL_EVENT_STARTED => callback(token, Event::Started),
            sys::IMGDL_EVENT_RESPONSE => {
                // SAFETY: "valid until the callback returns".
                if let Some(response) = unsafe { raw.response.as_ref() } {
                    // SAFETY: the same.
                    callback(token, Event::Response(&unsafe { Response::copy(response) }));
                }
            }
            sys::IMGDL_EVENT_HEADER => {
                // SAFETY: "valid until the callback returns".
                if let Some(info) = unsafe { raw.info.as_ref() } {
                    callback(token, Event::Header(&ImageInfo::from_raw(info)));
                }
            }
            sys::IMGDL_EVENT_PROGRESS => {
                let received = known(raw.received).unwrap_or(0);
                callback(token, Event::Progress { received, expected: known(raw.expected) });
            }
            sys::IMGDL_EVENT_PARTIAL => {
                if let Some(image) = Image::lend(raw.image) {
                    callback(token, Event::Partial(&image));
                }
            }
            sys::IMGDL_EVENT_TERMINAL => {
                // SAFETY: "valid until the callback returns".
                let result = unsafe { End::of_event(raw).outcome(None) };
                callback(token, Event::Finished(result.as_ref()));
            }
            // Of a newer library; was not asked for.
            _ => {}
        }
    }
}

/// A download's end, as events and results tell it.
pub(crate) struct End {
    code: sys::imgdl_status,
    http_status: i32,
    message: *const c_char,
    image: *mut sys::imgdl_image,
    data: *mut sys::imgdl_data,
    content_type: *const c_char,
    preview: (*const c_void, usize),
    metrics: *const sys::imgdl_metrics,
}

macro_rules! end {
    ($raw:ident) => {
        End {
            code: $raw.code,
            http_status: $raw.http_status,
            message: $raw.message,
            image: $raw.image,
            data: $raw.data,
            content_type: $raw.content_type,
            preview: ($raw.preview, $raw.preview_length),
            metrics: $raw.metrics,
        }
    };
}

impl End {
    pub(crate) fn of_event(raw: &sys::imgdl_event) -> End {
        end!(raw)
    }

    pub(crate) fn of_result(raw: &sys::imgdl_result) -> End {
        end!(raw)
    }

    /// # Safety
    /// What it points to is NULL or valid during the call.
    pub(crate) unsafe fn outcome(&self, response: Option<Response>) -> Result<Download> {
        // SAFETY: as above.
        let (image, body, content_type, metrics) = unsafe {
            let (image, body) = (Image::from_borrowed(self.image), Body::from_borrowed(self.data));
            (image, body, copied_text(self.content_type), Metrics::copy_option(self.metrics))
        };
        if self.code == sys::IMGDL_OK {
            return Ok(Download { image, body, http_status: self.http_status, content_type, metrics, response });
        }
        // SAFETY: as above.
        let (message, preview) = unsafe { (copied_text(self.message), lent_bytes(self.preview.0, self.preview.1)) };
        let error = Error::new(Code::from_raw(self.code), message).with_http_status(self.http_status).with_image(image);
        Err(error.with_details(Details { content_type, preview: preview.to_vec(), metrics }))
    }
}

/// The callback of every request that has one.
///
/// # Safety
/// Called by the library, with the user_data that `Sink::into_user_data` made: not after `dispose`, and "For one token
/// callbacks never overlap", so that the sink may be borrowed mutably.
pub(crate) unsafe extern "C" fn deliver(event: *const sys::imgdl_event, user_data: *mut c_void) {
    // SAFETY: as above.
    let (event, sink) = unsafe { (&*event, &mut *user_data.cast::<Sink>()) };
    if sink.panics.have_happened() {
        return;
    }
    let panics = sink.panics.clone();
    // What the closure has left in disorder is seen by nobody: it is not called again, only dropped.
    // SAFETY: "The event and everything in it is borrowed: valid until the callback returns."
    let result = guarded(|| unsafe { sink.deliver(event) });
    if let Err(payload) = result {
        panics.remember(payload);
        // SAFETY: "Every function may be called from any thread, also inside callbacks".
        unsafe { sys::imgdl_token_cancel(event.token) };
    }
}

/// The destructor of every request that has a callback.
///
/// # Safety
/// "Called once when nothing will be called with user_data any more", with what `Sink::into_user_data` made.
pub(crate) unsafe extern "C" fn dispose(user_data: *mut c_void) {
    // SAFETY: as above.
    let sink = unsafe { Box::from_raw(user_data.cast::<Sink>()) };
    let panics = sink.panics.clone();
    if let Err(payload) = guarded(|| drop(sink)) {
        panics.remember(payload);
    }
}

pub(crate) type Done = Box<dyn FnOnce() + Send>;

/// The end of a shutdown. A panic in it has been told by the panic hook; nobody is left to hear more of it.
///
/// # Safety
/// Called once, with a `Box<Done>` made raw.
pub(crate) unsafe extern "C" fn done(user_data: *mut c_void) {
    // SAFETY: as above.
    let done = unsafe { Box::from_raw(user_data.cast::<Done>()) };
    contained(done);
}
