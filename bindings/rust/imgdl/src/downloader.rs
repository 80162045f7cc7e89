//! The downloader: queue, connections, threads.

use std::fmt;
use std::mem::{self, size_of, MaybeUninit};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::time::Duration;

use imgdl_sys as sys;

use crate::convert::{c_string, check, milliseconds, wait_milliseconds};
use crate::error::{Code, Error, Result};
use crate::executor::Executor;
use crate::image::Image;
use crate::request::Request;
use crate::sink::{self, Done};
use crate::token::Token;

/// The order among waiting requests of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// First come, first served.
    #[default]
    Fifo,
    /// Newest first.
    Lifo,
}

impl Order {
    fn raw(self) -> sys::imgdl_order {
        match self {
            Order::Fifo => sys::IMGDL_ORDER_FIFO,
            Order::Lifo => sys::IMGDL_ORDER_LIFO,
        }
    }
}

/// What a shutdown does with accepted downloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// They run to their end.
    Finish,
    /// They are cancelled.
    Cancel,
}

/// How to make a [`Downloader`]. Zero is the default everywhere.
///
/// ```no_run
/// # fn main() -> Result<(), imgdl::Error> {
/// let downloader = imgdl::Downloader::builder().max_concurrent(12).user_agent("viewer/3.1").build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until build() is called"]
pub struct Builder {
    max_concurrent: u32,
    order: Order,
    decode_threads: u32,
    connect_timeout: Duration,
    idle_timeout: Duration,
    max_redirects: u32,
    user_agent: Option<String>,
    ca_file: Option<PathBuf>,
    executor: Executor,
}

impl Builder {
    /// How many transfers may run; 6 by default, 10 000 at most.
    pub fn max_concurrent(self, max_concurrent: u32) -> Builder {
        Builder { max_concurrent, ..self }
    }

    /// Among waiting requests of one priority.
    pub fn order(self, order: Order) -> Builder {
        Builder { order, ..self }
    }

    /// How many threads decode; one for each core by default, 256 at most.
    pub fn decode_threads(self, decode_threads: u32) -> Builder {
        Builder { decode_threads, ..self }
    }

    /// For name, connection and TLS; 15 seconds by default.
    pub fn connect_timeout(self, timeout: Duration) -> Builder {
        Builder { connect_timeout: timeout, ..self }
    }

    /// Without a byte; 15 seconds by default.
    pub fn idle_timeout(self, timeout: Duration) -> Builder {
        Builder { idle_timeout: timeout, ..self }
    }

    /// 10 by default, 100 at most.
    pub fn max_redirects(self, max_redirects: u32) -> Builder {
        Builder { max_redirects, ..self }
    }

    /// "imgdl/1.0.0" by default.
    pub fn user_agent(self, user_agent: impl Into<String>) -> Builder {
        Builder { user_agent: Some(user_agent.into()), ..self }
    }

    /// PEM certificates to trust instead of the system's.
    pub fn ca_file(self, path: impl AsRef<Path>) -> Builder {
        Builder { ca_file: Some(path.as_ref().to_path_buf()), ..self }
    }

    /// Where callbacks run of requests that name no executor; by default on a thread of the downloader.
    pub fn executor(self, executor: impl Into<Executor>) -> Builder {
        Builder { executor: executor.into(), ..self }
    }

    /// Makes the downloader.
    pub fn build(self) -> Result<Downloader> {
        let user_agent = self.user_agent.map(|text| c_string(&text, Code::INVALID_HEADER, "the user agent"));
        let user_agent = user_agent.transpose()?;
        let ca_file = self.ca_file.map(|path| std::ffi::CString::new(path.as_os_str().as_bytes()));
        let ca_file = ca_file
            .transpose()
            .map_err(|_| Error::new(Code::INVALID_OPERATION, "the path of ca_file holds a NUL".into()))?;
        let (executor, _keeps_executor) = self.executor.resolve()?;

        let mut raw = MaybeUninit::<sys::imgdl_config>::zeroed();
        // SAFETY: as many bytes as it is told; all zeros is a valid value besides.
        let mut raw = unsafe {
            sys::imgdl_config_init(raw.as_mut_ptr(), size_of::<sys::imgdl_config>());
            raw.assume_init()
        };
        raw.max_concurrent = self.max_concurrent;
        raw.order = self.order.raw();
        raw.decode_threads = self.decode_threads;
        raw.connect_timeout_ms = milliseconds(self.connect_timeout);
        raw.idle_timeout_ms = milliseconds(self.idle_timeout);
        raw.max_redirects = self.max_redirects;
        raw.user_agent = user_agent.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        raw.ca_file = ca_file.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        raw.executor = executor;
        let mut downloader = ptr::null_mut();
        // SAFETY: the struct and what it points to live until the library returns.
        check(unsafe { sys::imgdl_downloader_create(&raw, &mut downloader) })?;
        Ok(Downloader::from_owned(downloader))
    }
}

/// Queues requests, runs a bounded number of transfers, and lets requests that ask for the same bytes share one. Make one
/// and keep it. Clones are references to the same downloader.
///
/// When the last one is dropped it takes no more requests, lets those it has run to their end, and is gone; dropping never
/// waits. [`close`](Downloader::close) cancels them and waits. Tokens, images and bodies live on either way.
///
/// ```no_run
/// # fn main() -> Result<(), imgdl::Error> {
/// let downloader = imgdl::Downloader::new()?;
/// let image = downloader.get("https://example.org/picture.jpg")?;
/// downloader.close()?;
/// println!("{}", image.width());
/// # Ok(())
/// # }
/// ```
pub struct Downloader(NonNull<sys::imgdl_downloader>);

