//! The downloader: queue, connections, threads.

use std::fmt;
use std::mem;
use std::ptr::{self, NonNull};
use std::time::Duration;

use imgdl_sys as sys;

use crate::batch::{self, Batch, BatchOptions};
use crate::builder::{Builder, Order};
use crate::convert::{c_string, check, filled, milliseconds, wait_milliseconds};
use crate::error::{Code, Error, Result};
use crate::executor::Executor;
use crate::fetch::Fetch;
use crate::guard;
use crate::image::Image;
use crate::loader::{self, Loader};
use crate::map::Map;
use crate::observing::{self, Observation, Observer, Stats};
use crate::request::Request;
use crate::sink::{self, Done};
use crate::stream::ImageStream;
use crate::token::Token;

/// What a shutdown does with accepted downloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shutdown {
    /// They run to their end.
    Finish,
    /// They are cancelled.
    Cancel,
}

/// Queues requests, runs a bounded number of transfers, and lets requests that ask for the same bytes share one. Make
/// one and keep it. Clones are references to the same downloader.
///
/// When the last one is dropped it takes no more requests, lets those it has run to their end, and is gone; dropping
/// never waits. [`close`](Downloader::close) cancels them and waits. Tokens, images and bodies live on either way.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// # fn main() -> Result<(), imgdl::Error> {
/// let downloader = imgdl::Downloader::new()?;
/// # offline(&downloader);
/// let image = downloader.get("https://example.org/picture.jpg")?;
/// downloader.close()?;
/// println!("{}", image.width());
/// # Ok(())
/// # }
/// ```
pub struct Downloader {
    raw: NonNull<sys::imgdl_downloader>,
    /// Of requests that name none.
    executor: Executor,
}

// SAFETY: "Every function may be called from any thread, also inside callbacks", and nothing is said about downloaders
// that would be one at a time.
unsafe impl Send for Downloader {}
// SAFETY: as for Send.
unsafe impl Sync for Downloader {}

impl Downloader {
    pub(crate) fn from_owned(raw: *mut sys::imgdl_downloader, executor: Executor) -> Downloader {
        Downloader { raw: NonNull::new(raw).expect("a downloader was given"), executor }
    }

    fn raw(&self) -> *mut sys::imgdl_downloader {
        self.raw.as_ptr()
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
        Ok(Downloader::from_owned(raw, Executor::default()))
    }

    /// Asks for one download; does not wait for the network. A URL is a request, too.
    pub fn download(&self, request: impl Into<Request>) -> Result<Token> {
        // SAFETY: a living handle.
        let token = unsafe { request.into().submit(self.raw()) }?;
        token.ok_or_else(|| Error::new(Code::INTERNAL, "no token came with success".into()))
    }

    /// Begins one download, as a future, or to wait for; dropping that cancels. What the request is refused with is its
    /// result. A URL is a request, too.
    pub fn fetch(&self, request: impl Into<Request>) -> Fetch {
        Fetch::begin(self, request.into())
    }

    /// Begins one download, and gives its partial images as they come and the whole at the end, to threads and to
    /// tasks; dropping that cancels.
    pub fn stream(&self, request: impl Into<Request>) -> ImageStream {
        ImageStream::begin(self, request.into())
    }

    /// Downloads all of them, as an iterator over the results, in order: so few at a time that they fit into memory,
    /// and no more than are asked for. Nothing begins before the first result is asked for. One that fails stops none
    /// of the others.
    ///
    /// It waits on its thread. In a task, make [fetches](Downloader::fetch) as you go: with the crate `futures`,
    /// `stream::iter(urls).map(|url| downloader.fetch(url)).buffer_unordered(12)`. A list of fetches asks for all of them at
    /// once, and each keeps its picture until it is dropped.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
    /// # fn main() -> Result<(), imgdl::Error> {
    /// let downloader = imgdl::Downloader::new()?;
    /// # offline(&downloader);
    /// let urls = (0..100).map(|n| format!("https://example.org/{n}.jpg"));
    /// for (number, result) in downloader.map(urls).in_flight(20).unordered() {
    ///     match result {
    ///         Ok(download) => println!("{number}: {:?}", download.image),
    ///         Err(error) => println!("{number}: {error}"),
    ///     }
    /// #   assert!(number < 100);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn map<I: IntoIterator>(&self, requests: I) -> Map<I::IntoIter>
    where
        I::Item: Into<Request>,
    {
        Map::new(self, requests.into_iter())
    }

