//! Many requests with one progress.

use std::fmt;
use std::os::raw::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use imgdl_sys as sys;

use crate::convert::{check, filled};
use crate::error::{Code, Error, Result};
use crate::executor::{Executor, Pump};
use crate::guard::{self, guarded, is_in_callback};
use crate::request::{arm, Priority, Request};
use crate::sink::Panics;

/// How far a batch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BatchProgress {
    /// Succeeded, failed or cancelled.
    pub finished: usize,
    /// Of these; not the cancelled ones.
    pub failed: usize,
    /// Of these.
    pub cancelled: usize,
    /// Requests in all.
    pub total: usize,
    /// Whether nothing more will come.
    pub is_finished: bool,
}

impl BatchProgress {
    fn from_raw(raw: &sys::imgdl_batch_progress) -> BatchProgress {
        BatchProgress {
            finished: raw.finished,
            failed: raw.failed,
            cancelled: raw.cancelled,
            total: raw.total,
            is_finished: raw.is_finished != 0,
        }
    }
}

type OnProgress = Box<dyn FnMut(&BatchProgress) + Send>;

/// How to run a batch, for [`Downloader::prefetch`](crate::Downloader::prefetch).
#[derive(Default)]
#[must_use = "options do nothing until they are given to a downloader"]
pub struct BatchOptions {
    max_concurrent: u32,
    executor: Executor,
    keeps_priority: bool,
    on_progress: Option<OnProgress>,
}

impl BatchOptions {
    /// Three requests at a time, all of low priority.
    pub fn new() -> BatchOptions {
        BatchOptions::default()
    }

    /// How many of its requests are going at a time; 0 is the default of 3.
    pub fn max_concurrent(self, max_concurrent: u32) -> BatchOptions {
        BatchOptions { max_concurrent, ..self }
    }

    /// Where progress is told, in place of the downloader's executor.
    pub fn executor(self, executor: impl Into<Executor>) -> BatchOptions {
        BatchOptions { executor: executor.into(), ..self }
    }

    /// Each request has its own priority, instead of [`Priority::Low`].
    pub fn keep_priority(self) -> BatchOptions {
        BatchOptions { keeps_priority: true, ..self }
    }

    /// Calls `callback` after each end of a request, never twice at a time; with an empty list once. Then the closure
    /// is dropped. A panic in it cancels the batch, and [`Batch::wait`] tells of it.
    pub fn on_progress(self, callback: impl FnMut(&BatchProgress) + Send + 'static) -> BatchOptions {
        BatchOptions { on_progress: Some(Box::new(callback)), ..self }
    }
}

impl fmt::Debug for BatchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = f.debug_struct("BatchOptions");
        parts.field("max_concurrent", &self.max_concurrent).finish_non_exhaustive()
    }
}

/// Many requests with one progress. Dropping it does not cancel; the batch goes on. Clones are the same batch.
#[derive(Clone)]
pub struct Batch(Arc<Shared>);

/// What a batch's handles and its callback have in common.
struct Shared {
    /// One reference; NULL before there is a batch. The library writes it before it calls anything.
    raw: AtomicPtr<sys::imgdl_batch>,
    panics: Panics,
    /// Those whose threads must not wait.
    pumps: Vec<std::sync::Weak<Pump>>,
    has_ended: Mutex<bool>,
    ends: Condvar,
}

impl Shared {
    fn raw(&self) -> *mut sys::imgdl_batch {
        self.raw.load(Ordering::Acquire)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the one reference that this value holds, or NULL.
        unsafe { sys::imgdl_batch_release(self.raw()) }
    }
}

impl Batch {
    /// Cancels all that have not ended, those that wait to be asked for too.
    pub fn cancel(&self) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_batch_cancel(self.0.raw()) })
    }

    /// While it is paused no further request is begun.
    pub fn set_paused(&self, paused: bool) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_batch_set_paused(self.0.raw(), paused.into()) })
    }

    /// Another priority for the whole batch, waiting ones and running ones.
    pub fn set_priority(&self, priority: Priority) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_batch_set_priority(self.0.raw(), priority.raw()) })
    }

    /// How far it is.
    pub fn progress(&self) -> Result<BatchProgress> {
        let mut raw = sys::imgdl_batch_progress {
            struct_size: std::mem::size_of::<sys::imgdl_batch_progress>() as u32,
            is_finished: 0,
            finished: 0,
            failed: 0,
            cancelled: 0,
            total: 0,
        };
        // SAFETY: a living handle, an initialised struct.
        check(unsafe { sys::imgdl_batch_progress_get(self.0.raw(), &mut raw) })?;
        Ok(BatchProgress::from_raw(&raw))
    }

    /// Waits until every request has ended and progress has been told for the last time. Inside a callback, and on the
    /// thread of a pumped executor of the batch, its requests or its downloader, that would be for ever:
    /// [`Code::WOULD_DEADLOCK`].
    pub fn wait(&self) -> Result<BatchProgress> {
        self.wait_until(None)
    }

    /// The same, but [`Code::WAIT_TIMEOUT`] if the end has not come by then.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<BatchProgress> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Result<BatchProgress> {
        let mut has_ended = self.0.has_ended.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own_thread = || self.0.pumps.iter().any(|pump| pump.upgrade().map_or(false, |pump| pump.is_here()));
        if !*has_ended && (is_in_callback() || is_own_thread()) {
            return Err(Error::new(Code::WOULD_DEADLOCK, "the batch would wait for this thread".into()));
        }
        while !*has_ended {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(Error::new(Code::WAIT_TIMEOUT, "the batch has not ended yet".into()));
            }
            let ends = &self.0.ends;
            has_ended = match left {
                Some(left) => ends.wait_timeout(has_ended, left).unwrap_or_else(PoisonError::into_inner).0,
                None => ends.wait(has_ended).unwrap_or_else(PoisonError::into_inner),
            };
        }
        drop(has_ended);
        self.0.panics.error()?;
        self.progress()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.progress() {
            Ok(now) => write!(f, "Batch({} of {})", now.finished, now.total),
            Err(error) => write!(f, "Batch({})", error.name()),
        }
    }
}

