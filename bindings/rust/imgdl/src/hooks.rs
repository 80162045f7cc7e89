//! Functions of yours that a download asks.

use std::fmt;
use std::mem;
use std::os::raw::{c_char, c_void};
use std::ptr::{self, NonNull};

use imgdl_sys as sys;

use crate::body::Body;
use crate::continuation::{question, Continuation};
use crate::convert::{check, copied_text};
use crate::error::Result;
use crate::event::Response;
use crate::guard::{self, contained};
use crate::outgoing::Outgoing;

type ModifyRequest = Box<dyn Fn(&Outgoing<'_>, Continuation<question::Request>) + Send + Sync>;
type ModifyResponse = Box<dyn Fn(&Response, Continuation<question::Response>) + Send + Sync>;
type TransformBody = Box<dyn Fn(&Body, Continuation<question::Body>) + Send + Sync>;
type Redirect = Box<dyn Fn(&Response, &str, Continuation<question::Redirect>) + Send + Sync>;
type Authenticate = Box<dyn Fn(&Response, Continuation<question::Challenge>) + Send + Sync>;

/// Functions of yours that are asked while a download runs: to sign a request, to look at a response, to decrypt a
/// body, to decide on a redirect, to find credentials. Given to [`Builder::hooks`](crate::Builder::hooks) or
/// [`Request::hooks`](crate::Request::hooks). Clones are the same hooks; requests with different ones never share a
/// transfer.
///
/// A function is called on a thread of the library that other downloads wait for, once for each transfer. It answers
/// through its [`Continuation`], inside the call or later, on any thread. An answer about a body that needs another download
/// of the same downloader, of a key say, gives that one hooks of its own: with the same ones it may wait for the answer
/// itself, and a request without hooks has the downloader's.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// use imgdl::{Downloader, Hooks};
/// # fn sign(_: &str) -> String { String::new() }
/// # fn decrypt(bytes: &[u8]) -> Option<Vec<u8>> { Some(bytes.to_vec()) }
/// # fn main() -> Result<(), imgdl::Error> {
/// let hooks = Hooks::builder()
///     .modify_request(|request, next| {
///         let signed = request.with_header("Authorization", &sign(request.url()));
///         next.with_request(signed).unwrap();
///     })
///     .transform_body(|body, next| {
///         let body = body.clone();
///         std::thread::spawn(move || match decrypt(&body) {
///             Some(plain) => next.with_body(&plain),
///             None => next.refuse("it cannot be decrypted"),
///         });
///     })
///     .build()?;
/// let downloader = Downloader::builder().hooks(&hooks).build()?;
/// # offline(&downloader);
/// # downloader.get("https://example.org/picture.jpg")?;
/// # Ok(())
/// # }
/// ```
pub struct Hooks(NonNull<sys::imgdl_hooks>);

// SAFETY: "Every function may be called from any thread"; the closures behind it are Send and Sync.
unsafe impl Send for Hooks {}
// SAFETY: as for Send.
unsafe impl Sync for Hooks {}

impl Hooks {
    /// No function yet.
    pub fn builder() -> HooksBuilder {
        HooksBuilder::default()
    }

    pub(crate) fn raw(&self) -> *mut sys::imgdl_hooks {
        self.0.as_ptr()
    }
}

impl Clone for Hooks {
    fn clone(&self) -> Hooks {
        // SAFETY: a living handle: the same one comes back, with one more reference.
        unsafe { sys::imgdl_hooks_retain(self.raw()) };
        Hooks(self.0)
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        // SAFETY: the one reference that this value holds; "downloads and downloaders that use them hold them, too".
        unsafe { sys::imgdl_hooks_release(self.raw()) }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

/// Collects the functions of [`Hooks`]. One that is not given is not asked. The closures are dropped when neither hooks
/// nor a download has them any more.
///
/// A panic in one is an answer, too: it refuses, unless the closure had given the continuation away before.
#[derive(Default)]
#[must_use = "a builder does nothing until build() is called"]
pub struct HooksBuilder {
    modify_request: Option<ModifyRequest>,
    modify_response: Option<ModifyResponse>,
    transform_body: Option<TransformBody>,
    redirect: Option<Redirect>,
    authenticate: Option<Authenticate>,
}

impl HooksBuilder {
    /// Before a request is sent, again before each retry, not for redirects.
    pub fn modify_request(
        self,
        hook: impl Fn(&Outgoing<'_>, Continuation<question::Request>) + Send + Sync + 'static,
    ) -> HooksBuilder {
        HooksBuilder { modify_request: Some(Box::new(hook)), ..self }
    }

    /// When the head of the final response is there, before it is validated.
    pub fn modify_response(
        self,
        hook: impl Fn(&Response, Continuation<question::Response>) + Send + Sync + 'static,
    ) -> HooksBuilder {
        HooksBuilder { modify_response: Some(Box::new(hook)), ..self }
    }

    /// When the body is whole, before it is decoded; no partial images then.
    pub fn transform_body(
        self,
        hook: impl Fn(&Body, Continuation<question::Body>) + Send + Sync + 'static,
    ) -> HooksBuilder {
        HooksBuilder { transform_body: Some(Box::new(hook)), ..self }
    }

    /// Before a redirect is followed that the rules allow; the text is the URL that it leads to.
    pub fn redirect(
        self,
        hook: impl Fn(&Response, &str, Continuation<question::Redirect>) + Send + Sync + 'static,
    ) -> HooksBuilder {
        HooksBuilder { redirect: Some(Box::new(hook)), ..self }
    }

    /// When a server answers 401 and nobody gave credentials, or they were wrong: once for each transfer.
    pub fn authenticate(
        self,
        hook: impl Fn(&Response, Continuation<question::Challenge>) + Send + Sync + 'static,
    ) -> HooksBuilder {
        HooksBuilder { authenticate: Some(Box::new(hook)), ..self }
    }

    /// Makes them. [`Code::INVALID_ARGUMENT`](crate::Code::INVALID_ARGUMENT) without any function.
    pub fn build(self) -> Result<Hooks> {
        let mut table = sys::imgdl_hooks_table {
            struct_size: mem::size_of::<sys::imgdl_hooks_table>() as u32,
            reserved: 0,
            modify_request: None,
            modify_response: None,
            transform_body: None,
            redirect: None,
            authenticate: None,
            user_data: ptr::null_mut(),
            destructor: Some(guard::dispose::<HooksBuilder>),
        };
        if self.modify_request.is_some() {
            table.modify_request = Some(modify_request);
        }
        if self.modify_response.is_some() {
            table.modify_response = Some(modify_response);
        }
        if self.transform_body.is_some() {
            table.transform_body = Some(transform_body);
        }
        if self.redirect.is_some() {
            table.redirect = Some(redirect);
        }
        if self.authenticate.is_some() {
            table.authenticate = Some(authenticate);
        }
        table.user_data = guard::into_user_data(self);
        let mut hooks = ptr::null_mut();
        // SAFETY: the table is read before the library returns; the closures are Send and Sync.
        let result = check(unsafe { sys::imgdl_hooks_create(&table, &mut hooks) });
        if result.is_err() {
            // SAFETY: nothing was made that would call it, or the destructor.
            unsafe { guard::dispose::<HooksBuilder>(table.user_data) };
        }
        result.map(|()| Hooks(NonNull::new(hooks).expect("hooks were given")))
    }
}

impl fmt::Debug for HooksBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HooksBuilder")
    }
}

/// Calls the hook that `choose` finds; the continuation is dropped, and so answered, whatever happens.
///
/// # Safety
/// As for a function of the table: `next` is the caller's, `user_data` a HooksBuilder.
unsafe fn ask<Q, Hook>(
    next: *mut sys::imgdl_continuation,
    user_data: *mut c_void,
    choose: fn(&HooksBuilder) -> &Option<Hook>,
    call: impl FnOnce(&Hook, Continuation<Q>),
) {
    // SAFETY: as above; the destructor comes after every call.
    let hooks = unsafe { &*user_data.cast::<HooksBuilder>() };
    if let (Some(raw), Some(hook)) = (NonNull::new(next), choose(hooks)) {
        let next = Continuation::new(raw);
        contained(move || call(hook, next));
    }
}

unsafe extern "C" fn modify_request(
    request: *const sys::imgdl_outgoing,
    next: *mut sys::imgdl_continuation,
    user_data: *mut c_void,
) {
    // SAFETY: "Borrowed: valid during the call."
    unsafe { ask(next, user_data, |hooks| &hooks.modify_request, |hook, next| hook(&Outgoing::new(&*request), next)) }
}

unsafe extern "C" fn modify_response(
    response: *const sys::imgdl_response,
    next: *mut sys::imgdl_continuation,
    user_data: *mut c_void,
) {
    // SAFETY: borrowed, valid during the call.
    unsafe {
        ask(next, user_data, |hooks| &hooks.modify_response, |hook, next| hook(&Response::copy(&*response), next))
    }
}

unsafe extern "C" fn transform_body(
    body: *mut sys::imgdl_data,
    next: *mut sys::imgdl_continuation,
    user_data: *mut c_void,
) {
    // SAFETY: borrowed, valid during the call; a reference of our own to it.
    unsafe {
        let body = Body::from_borrowed(body);
        ask(
            next,
            user_data,
            |hooks| &hooks.transform_body,
            |hook, next| {
                if let Some(body) = body {
                    hook(&body, next)
                }
            },
        )
    }
}

unsafe extern "C" fn redirect(
    response: *const sys::imgdl_response,
    url: *const c_char,
    next: *mut sys::imgdl_continuation,
    user_data: *mut c_void,
) {
    // SAFETY: borrowed, valid during the call.
    unsafe {
        ask(
            next,
            user_data,
            |hooks| &hooks.redirect,
            |hook, next| hook(&Response::copy(&*response), &copied_text(url), next),
        )
    }
}

unsafe extern "C" fn authenticate(
    challenge: *const sys::imgdl_response,
    next: *mut sys::imgdl_continuation,
    user_data: *mut c_void,
) {
    // SAFETY: borrowed, valid during the call.
    unsafe { ask(next, user_data, |hooks| &hooks.authenticate, |hook, next| hook(&Response::copy(&*challenge), next)) }
}