    /// Downloads and decodes one image, and waits for it.
    pub fn get(&self, url: impl AsRef<str>) -> Result<Image> {
        let download = self.download(Request::new(url.as_ref()))?.wait()?;
        download.image.ok_or_else(|| Error::new(Code::INTERNAL, "no image came with success".into()))
    }

    /// Sets a header that every later request carries; None takes it out of the requests, also a default one. The
    /// defaults are Accept and User-Agent.
    pub fn set_header(&self, name: &str, value: Option<&str>) -> Result<()> {
        let name = c_string(name, Code::INVALID_HEADER, "the name of the header")?;
        let value = value.map(|text| c_string(text, Code::INVALID_HEADER, "the header")).transpose()?;
        let value = value.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        // SAFETY: a living handle, strings that live until the library returns.
        check(unsafe { sys::imgdl_downloader_set_header(self.raw(), name.as_ptr(), value) })
    }

    /// The value that later requests carry: what [`set_header`](Downloader::set_header) set, or the default.
    pub fn header(&self, name: &str) -> Result<Option<String>> {
        let name = c_string(name, Code::INVALID_HEADER, "the name of the header")?;
        let mut buffer = vec![0_u8; 256];
        loop {
            let mut length = 0;
            let (start, size) = (buffer.as_mut_ptr().cast(), buffer.len());
            // SAFETY: a living handle, a string that lives until the library returns, as many bytes as it is told.
            match unsafe { sys::imgdl_downloader_get_header(self.raw(), name.as_ptr(), start, size, &mut length) } {
                sys::IMGDL_ERROR_NOT_READY => return Ok(None),
                status => check(status)?,
            }
            if length < buffer.len() {
                buffer.truncate(length);
                return Ok(Some(String::from_utf8_lossy(&buffer).into_owned()));
            }
            // It may change meanwhile: so it is asked for again until it fits.
            buffer.resize(length + 1, 0);
        }
    }