/// What a batch's user_data points to.
struct BatchSink {
    on_progress: Option<OnProgress>,
    shared: Arc<Shared>,
}

impl Drop for BatchSink {
    fn drop(&mut self) {
        let closure = self.on_progress.take();
        if let Err(payload) = guarded(|| drop(closure)) {
            self.shared.panics.remember(payload);
        }
        *self.shared.has_ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.ends.notify_all();
    }
}

/// # Safety
/// Called by the library, "never two at a time", with a BatchSink that has not been disposed of.
unsafe extern "C" fn tell(progress: *const sys::imgdl_batch_progress, user_data: *mut c_void) {
    // SAFETY: as above; the struct is valid during the call.
    let (progress, sink) = unsafe { (BatchProgress::from_raw(&*progress), &mut *user_data.cast::<BatchSink>()) };
    if let Some(mut closure) = sink.on_progress.take() {
        let told = guarded(move || {
            closure(&progress);
            closure
        });
        match told {
            Ok(closure) => sink.on_progress = Some(closure),
            Err(payload) => {
                sink.shared.panics.remember(payload);
                // SAFETY: a living handle; "Every function may be called from any thread, also inside callbacks".
                unsafe { sys::imgdl_batch_cancel(sink.shared.raw()) };
            }
        }
    }
}

/// Gives them to the library.
///
/// # Safety
/// `downloader` is a living handle.
pub(crate) unsafe fn submit(
    downloader: *mut sys::imgdl_downloader,
    default_executor: &Executor,
    requests: Vec<Request>,
    options: BatchOptions,
) -> Result<Batch> {
    let prepare = |(index, request): (usize, Request)| {
        request.prepare().map_err(|error| error.about(&format!("requests[{index}]")))
    };
    let mut prepared = requests.into_iter().enumerate().map(prepare).collect::<Result<Vec<_>>>()?;
    let (executor, pump) = options.executor.resolve()?;
    let default_pump = default_executor.resolve().ok().and_then(|(_, pump)| pump);
    let pumps = prepared.iter().flat_map(|request| &request.pump).chain(&pump).chain(&default_pump);
    let mut pumps: Vec<_> = pumps.map(Arc::downgrade).collect();
    pumps.dedup_by(|one, other| one.ptr_eq(other));

    let shared = Arc::new(Shared {
        raw: AtomicPtr::new(ptr::null_mut()),
        panics: Panics::default(),
        pumps,
        has_ended: Mutex::new(false),
        ends: Condvar::new(),
    });
    // SAFETY: its own function; all zeros is a valid value.
    let mut raw_options = unsafe { filled(sys::imgdl_batch_options_init) };
    raw_options.max_concurrent = options.max_concurrent;
    raw_options.executor = executor;
    raw_options.keeps_priority = options.keeps_priority.into();
    raw_options.progress = Some(tell);
    raw_options.destructor = Some(guard::dispose::<BatchSink>);
    let sink = BatchSink { on_progress: options.on_progress, shared: shared.clone() };
    raw_options.user_data = guard::into_user_data(sink);
    let callbacks: Vec<_> = prepared.iter_mut().map(|request| request.callback.take()).collect();
    let mut raw: Vec<_> = prepared.iter().map(|request| request.raw()).collect();
    for (raw, callback) in raw.iter_mut().zip(callbacks) {
        arm(raw, callback);
    }
    // An AtomicPtr lies in memory as a pointer does, and may be written through a shared reference.
    let batch = &shared.raw as *const AtomicPtr<sys::imgdl_batch> as *mut *mut sys::imgdl_batch;
    // SAFETY: the structs and what they point to live until the library returns. The closures are Send; they are
    // disposed of in any case: "Where it is an error only the destructors are called". "Written before anything is
    // called".
    check(unsafe { sys::imgdl_downloader_prefetch(downloader, raw.as_ptr(), raw.len(), &raw_options, batch) })?;
    Ok(Batch(shared))
}
