//! What downloads have brought, kept for the next time.

use std::fmt;
use std::os::raw::c_void;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use imgdl_sys as sys;

use crate::convert::{c_path, c_string, check, filled, lent_text, pointer};
use crate::error::{Code, Error, Result};
use crate::guard::{self, guarded};

/// How a request uses the cache of its downloader. Without a cache, `Only` is [`Code::NOT_CACHED`], and the others are
/// as `Off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheMode {
    /// Neither read nor written.
    Off,
    /// As RFC 9111 says: what is fresh answers without the network, what is stale is validated.
    Use,
    /// From the server, whatever is stored; the answer is stored.
    Reload,
    /// What is stored, however old (but for [`max_stale`](crate::Request::max_stale)); else [`Code::NOT_CACHED`]. Nothing
    /// is sent over http and https, whatever the method; other schemes have no cache and are asked.
    Only,
    /// Validated with the server, also where it is fresh; but what is fresh and `immutable` answers as it is (RFC 8246).
    Refresh,
}

impl CacheMode {
    pub(crate) fn raw(self) -> sys::imgdl_cache_mode {
        match self {
            CacheMode::Off => sys::IMGDL_CACHE_OFF,
            CacheMode::Use => sys::IMGDL_CACHE_USE,
            CacheMode::Reload => sys::IMGDL_CACHE_RELOAD,
            CacheMode::Only => sys::IMGDL_CACHE_ONLY,
            CacheMode::Refresh => sys::IMGDL_CACHE_REFRESH,
        }
    }
}

/// Where a [`Response`](crate::Response) is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheOutcome {
    /// From the server.
    Network,
    /// Stored, and fresh.
    Hit,
    /// Stored; the server said that it is still good.
    Validated,
    /// Stored, and stale: allowed by max-stale, stale-while-revalidate, stale-if-error, a server that cannot be reached, or
    /// [`CacheMode::Only`]; [`max_stale`](crate::Request::max_stale) bounds all of them.
    Stale,
    /// Its beginning was kept of a transfer that had broken off.
    Resumed,
}

impl CacheOutcome {
    pub(crate) fn from_raw(raw: sys::imgdl_cache_outcome) -> CacheOutcome {
        match raw {
            sys::IMGDL_CACHE_OUTCOME_HIT => CacheOutcome::Hit,
            sys::IMGDL_CACHE_OUTCOME_VALIDATED => CacheOutcome::Validated,
            sys::IMGDL_CACHE_OUTCOME_STALE => CacheOutcome::Stale,
            sys::IMGDL_CACHE_OUTCOME_RESUMED => CacheOutcome::Resumed,
            _ => CacheOutcome::Network,
        }
    }
}

