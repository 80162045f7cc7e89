//! Loaders of yours for URLs of a scheme.

use std::fmt;
use std::mem;
use std::os::raw::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use imgdl_sys as sys;

use crate::convert::{c_sentence, check};
use crate::error::{Code, Result};
use crate::guard::{self, contained};
use crate::headers::CHeaders;
use crate::outgoing::Outgoing;

/// Loads URLs of a scheme: see [`Downloader::register_transport`](crate::Downloader::register_transport). Requests
/// share its transfers, and limits, timeouts, retries and validation hold for them, as for any other. A closure is a
/// loader, too.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// use imgdl::{Downloader, Outgoing, Transfer};
/// # fn resource(_: &str) -> Option<Vec<u8>> { Some(PNG.to_vec()) }
/// # fn main() -> Result<(), imgdl::Error> {
/// let downloader = Downloader::new()?;
/// downloader.register_transport("app", |request: &Outgoing<'_>, mut transfer: Transfer| {
///     let url = request.url().to_string();
///     std::thread::spawn(move || match resource(&url) {
///         Some(bytes) => transfer.respond(200, []).and_then(|()| transfer.send(&bytes)).and_then(|()| transfer.end()),
///         None => transfer.respond(404, []).and_then(|()| transfer.end()),
///     });
/// })?;
/// let image = downloader.get("app://icons/save.png")?;
/// # Ok(())
/// # }
/// ```
pub trait Loader: Send + Sync + 'static {
    /// Begins a transfer; called on the library's thread that drives all of them, so must not wait. It reports through
    /// `transfer`, inside this call or later, on any thread. A panic fails the transfer, unless that had been given
    /// away before.
    fn start(&self, request: &Outgoing<'_>, transfer: Transfer);
}

impl<F: Fn(&Outgoing<'_>, Transfer) + Send + Sync + 'static> Loader for F {
    fn start(&self, request: &Outgoing<'_>, transfer: Transfer) {
        self(request, transfer)
    }
}

/// What a transfer and the library's word of it have in common; `started` is a pointer to it.
struct Controls {
    /// The library's, which must not wait.
    thread: ThreadId,
    is_cancelled: AtomicBool,
    on_cancel: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    on_resume: Mutex<Option<Box<dyn FnMut() + Send>>>,
    /// How often it was told to go on; that it is cancelled tells it, too.
    resumes: Mutex<u64>,
    resumed: Condvar,
}

impl Controls {
    /// On the library's thread.
    fn new() -> Controls {
        Controls {
            thread: thread::current().id(),
            is_cancelled: AtomicBool::new(false),
            on_cancel: Mutex::new(None),
            on_resume: Mutex::new(None),
            resumes: Mutex::new(0),
            resumed: Condvar::new(),
        }
    }

    fn count_resume(&self) {
        *lock(&self.resumes) += 1;
        self.resumed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A transfer that a [`Loader`] runs: reports the head, the body, the end. It may move to another thread. One that is
/// dropped before its end has failed with [`Code::CONNECTION_LOST`].
///
/// Ending and dropping it wait for [`on_cancel`](Transfer::on_cancel)'s and [`on_resume`](Transfer::on_resume)'s
/// callbacks on another thread: hold no lock then that these take.
///
/// When nobody wants it any more nothing needs to be reported; what is reported all the same is no error, and ignored.
///
/// It is not `Sync`, since one thread at a time reports:
///
/// ```compile_fail,E0277
/// fn needs_sync<T: Sync>() {}
/// needs_sync::<imgdl::Transfer>();
/// ```
pub struct Transfer {
    raw: NonNull<sys::imgdl_transfer>,
    controls: Arc<Controls>,
}

// SAFETY: "a handle to report with, from any thread … one thread at a time": for the second half it is not Sync.
unsafe impl Send for Transfer {}

impl Transfer {
    /// Reports the head, once, before the body.
    pub fn respond<'a>(&mut self, status: u16, headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<()> {
        let headers = CHeaders::new(headers.into_iter().map(|(name, value)| (name, Some(value))))?;
        // SAFETY: a living handle; "copied" before the library returns.
        check(unsafe {
            let (first, count) = (headers.raw.as_ptr(), headers.raw.len());
            sys::imgdl_transfer_response(self.raw.as_ptr(), status.into(), first, count)
        })
    }

    /// Reports bytes of the body, which are copied, a Content-Encoding undone. Fewer or more than Content-Length are
    /// errors of the download.
    ///
    /// Waits while the library holds 1 MiB that it cannot pass on, as while the download is paused. Inside what the
    /// library calls, such as [`Loader::start`] or a closure of any download, it is [`Code::NOT_READY`] instead: use
    /// [`try_send`](Transfer::try_send) there.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        loop {
            let resumes = *lock(&self.controls.resumes);
            let status = self.report(bytes);
            // What the download is paused for may wait for this thread.
            let must_not_wait = guard::is_in_callback() || thread::current().id() == self.controls.thread;
            if status != sys::IMGDL_ERROR_NOT_READY || must_not_wait {
                return check(status);
            }
            let mut now = lock(&self.controls.resumes);
            while *now == resumes {
                now = self.controls.resumed.wait(now).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// The same, and never waits: false where the bytes cannot be taken yet. None of them was; they may come again when
    /// [`on_resume`](Transfer::on_resume)'s callback is called.
    pub fn try_send(&mut self, bytes: &[u8]) -> Result<bool> {
        match self.report(bytes) {
            sys::IMGDL_ERROR_NOT_READY => Ok(false),
            status => check(status).map(|()| true),
        }
    }

    fn report(&mut self, bytes: &[u8]) -> sys::imgdl_status {
        // SAFETY: a living handle; "copied" before the library returns.
        unsafe { sys::imgdl_transfer_body(self.raw.as_ptr(), bytes.as_ptr().cast(), bytes.len()) }
    }

    /// Reports that this was all.
    pub fn end(self) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_transfer_end(self.raw.as_ptr(), sys::IMGDL_OK, ptr::null()) })
    }

    /// Reports why it failed.
    pub fn fail(self, code: Code, message: &str) -> Result<()> {
        let message = c_sentence(message);
        // SAFETY: a living handle, a string that lives until the library returns.
        check(unsafe { sys::imgdl_transfer_end(self.raw.as_ptr(), code.number(), message.as_ptr()) })
    }

    /// Whether nobody wants it any more.
    pub fn is_cancelled(&self) -> bool {
        self.controls.is_cancelled.load(Ordering::SeqCst)
    }

    /// Calls `callback` when nobody wants it any more, on the library's thread that drives all transfers; at once, if
    /// that has come. It takes the place of one that was given before.
    pub fn on_cancel(&mut self, callback: impl FnOnce() + Send + 'static) {
        *lock(&self.controls.on_cancel) = Some(Box::new(callback));
        // It looks for the callback after it has set the flag, and takes it once.
        if self.is_cancelled() {
            self.controls.cancel();
        }
    }

    /// Calls `callback` whenever bytes that were refused may be sent again, on the library's thread that drives all
    /// transfers. It takes the place of one that was given before.
    pub fn on_resume(&mut self, callback: impl FnMut() + Send + 'static) {
        *lock(&self.controls.on_resume) = Some(Box::new(callback));
    }
}