// SAFETY: "Every function may be called from any thread, also inside callbacks", and nothing is said about downloaders
// that would be one at a time.
unsafe impl Send for Downloader {}
// SAFETY: as for Send.
unsafe impl Sync for Downloader {}

impl Downloader {
    fn from_owned(raw: *mut sys::imgdl_downloader) -> Downloader {
        Downloader(NonNull::new(raw).expect("a downloader was given"))
    }

    fn raw(&self) -> *mut sys::imgdl_downloader {
        self.0.as_ptr()
    }

    /// One with defaults.
    pub fn new() -> Result<Downloader> {
        Builder::default().build()
    }

    /// One with other values.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The one that the process shares, with defaults. It cannot be shut down or closed.
    pub fn shared() -> Result<Downloader> {
        let mut raw = ptr::null_mut();
        // SAFETY: an out-parameter.
        check(unsafe { sys::imgdl_downloader_shared(&mut raw) })?;
        Ok(Downloader::from_owned(raw))
    }

    /// Asks for one download; does not wait for the network.
    pub fn download(&self, request: Request) -> Result<Token> {
        // SAFETY: a living handle.
        let token = unsafe { request.submit(self.raw()) }?;
        token.ok_or_else(|| Error::new(Code::INTERNAL, "no token came with success".into()))
    }

    /// Downloads and decodes one image, and waits for it.
    pub fn get(&self, url: &str) -> Result<Image> {
        let download = self.download(Request::new(url))?.wait()?;
        download.image.ok_or_else(|| Error::new(Code::INTERNAL, "no image came with success".into()))
    }

    /// Sets a header that every later request carries; None takes it out of the requests, also a default one. The defaults
    /// are Accept and User-Agent.
    pub fn set_header(&self, name: &str, value: Option<&str>) -> Result<()> {
        let name = c_string(name, Code::INVALID_HEADER, "the name of the header")?;
        let value = value.map(|text| c_string(text, Code::INVALID_HEADER, "the header")).transpose()?;
        let value = value.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        // SAFETY: a living handle, strings that live until the library returns.
        check(unsafe { sys::imgdl_downloader_set_header(self.raw(), name.as_ptr(), value) })
    }

    /// How many transfers may run, 1 to 10 000. Fewer than now: the running ones run on.
    pub fn set_max_concurrent(&self, max_concurrent: u32) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_set_max_concurrent(self.raw(), max_concurrent) })
    }

    /// For requests made from now on.
    pub fn set_order(&self, order: Order) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_set_order(self.raw(), order.raw()) })
    }

    /// While suspended nothing that waits is started; what runs runs on.
    pub fn set_suspended(&self, suspended: bool) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_set_suspended(self.raw(), suspended.into()) })
    }

    /// Cancels every download accepted so far.
    pub fn cancel_all(&self) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_cancel_all(self.raw()) })
    }

    /// Accepted downloads whose last callback has not begun.
    pub fn current_count(&self) -> u64 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_downloader_current_count(self.raw()) }
    }

    /// Waits until every accepted download has had its last callback and its closure is dropped.
    pub fn wait_idle(&self) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_wait_idle(self.raw(), -1) })
    }

    /// The same, but [`Code::WAIT_TIMEOUT`] if that has not come by then.
    pub fn wait_idle_timeout(&self, timeout: Duration) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_wait_idle(self.raw(), wait_milliseconds(timeout)) })
    }

    /// Takes no more requests and ends, without waiting. Every outstanding [`Event::Finished`](crate::Event::Finished) is
    /// delivered on its own executor; `done` comes last, on a thread of its own, when no thread, descriptor or connection
    /// of the downloader is left. Called again with [`Shutdown::Cancel`] it hurries a [`Shutdown::Finish`] up.
    pub fn shutdown(&self, mode: Shutdown, done: impl FnOnce() + Send + 'static) -> Result<()> {
        let mode = match mode {
            Shutdown::Finish => sys::IMGDL_SHUTDOWN_FINISH,
            Shutdown::Cancel => sys::IMGDL_SHUTDOWN_CANCEL,
        };
        let done: Box<Done> = Box::new(Box::new(done));
        let user_data = Box::into_raw(done);
        // SAFETY: a living handle; the closure is Send.
        let status = unsafe { sys::imgdl_downloader_shutdown(self.raw(), mode, Some(sink::done), user_data.cast()) };
        let result = check(status);
        if result.is_err() {
            // SAFETY: "it is called when IMGDL_OK is returned, and only then": the closure is still ours.
            drop(unsafe { Box::from_raw(user_data) });
        }
        result
    }

    /// Cancels every download, waits until all has ended, and drops this reference. Where waiting would be a deadlock,
    /// such as inside a callback, it does not wait. Other clones then answer [`Code::SHUT_DOWN`]. The shared downloader
    /// cannot be closed: [`Code::INVALID_OPERATION`].
    pub fn close(self) -> Result<()> {
        // SAFETY: a living handle.
        let result = check(unsafe { sys::imgdl_downloader_destroy(self.raw()) });
        if !matches!(&result, Err(error) if error.code() == Code::INVALID_OPERATION) {
            // "and release of one reference", "(released all the same)": not so for the shared one.
            mem::forget(self);
        }
        result
    }
}

impl Clone for Downloader {
    fn clone(&self) -> Downloader {
        // SAFETY: a living handle: the same one comes back, with one more reference.
        unsafe { sys::imgdl_downloader_retain(self.raw()) };
        Downloader(self.0)
    }
}

impl Drop for Downloader {
    fn drop(&mut self) {
        // SAFETY: the one reference that this value holds.
        unsafe { sys::imgdl_downloader_release(self.raw()) }
    }
}

impl fmt::Debug for Downloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Downloader({} downloads)", self.current_count())
    }
}