/// Something that the host may want to know of its cache. The library goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheEvent<'a> {
    /// The index was corrupt, foreign or newer: it was renamed, and begun anew. The text names the file and the cause.
    MovedAside(&'a str),
    /// The disk is full, read-only or broken, or another program has been writing to the index for half a minute: nothing is
    /// stored until it works again.
    Unwritable(&'a str),
    /// It works again.
    Writable(&'a str),
    /// Answers were not stored: the disk takes them slower than they come, `max_bytes` has no room for them, another program
    /// keeps reading the index or writing to it, or the cache was closed before; in memory alone: they take more than half of
    /// `max_memory_bytes`. The text says how many.
    NotStored(&'a str),
}

/// What is stored for a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CacheEntry {
    /// Such as 200.
    pub status: i32,
    /// Stored, Content-Encoding undone.
    pub body_bytes: u64,
    /// When; never later than now, as `used`, though a clock may have run ahead.
    pub stored: SystemTime,
    /// Used or validated for the last time.
    pub used: SystemTime,
    /// It is fresh for so many more seconds; 0 or negative: stale for so many, as what is to be validated before each use
    /// (no-cache, no picture) is from the moment on that it was made; 0 where nobody knows: it was stored while the clock was
    /// ahead by more than a day.
    pub fresh_seconds: i64,
    /// False: the beginning of a body that broke off.
    pub is_complete: bool,
}

macro_rules! statistics {
    ($($(#[$text:meta])* $name:ident,)*) => {
        /// What a cache holds, and how its look-ups ended since this process has opened it.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub struct CacheStatistics {
            /// False in memory alone, and while the disk is not [writable](CacheEvent::Unwritable).
            pub is_writable: bool,
            $( $(#[$text])* pub $name: u64, )*
        }

        impl CacheStatistics {
            fn from_raw(raw: &sys::imgdl_cache_stats) -> CacheStatistics {
                CacheStatistics { is_writable: raw.is_writable != 0, $( $name: raw.$name, )* }
            }
        }
    };
}

statistics! {
    /// On disk, those of all processes.
    entries,
    /// On disk. Bytes are what counts for the limits: bodies, headers, and what each answer takes besides.
    bytes,
    /// Bodies that broke off.
    partial_entries,
    /// Of bodies that broke off.
    partial_bytes,
    /// Bodies in memory.
    memory_entries,
    /// Of bodies in memory.
    memory_bytes,
    /// Decoded images.
    image_entries,
    /// Of decoded images.
    image_bytes,
    /// Look-ups that found something fresh on disk. Each look-up is one of these seven.
    hits,
    /// That found it in memory.
    memory_hits,
    /// That found it decoded.
    image_hits,
    /// Where the server said that it is still good.
    validated,
    /// That were answered by something stale.
    stale,
    /// That found nothing of use.
    misses,
    /// That found the beginning of it.
    resumed,
    /// Responses that were stored.
    stored,
    /// That went for size or age.
    evicted,
    /// Checksum or length wrong, or file gone: removed.
    damaged,
    /// Answers that were to be stored, and were not: see [`CacheEvent::NotStored`] and [`CacheEvent::Unwritable`].
    not_stored,
    /// Stored by this process, and lost if the power went now: see [`Cache::flush`].
    unflushed,
}

/// A private HTTP cache as RFC 9111 describes one, for any number of downloaders. Clones are the same cache; downloaders
/// hold it, too, and it closes with the last of them all. Processes may share its directory.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// # fn main() -> Result<(), imgdl::Error> {
/// # let _folder = Folder::with(&[]);
/// let cache = imgdl::Cache::builder().directory("cache-of-viewer").max_memory_bytes(16 << 20).open()?;
/// let downloader = imgdl::Downloader::builder().cache(&cache).build()?;
/// # offline(&downloader);
/// let image = downloader.get("https://example.org/picture.jpg")?;
/// println!("{image:?}, {} hits", cache.statistics()?.hits);
/// # downloader.close()?;
/// # Ok(())
/// # }
/// ```
///
/// Its functions wait for the disk, never for the network; inside its own [events](CacheBuilder::on_event) they are
/// [`Code::WOULD_DEADLOCK`]. Dropping the last reference writes what is left.
pub struct Cache(NonNull<sys::imgdl_cache>);

// SAFETY: "Every function may be called from any thread"; the closure behind it is Send and Sync.
unsafe impl Send for Cache {}
// SAFETY: as for Send.
unsafe impl Sync for Cache {}

impl Cache {
    /// In memory alone, with defaults; see there.
    pub fn builder() -> CacheBuilder {
        CacheBuilder::default()
    }

    /// In this directory, with defaults.
    pub fn open(directory: impl AsRef<Path>) -> Result<Cache> {
        Cache::builder().directory(directory).open()
    }

    /// The newest that is stored for a URL, whatever its Vary says, and whoever may have it. What was stored while this
    /// machine's clock was ahead is newer than another only where its Date is later.
    pub fn query(&self, url: impl AsRef<str>) -> Result<Option<CacheEntry>> {
        let url = c_string(url.as_ref(), Code::INVALID_URL, "the URL")?;
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_cache_entry_init) };
        // SAFETY: a living handle; both live during the call.
        let status = unsafe { sys::imgdl_cache_query(self.raw(), url.as_ptr(), &mut raw) };
        if status == sys::IMGDL_ERROR_NOT_CACHED {
            return Ok(None);
        }
        check(status)?;
        Ok(Some(CacheEntry {
            status: raw.status,
            body_bytes: u64::try_from(raw.body_bytes).unwrap_or(0),
            stored: time(raw.stored_s),
            used: time(raw.used_s),
            fresh_seconds: raw.fresh_s,
            is_complete: raw.is_complete != 0,
        }))
    }

    /// Removes everything that is stored for a URL. Answers to requests that were sent before this call are not stored
    /// either.
    pub fn remove(&self, url: impl AsRef<str>) -> Result<()> {
        let url = c_string(url.as_ref(), Code::INVALID_URL, "the URL")?;
        // SAFETY: a living handle; the text lives during the call.
        check(unsafe { sys::imgdl_cache_remove(self.raw(), url.as_ptr()) })
    }

    /// Removes what has not been used or validated for so long, in whole seconds: what was used in this second stays, also with
    /// none (`clear` takes all).
    pub fn remove_older(&self, age: Duration) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_cache_remove_older(self.raw(), seconds(age)) })
    }

    /// Removes everything. Answers to requests that were sent before this call are not stored either.
    pub fn clear(&self) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_cache_clear(self.raw()) })
    }

    /// Writes what has been stored so far to the disk for good: a power cut loses none of it.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_cache_flush(self.raw()) })
    }

    /// What it holds, and did.
    pub fn statistics(&self) -> Result<CacheStatistics> {
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_cache_stats_init) };
        // SAFETY: a living handle; the struct lives during the call.
        check(unsafe { sys::imgdl_cache_statistics(self.raw(), &mut raw) })?;
        Ok(CacheStatistics::from_raw(&raw))
    }

    pub(crate) fn raw(&self) -> *mut sys::imgdl_cache {
        self.0.as_ptr()
    }
}

impl Clone for Cache {
    fn clone(&self) -> Cache {
        // SAFETY: a living handle: the same one comes back, with one more reference.
        unsafe { sys::imgdl_cache_retain(self.raw()) };
        Cache(self.0)
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // SAFETY: the one reference that this value holds; "Downloaders hold their caches, too".
        unsafe { sys::imgdl_cache_release(self.raw()) }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cache")
    }
}

