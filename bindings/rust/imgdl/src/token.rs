//! One accepted download of one caller.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use imgdl_sys as sys;

use crate::convert::{check, filled, wait_milliseconds};
use crate::error::Result;
use crate::event::{Download, Response};
use crate::observing::Metrics;
use crate::request::Priority;
use crate::sink::{End, Panics};

/// An accepted download: to cancel it, wait for it, or ask how it ended. Dropping it does not cancel; the download goes
/// on. What cancels when it is dropped, and can be awaited, is a [`Fetch`](crate::Fetch).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// use std::time::Duration;
/// # fn main() -> Result<(), imgdl::Error> {
/// let downloader = imgdl::Downloader::new()?;
/// # offline(&downloader);
/// let token = downloader.download("https://example.org/picture.jpg")?;
/// match token.wait_timeout(Duration::from_secs(2)) {
///     Ok(download) => println!("{:?}", download.image),
///     Err(error) if error.code() == imgdl::Code::WAIT_TIMEOUT => token.cancel()?,
///     Err(error) => println!("{error}"),
/// }
/// # Ok(())
/// # }
/// ```
pub struct Token {
    raw: NonNull<sys::imgdl_token>,
    panics: Arc<Panics>,
}

// SAFETY: "Every function may be called from any thread, also inside callbacks", and nothing is said about tokens that
// would be one at a time.
unsafe impl Send for Token {}
// SAFETY: as for Send.
unsafe impl Sync for Token {}

impl Token {
    /// Takes over one reference; None for NULL.
    pub(crate) fn from_owned(raw: *mut sys::imgdl_token, panics: Arc<Panics>) -> Option<Token> {
        NonNull::new(raw).map(|raw| Token { raw, panics })
    }

    /// Takes a reference of its own; None for NULL.
    ///
    /// # Safety
    /// `raw` is NULL or valid during the call.
    pub(crate) unsafe fn from_borrowed(raw: *mut sys::imgdl_token, panics: Arc<Panics>) -> Option<Token> {
        // SAFETY: "Another reference, and the same handle; NULL for an invalid one".
        Token::from_owned(unsafe { sys::imgdl_token_retain(raw) }, panics)
    }

    /// Cancels this download alone; others that share its transfer go on. Any number of times, at any time, on any
    /// thread. Afterwards nothing is delivered but [`Event::Finished`](crate::Event::Finished) with
    /// [`Code::CANCELLED`](crate::Code::CANCELLED); only a callback that has begun stays what it is.
    pub fn cancel(&self) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_token_cancel(self.raw.as_ptr()) })
    }

    /// Changes the priority of this download; a transfer has the highest of those that share it.
    pub fn set_priority(&self, priority: Priority) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_token_set_priority(self.raw.as_ptr(), priority.raw()) })
    }

    /// Waits for the end of the download, that is until its last callback has returned, and tells how it ended. Waiting
    /// for the thread that one is on is [`Code::WOULD_DEADLOCK`](crate::Code::WOULD_DEADLOCK).
    ///
    /// Image, body and response are in what it returns if the request has no callback; otherwise the callback had them.
    pub fn wait(&self) -> Result<Download> {
        self.wait_milliseconds(-1)
    }

    /// The same, but [`Code::WAIT_TIMEOUT`](crate::Code::WAIT_TIMEOUT) if the end has not come by then.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Download> {
        self.wait_milliseconds(wait_milliseconds(timeout))
    }

    fn wait_milliseconds(&self, timeout: i64) -> Result<Download> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_token_wait(self.raw.as_ptr(), timeout) })?;
        self.read_result()
    }

    /// Whether this thread may wait for it.
    pub(crate) fn can_wait(&self) -> Result<()> {
        // SAFETY: a living handle.
        match unsafe { sys::imgdl_token_wait(self.raw.as_ptr(), 0) } {
            sys::IMGDL_ERROR_WAIT_TIMEOUT => Ok(()),
            status => check(status),
        }
    }

    /// The panic of its callback, if there was one.
    pub(crate) fn panicked(&self) -> Result<()> {
        self.panics.error()
    }

    /// How it ended; None before that. A download may end with any code, also with
    /// [`Code::NOT_READY`](crate::Code::NOT_READY), where a hook or a loader says so.
    pub fn result(&self) -> Option<Result<Download>> {
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_result_init) };
        // SAFETY: a living handle, an initialised struct.
        match unsafe { sys::imgdl_token_result(self.raw.as_ptr(), &mut raw) } {
            sys::IMGDL_ERROR_NOT_READY => None,
            status => Some(check(status).and_then(|()| self.outcome_of(&raw))),
        }
    }

    fn read_result(&self) -> Result<Download> {
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_result_init) };
        // SAFETY: a living handle, an initialised struct.
        check(unsafe { sys::imgdl_token_result(self.raw.as_ptr(), &mut raw) })?;
        self.outcome_of(&raw)
    }

    fn outcome_of(&self, raw: &sys::imgdl_result) -> Result<Download> {
        self.panicked()?;
        // SAFETY: "Everything in it is borrowed from the token": of which `self` is a reference.
        unsafe { End::of_result(raw).outcome(raw.response.as_ref().map(|response| Response::copy(response))) }
    }

    /// Where the time went so far; None while it waits.
    pub fn metrics(&self) -> Result<Option<Metrics>> {
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_metrics_init) };
        // SAFETY: a living handle, an initialised struct.
        match unsafe { sys::imgdl_token_metrics(self.raw.as_ptr(), &mut raw) } {
            sys::IMGDL_ERROR_NOT_READY => Ok(None),
            // SAFETY: "address lives as long as the token", of which `self` is a reference.
            status => check(status).map(|()| Some(unsafe { Metrics::copy(&raw) })),
        }
    }

    /// The panic of this download's callback, for `std::panic::resume_unwind`: once, on any of its tokens.
    pub fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.panics.take()
    }

    /// A number that no other download of this process has or had: for logs.
    pub fn id(&self) -> u64 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_token_id(self.raw.as_ptr()) }
    }
}

impl Clone for Token {
    fn clone(&self) -> Token {
        // SAFETY: a living handle: the same one comes back, with one more reference.
        unsafe { sys::imgdl_token_retain(self.raw.as_ptr()) };
        Token { raw: self.raw, panics: self.panics.clone() }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // SAFETY: the one reference that this value holds; "releasing is not cancelling".
        unsafe { sys::imgdl_token_release(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.id())
    }
}