impl Controls {
    fn cancel(&self) {
        // The lock is not held while it runs.
        let callback = lock(&self.on_cancel).take();
        if let Some(callback) = callback {
            callback();
        }
    }

    fn resume(&self) {
        // As above; it may have been replaced meanwhile.
        let callback = lock(&self.on_resume).take();
        if let Some(mut callback) = callback {
            callback();
            lock(&self.on_resume).get_or_insert(callback);
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's. Afterwards cancel "neither runs nor begins any more" on another thread,
        // and so what started points to can go.
        unsafe { sys::imgdl_transfer_release(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfer").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

type BoxedLoader = Box<dyn Loader>;

/// Gives the loader to `take`, which registers the table.
pub(crate) fn register(
    loader: impl Loader,
    take: impl FnOnce(&sys::imgdl_transport_table) -> sys::imgdl_status,
) -> Result<()> {
    let table = sys::imgdl_transport_table {
        struct_size: mem::size_of::<sys::imgdl_transport_table>() as u32,
        reserved: 0,
        start: Some(start),
        cancel: Some(cancel),
        user_data: guard::into_user_data::<BoxedLoader>(Box::new(loader)),
        destructor: Some(guard::dispose::<BoxedLoader>),
        resume: Some(resume),
    };
    let result = check(take(&table));
    if result.is_err() {
        // SAFETY: "not when an error is returned": it is still ours.
        unsafe { guard::dispose::<BoxedLoader>(table.user_data) };
    }
    result
}

/// # Safety
/// Called by the library, with a BoxedLoader that has not been disposed of.
unsafe extern "C" fn start(
    request: *const sys::imgdl_outgoing,
    transfer: *mut sys::imgdl_transfer,
    user_data: *mut c_void,
) -> *mut c_void {
    let raw = match NonNull::new(transfer) {
        Some(raw) => raw,
        None => return ptr::null_mut(),
    };
    let controls = Arc::new(Controls::new());
    let started = Arc::as_ptr(&controls);
    let transfer = Transfer { raw, controls };
    // SAFETY: borrowed, valid during the call; the loader lives as long as its transfers.
    contained(|| unsafe { (*user_data.cast::<BoxedLoader>()).start(&Outgoing::new(&*request), transfer) });
    // Its Transfer owns it; cancel is not called when that is gone.
    started as *mut c_void
}

/// # Safety
/// Called by the library, with what `start` returned, whose Transfer is not gone.
unsafe extern "C" fn cancel(started: *mut c_void, _user_data: *mut c_void) {
    // SAFETY: as above.
    if let Some(controls) = unsafe { controls(started) } {
        controls.is_cancelled.store(true, Ordering::SeqCst);
        controls.count_resume();
        contained(|| controls.cancel());
    }
}

/// # Safety
/// As cancel.
unsafe extern "C" fn resume(started: *mut c_void, _user_data: *mut c_void) {
    // SAFETY: as above.
    if let Some(controls) = unsafe { controls(started) } {
        controls.count_resume();
        contained(|| controls.resume());
    }
}

/// A reference of one's own, since a callback may drop the Transfer on this very thread.
///
/// # Safety
/// NULL, or what `start` returned, whose Transfer is not gone.
unsafe fn controls(started: *mut c_void) -> Option<Arc<Controls>> {
    if started.is_null() {
        return None;
    }
    let started = started.cast::<Controls>() as *const Controls;
    // SAFETY: as above.
    unsafe {
        Arc::increment_strong_count(started);
        Some(Arc::from_raw(started))
    }
}