/// Seconds since 1970.
fn time(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let moment = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    };
    moment.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

type Closure = Box<dyn Fn(CacheEvent<'_>) + Send + Sync>;

/// How to make a [`Cache`]. Zero is the default everywhere.
#[derive(Default)]
#[must_use = "a builder does nothing until open() is called"]
pub struct CacheBuilder {
    directory: Option<PathBuf>,
    max_bytes: u64,
    max_memory_bytes: u64,
    max_image_bytes: u64,
    max_partial_bytes: u64,
    max_age: Duration,
    closure: Option<Closure>,
}

impl CacheBuilder {
    /// Made when it is not there, for this user alone; without one the cache is in memory alone.
    pub fn directory(self, directory: impl AsRef<Path>) -> CacheBuilder {
        CacheBuilder { directory: Some(directory.as_ref().to_path_buf()), ..self }
    }

    /// Of bodies on disk; 256 MiB by default.
    pub fn max_bytes(self, bytes: u64) -> CacheBuilder {
        CacheBuilder { max_bytes: bytes, ..self }
    }

    /// Of bodies in memory, as received; none by default, and 32 MiB without a directory.
    pub fn max_memory_bytes(self, bytes: u64) -> CacheBuilder {
        CacheBuilder { max_memory_bytes: bytes, ..self }
    }

    /// Of decoded images; none by default.
    pub fn max_image_bytes(self, bytes: u64) -> CacheBuilder {
        CacheBuilder { max_image_bytes: bytes, ..self }
    }

    /// Of bodies that broke off, kept to be resumed; an eighth of the whole by default.
    pub fn max_partial_bytes(self, bytes: u64) -> CacheBuilder {
        CacheBuilder { max_partial_bytes: bytes, ..self }
    }

    /// What has not been used or validated for so long, in whole seconds, is removed; zero is the default: never for its
    /// age.
    pub fn max_age(self, age: Duration) -> CacheBuilder {
        CacheBuilder { max_age: age, ..self }
    }

    /// Is told what happens to it, on a thread of the cache, or, in memory alone where the system gives it none, where the
    /// cache is closed; not again after a panic. It is dropped when the cache has closed, and so it is when `open` returns
    /// an error.
    pub fn on_event(self, closure: impl Fn(CacheEvent<'_>) + Send + Sync + 'static) -> CacheBuilder {
        CacheBuilder { closure: Some(Box::new(closure)), ..self }
    }

    /// Opens it, or makes it. A directory that cannot be used is no error but a [`CacheEvent::Unwritable`].
    pub fn open(self) -> Result<Cache> {
        let directory = c_path(self.directory.as_deref(), "directory")
            .map_err(|error| Error::new(Code::INVALID_ARGUMENT, error.to_string()))?;
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_cache_config_init) };
        raw.directory = pointer(&directory);
        raw.max_bytes = self.max_bytes;
        raw.max_memory_bytes = self.max_memory_bytes;
        raw.max_image_bytes = self.max_image_bytes;
        raw.max_partial_bytes = self.max_partial_bytes;
        raw.max_age_s = seconds(self.max_age);
        if let Some(closure) = self.closure {
            raw.callback = Some(tell);
            raw.destructor = Some(guard::dispose::<Listener>);
            raw.user_data = guard::into_user_data(Listener { closure, has_panicked: AtomicBool::new(false) });
        }
        let mut cache = ptr::null_mut();
        // SAFETY: the struct is read before the library returns; the closure is Send and Sync, and disposed of in any
        // case: "When an error is returned only the destructor is called".
        check(unsafe { sys::imgdl_cache_open(&raw, &mut cache) })?;
        Ok(Cache(NonNull::new(cache).expect("a cache was given")))
    }
}

impl fmt::Debug for CacheBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheBuilder").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// What a cache's user_data points to.
struct Listener {
    closure: Closure,
    has_panicked: AtomicBool,
}

/// The callback of every cache that has a closure.
///
/// # Safety
/// Called by the library with a Listener that has not been disposed of.
unsafe extern "C" fn tell(event: *const sys::imgdl_cache_event, user_data: *mut c_void) {
    // SAFETY: as above; borrowed, valid during the call.
    let (event, listener) = unsafe { (&*event, &*user_data.cast::<Listener>()) };
    // SAFETY: as valid as the struct.
    let message = unsafe { lent_text(event.message) };
    let event = match event.kind {
        sys::IMGDL_CACHE_MOVED_ASIDE => CacheEvent::MovedAside(message),
        sys::IMGDL_CACHE_UNWRITABLE => CacheEvent::Unwritable(message),
        sys::IMGDL_CACHE_WRITABLE => CacheEvent::Writable(message),
        sys::IMGDL_CACHE_NOT_STORED => CacheEvent::NotStored(message),
        _ => return,
    };
    if listener.has_panicked.load(Ordering::Acquire) {
        return;
    }
    if let Err(payload) = guarded(|| (listener.closure)(event)) {
        listener.has_panicked.store(true, Ordering::Release);
        guard::discard(payload);
    }
}
