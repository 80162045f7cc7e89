//! A hook's question and its answers.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ptr::NonNull;
use std::thread;

use imgdl_sys as sys;

use crate::convert::{c_sentence, c_string, check};
use crate::error::{Code, Error, Result};
use crate::headers::CHeaders;
use crate::outgoing::Replacement;

/// What a [`Continuation`] waits for an answer to.
// They have no variants, and never will.
#[allow(clippy::exhaustive_enums)]
pub mod question {
    /// May this request be sent? See [`HooksBuilder::modify_request`](crate::HooksBuilder::modify_request).
    #[derive(Debug)]
    pub enum Request {}
    /// Is this the response? See [`HooksBuilder::modify_response`](crate::HooksBuilder::modify_response).
    #[derive(Debug)]
    pub enum Response {}
    /// Is this the body? See [`HooksBuilder::transform_body`](crate::HooksBuilder::transform_body).
    #[derive(Debug)]
    pub enum Body {}
    /// May this redirect be followed? See [`HooksBuilder::redirect`](crate::HooksBuilder::redirect).
    #[derive(Debug)]
    pub enum Redirect {}
    /// Who are you? See [`HooksBuilder::authenticate`](crate::HooksBuilder::authenticate).
    #[derive(Debug)]
    pub enum Challenge {}
}

/// A hook's question, until it is answered: each answer takes it. It may be kept, sent to another thread, and answered
/// later; one that is dropped refuses. It is no error to answer when the download has ended meanwhile.
///
/// An answer that is not valid, such as a URL that is none, refuses too, and returns why.
#[must_use = "a continuation that is dropped refuses"]
pub struct Continuation<Question> {
    raw: NonNull<sys::imgdl_continuation>,
    question: PhantomData<fn() -> Question>,
}

// SAFETY: "inside the call or later, on any thread".
unsafe impl<Question> Send for Continuation<Question> {}

impl<Question> Continuation<Question> {
    pub(crate) fn new(raw: NonNull<sys::imgdl_continuation>) -> Continuation<Question> {
        Continuation { raw, question: PhantomData }
    }

    /// Goes on as it is. To a challenge: the 401 is the answer.
    pub fn unchanged(self) -> Result<()> {
        // SAFETY: a living handle.
        self.answer(|next| unsafe { sys::imgdl_continue_unchanged(next) })
    }

    /// Ends the download, with this sentence and the error that is usual for the question: [`Code::INVALID_OPERATION`]
    /// for a request, [`Code::INVALID_RESPONSE`] for a response, [`Code::BAD_IMAGE_DATA`] for a body,
    /// [`Code::REDIRECT_REFUSED`] for a redirect, [`Code::INVALID_STATUS`] for a challenge.
    pub fn refuse(self, message: &str) -> Result<()> {
        self.refuse_raw(sys::IMGDL_OK, message)
    }

    /// Ends the download with another error.
    pub fn refuse_with(self, code: Code, message: &str) -> Result<()> {
        self.refuse_raw(code.number(), message)
    }

    fn refuse_raw(self, code: sys::imgdl_status, message: &str) -> Result<()> {
        let message = c_sentence(message);
        // SAFETY: a living handle, a string that lives until the library returns.
        self.answer(|next| unsafe { sys::imgdl_continue_refused(next, code, message.as_ptr()) })
    }

    /// `call` takes the handle unless it returns an error: "it can still be answered".
    fn answer(self, call: impl FnOnce(*mut sys::imgdl_continuation) -> sys::imgdl_status) -> Result<()> {
        let result = check(call(self.raw.as_ptr()));
        match &result {
            Ok(()) => {}
            Err(error) => self.refuse_because(error),
        }
        mem::forget(self);
        result
    }

    /// The last answer. If even the code is none, the usual one is.
    fn refuse_because(&self, error: &Error) {
        let message = c_sentence(error.message());
        for code in [error.code().number(), sys::IMGDL_OK] {
            // SAFETY: a handle, a string that lives until the library returns.
            if unsafe { sys::imgdl_continue_refused(self.raw.as_ptr(), code, message.as_ptr()) } == sys::IMGDL_OK {
                return;
            }
        }
    }

    /// The same for answers that do not get as far as the library.
    fn invalid(self, error: Error) -> Result<()> {
        self.refuse_because(&error);
        mem::forget(self);
        Err(error)
    }
}

impl Continuation<question::Request> {
    /// Sends this instead.
    pub fn with_request(self, request: Replacement) -> Result<()> {
        match request.prepare() {
            // SAFETY: a living handle; "copied" before the library returns.
            Ok(request) => self.answer(|next| unsafe { sys::imgdl_continue_with_request(next, &request.raw()) }),
            Err(error) => self.invalid(error),
        }
    }
}

impl Continuation<question::Response> {
    /// Takes it as a response with this status and these headers.
    pub fn with_response<'a>(self, status: u16, headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<()> {
        let headers = match CHeaders::new(headers.into_iter().map(|(name, value)| (name, Some(value)))) {
            Ok(headers) => headers,
            Err(error) => return self.invalid(error),
        };
        // SAFETY: a living handle; "copied" before the library returns.
        self.answer(|next| unsafe {
            sys::imgdl_continue_with_response(next, status.into(), headers.raw.as_ptr(), headers.raw.len())
        })
    }
}

impl Continuation<question::Body> {
    /// Takes these bytes, which are copied, as the body.
    pub fn with_body(self, bytes: &[u8]) -> Result<()> {
        // SAFETY: a living handle; "copied" before the library returns.
        self.answer(|next| unsafe { sys::imgdl_continue_with_data(next, bytes.as_ptr().cast(), bytes.len()) })
    }
}

impl Continuation<question::Redirect> {
    /// Follows it to another URL.
    pub fn with_url(self, url: &str) -> Result<()> {
        match Replacement::new().url(url).prepare() {
            // SAFETY: a living handle; "copied" before the library returns.
            Ok(request) => self.answer(|next| unsafe { sys::imgdl_continue_with_request(next, &request.raw()) }),
            Err(error) => self.invalid(error),
        }
    }
}

impl Continuation<question::Challenge> {
    /// Asks once more with these, as Basic or Digest.
    pub fn with_credentials(self, user: &str, password: &str) -> Result<()> {
        let text = |text| c_string(text, Code::INVALID_HEADER, "a user name or password");
        match text(user).and_then(|user| Ok((user, text(password)?))) {
            // SAFETY: a living handle; the strings live until the library returns.
            Ok((user, password)) => self
                .answer(|next| unsafe { sys::imgdl_continue_with_credentials(next, user.as_ptr(), password.as_ptr()) }),
            Err(error) => self.invalid(error),
        }
    }
}

impl<Question> Drop for Continuation<Question> {
    fn drop(&mut self) {
        let why = if thread::panicking() { "a hook panicked" } else { "a hook gave no answer" };
        let message = c_sentence(why);
        // SAFETY: a handle, a string that lives until the library returns.
        unsafe { sys::imgdl_continue_refused(self.raw.as_ptr(), sys::IMGDL_OK, message.as_ptr()) };
    }
}

impl<Question> fmt::Debug for Continuation<Question> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Continuation")
    }
}