    /// What [`set_max_concurrent`](Downloader::set_max_concurrent) or the builder set.
    pub fn max_concurrent(&self) -> u32 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_downloader_max_concurrent(self.raw()) }
    }

    /// Running transfers to one host and port; 0: no limit of its own.
    pub fn set_max_per_host(&self, max_per_host: u32) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_set_max_per_host(self.raw(), max_per_host) })
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

    /// Whether it is suspended.
    pub fn is_suspended(&self) -> bool {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_downloader_is_suspended(self.raw()) != 0 }
    }

    /// From now on only requests with [`continue_in_background`](Request::continue_in_background) start and run; the
    /// transfers of the others pause, and their clocks with them. After `grace` (zero: no end) those that still run end
    /// with [`Code::BACKGROUND_EXPIRED`].
    pub fn enter_background(&self, grace: Duration) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_enter_background(self.raw(), milliseconds(grace)) })
    }

    /// As before [`enter_background`](Downloader::enter_background).
    pub fn enter_foreground(&self) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_enter_foreground(self.raw()) })
    }

    /// Says that the network may be another one: connections that are open now serve what runs on them, and nothing that
    /// is sent later; addresses of names are looked up anew. A downloader finds out by itself when the machine has slept.
    pub fn network_changed(&self) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_network_changed(self.raw()) })
    }

    /// Takes no more requests, [`Code::INVALID_OPERATION`], until [`reconfigure`](Downloader::reconfigure). What there
    /// is is cancelled with [`Shutdown::Cancel`]; with [`Shutdown::Finish`] what runs runs to its end, and what waits
    /// ends with [`Code::INVALID_OPERATION`].
    pub fn invalidate(&self, mode: Shutdown) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_invalidate(self.raw(), (mode == Shutdown::Cancel).into()) })
    }

    /// A new session on a living downloader: cancels what there is, closes its connections, forgets its cookies in
    /// memory, and goes on as the builder says; `decode_threads`, `executor` and headers that were set stay. On failure
    /// nothing has changed.
    pub fn reconfigure(&self, builder: Builder) -> Result<()> {
        // SAFETY: a living handle; the struct lives until the library returns.
        builder.read(|config| unsafe { sys::imgdl_downloader_reconfigure(self.raw(), config) })
    }

    /// Asks for all of them, few at a time and at low priority: for a list that scrolls, or a set of files. Each
    /// request has its own callback; without one its result is dropped. One that is not valid refuses the batch as a
    /// whole.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
    /// use imgdl::{BatchOptions, Request};
    /// # fn main() -> Result<(), imgdl::Error> {
    /// # let downloader = imgdl::Downloader::new()?;
    /// # offline(&downloader);
    /// let requests = (0..100).map(|n| Request::new(format!("https://example.org/{n}.jpg")).body_only());
    /// let options = BatchOptions::new().on_progress(|now| println!("{} of {}", now.finished, now.total));
    /// let batch = downloader.prefetch(requests, options)?;
    /// println!("{} failed", batch.wait()?.failed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefetch(&self, requests: impl IntoIterator<Item = Request>, options: BatchOptions) -> Result<Batch> {
        // SAFETY: a living handle.
        unsafe { batch::submit(self.raw(), &self.executor, requests.into_iter().collect(), options) }
    }

    /// Calls `observer` for every transfer, in place of the one that was set before. It runs on the library's thread
    /// that drives them: be quick. It is dropped soon after another one was set, or at the downloader's end. After a
    /// panic it is not called again.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
    /// # fn main() -> Result<(), imgdl::Error> {
    /// let downloader = imgdl::Downloader::new()?;
    /// # offline(&downloader);
    /// downloader.set_observer(|seen| println!("{:?} {}", seen.kind, seen.url))?;
    /// # downloader.get("https://example.org/picture.jpg")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_observer(&self, observer: impl FnMut(&Observation<'_>) + Send + 'static) -> Result<()> {
        let user_data = guard::into_user_data(Observer::new(observer));
        // SAFETY: a living handle; the closure is Send. It is disposed of in any case: "or before the return of an
        // error".
        check(unsafe {
            sys::imgdl_downloader_set_observer(
                self.raw(),
                Some(observing::observe),
                user_data,
                Some(guard::dispose::<Observer>),
            )
        })
    }

    /// Takes the observer out.
    pub fn remove_observer(&self) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_downloader_set_observer(self.raw(), None, ptr::null_mut(), None) })
    }

    /// Counts and times since the downloader was made.
    pub fn stats(&self) -> Result<Stats> {
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_stats_init) };
        // SAFETY: a living handle, an initialised struct.
        check(unsafe { sys::imgdl_downloader_stats(self.raw(), &mut raw) })?;
        Ok(Stats::from_raw(&raw))
    }

    /// Loads URLs of this scheme with a loader of yours: "app" for app://…, or "https" in place of the built-in one.
    /// Running transfers are not touched. The loader is dropped when it was taken out or the downloader has ended, and
    /// no transfer uses it.
    pub fn register_transport(&self, scheme: &str, loader: impl Loader) -> Result<()> {
        let scheme = c_string(scheme, Code::INVALID_ARGUMENT, "the scheme")?;
        // SAFETY: a living handle, a string that lives until the library returns.
        loader::register(loader, |table| unsafe { sys::imgdl_transport_register(self.raw(), scheme.as_ptr(), table) })
    }

    /// Takes the loader of this scheme out; the built-in one is back.
    pub fn unregister_transport(&self, scheme: &str) -> Result<()> {
        let scheme = c_string(scheme, Code::INVALID_ARGUMENT, "the scheme")?;
        // SAFETY: a living handle, a string that lives until the library returns.
        check(unsafe { sys::imgdl_transport_register(self.raw(), scheme.as_ptr(), ptr::null()) })
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

    /// Takes no more requests and ends, without waiting. Every outstanding [`Event::Finished`](crate::Event::Finished)
    /// is delivered on its own executor; `done` comes last, on the downloader's last thread, when no other thread,
    /// descriptor or connection of it is left; after the end on a thread of its own, or, where the system gives none,
    /// before this returns. Called again with [`Shutdown::Cancel`] it hurries a [`Shutdown::Finish`] up.
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
        Downloader { raw: self.raw, executor: self.executor.clone() }
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
