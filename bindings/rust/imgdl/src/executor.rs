//! Where callbacks run.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::os::unix::io::{AsRawFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, ThreadId};

use imgdl_sys as sys;

use crate::convert::check;
use crate::error::{Code, Error, Result};

/// Says where callbacks run: given to [`Request::executor`](crate::Request::executor) or
/// [`Builder::executor`](crate::Builder::executor).
#[derive(Clone, Default)]
pub struct Executor(Place);

#[derive(Clone, Default)]
enum Place {
    #[default]
    Default,
    Inline,
    Pumped(Weak<Pump>),
}

impl Executor {
    /// The library's thread that made the event, for the lowest latency. The network stands still meanwhile: be quick.
    pub fn inline() -> Executor {
        Executor(Place::Inline)
    }

    /// This one, or another in place of the downloader's.
    pub(crate) fn or(self, other: Executor) -> Executor {
        match self.0 {
            Place::Default => other,
            place => Executor(place),
        }
    }

    /// What to put in a struct, and what keeps that valid while the library reads it.
    pub(crate) fn resolve(&self) -> Result<(*mut sys::imgdl_executor, Option<Arc<Pump>>)> {
        match &self.0 {
            Place::Default => Ok((ptr::null_mut(), None)),
            Place::Inline => Ok((sys::IMGDL_EXECUTOR_INLINE, None)),
            Place::Pumped(pump) => {
                let gone = || Error::new(Code::INVALID_HANDLE, "its pumped executor has been dropped".into());
                let pump = pump.upgrade().ok_or_else(gone)?;
                Ok((pump.raw.as_ptr(), Some(pump)))
            }
        }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Place::Default => "Executor(the downloader's)",
            Place::Inline => "Executor(inline)",
            Place::Pumped(_) => "Executor(pumped)",
        })
    }
}

/// Owns the one reference to a pumped executor.
pub(crate) struct Pump {
    raw: NonNull<sys::imgdl_executor>,
    /// The thread that it belongs to.
    owner: Mutex<ThreadId>,
}

impl Pump {
    /// Whether waiting on this thread for its callbacks would be for ever.
    pub(crate) fn is_here(&self) -> bool {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) == thread::current().id()
    }

    fn move_here(&self) {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = thread::current().id();
    }
}

// SAFETY: "Every function may be called from any thread". Dispatching, which is "One thread at a time", is not here.
unsafe impl Send for Pump {}
// SAFETY: as for Send.
unsafe impl Sync for Pump {}

impl Drop for Pump {
    fn drop(&mut self) {
        // SAFETY: the one reference that this value holds.
        unsafe { sys::imgdl_executor_release(self.raw.as_ptr()) }
    }
}

/// Runs callbacks on your own thread: watch the descriptor in epoll, GLib, mio or calloop, and call
/// [`dispatch`](PumpedExecutor::dispatch) when it is readable.
///
/// It may move to another thread, and belongs to the one that dispatched it last; it is not `Sync`, since only one
/// thread at a time may dispatch. Other threads name it with [`executor`](PumpedExecutor::executor), which they may
/// share.
///
/// When it is dropped, callbacks that wait are not run any more; their closures are dropped.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// use imgdl::{Downloader, PumpedExecutor, Request, Events};
/// use std::os::unix::io::AsRawFd;
/// # fn wait_until_readable(_: i32) { thread::yield_now() }
/// # fn main() -> Result<(), imgdl::Error> {
/// let executor = PumpedExecutor::new()?;
/// let downloader = Downloader::builder().executor(executor.executor()).build()?;
/// # offline(&downloader);
/// let request = Request::new("https://example.org/a.png").on_event(Events::NONE, |_, event| println!("{event:?}"));
/// downloader.download(request)?;
/// while downloader.current_count() > 0 {
///     wait_until_readable(executor.as_raw_fd());
///     executor.dispatch(0)?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail,E0277
/// fn needs_sync<T: Sync>() {}
/// needs_sync::<imgdl::PumpedExecutor>();
/// ```
pub struct PumpedExecutor {
    pump: Arc<Pump>,
    // dispatch: "One thread at a time".
    _not_sync: PhantomData<Cell<()>>,
}

impl PumpedExecutor {
    /// It belongs to the thread that calls this, until another one dispatches it: waiting on that thread for its
    /// callbacks is [`Code::WOULD_DEADLOCK`].
    pub fn new() -> Result<PumpedExecutor> {
        let mut raw = ptr::null_mut();
        // SAFETY: an out-parameter.
        check(unsafe { sys::imgdl_executor_create_pumped(&mut raw) })?;
        let raw = NonNull::new(raw).expect("an executor was given");
        let pump = Pump { raw, owner: Mutex::new(thread::current().id()) };
        Ok(PumpedExecutor { pump: Arc::new(pump), _not_sync: PhantomData })
    }

    /// For requests and downloaders. It does not keep this executor alive: requests that name it after it was dropped
    /// are refused with [`Code::INVALID_HANDLE`].
    pub fn executor(&self) -> Executor {
        Executor(Place::Pumped(Arc::downgrade(&self.pump)))
    }

    /// Runs the callbacks that wait, at most `max_events` of them (0: 1024), on this thread, and tells how many ran.
    /// When more are left the descriptor stays readable. Inside one of its own callbacks it is
    /// [`Code::WOULD_DEADLOCK`].
    pub fn dispatch(&self, max_events: u32) -> Result<u32> {
        self.pump.move_here();
        let mut dispatched = 0;
        // SAFETY: a living handle; "One thread at a time" since this is not Sync.
        check(unsafe { sys::imgdl_executor_dispatch(self.pump.raw.as_ptr(), max_events, &mut dispatched) })?;
        Ok(dispatched)
    }
}

impl AsRawFd for PumpedExecutor {
    /// Readable while callbacks wait; do not read or close it.
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_executor_fd(self.pump.raw.as_ptr()) }
    }
}

impl From<&PumpedExecutor> for Executor {
    fn from(executor: &PumpedExecutor) -> Executor {
        executor.executor()
    }
}

impl fmt::Debug for PumpedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PumpedExecutor(descriptor {})", self.as_raw_fd())
    }
}
