//! What there is to measure: of one download, of each transfer, of all.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::os::raw::c_void;
use std::time::Duration;

use imgdl_sys as sys;

use crate::convert::{copied_text, lent_text, nanoseconds};
use crate::error::Code;
use crate::guard::contained;

/// Where the time of a download went; zero where there was none. The transfer's, of its last attempt, except where
/// said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Metrics {
    /// 10, 11 or 20; 0 before an answer.
    pub http_version: i32,
    /// From [`download`](crate::Downloader::download) to the start of the transfer, for this request.
    pub queue: Duration,
    /// The name.
    pub resolve: Duration,
    /// TCP.
    pub connect: Duration,
    /// TLS.
    pub tls: Duration,
    /// From the request's end to the first byte of the answer.
    pub first_byte: Duration,
    /// From the first byte to the last.
    pub body: Duration,
    /// From the start of the first attempt to the last byte, hops and waits included.
    pub transfer: Duration,
    /// On a thread, for this request's decode options.
    pub decode: Duration,
    /// From [`download`](crate::Downloader::download) to the end.
    pub total: Duration,
    /// On the wire, heads and bodies of all hops and attempts that have ended.
    pub bytes_received: u64,
    /// Likewise.
    pub bytes_sent: u64,
    /// Of the body, Content-Encoding undone.
    pub body_bytes: u64,
    /// Redirects that were followed.
    pub redirect_count: u32,
    /// Attempts after the first.
    pub retry_count: u32,
    /// Whether the connection was there before.
    pub is_connection_reused: bool,
    /// Whether the transfer was there before this request.
    pub is_shared: bool,
    /// Of the server, numeric; "" before a connection.
    pub address: String,
}

impl Metrics {
    /// A copy.
    ///
    /// # Safety
    /// `raw` and what it points to are valid during the call.
    pub(crate) unsafe fn copy(raw: &sys::imgdl_metrics) -> Metrics {
        let count = |count| u64::try_from(count).unwrap_or(0);
        Metrics {
            http_version: raw.http_version,
            queue: nanoseconds(raw.queue_ns),
            resolve: nanoseconds(raw.resolve_ns),
            connect: nanoseconds(raw.connect_ns),
            tls: nanoseconds(raw.tls_ns),
            first_byte: nanoseconds(raw.first_byte_ns),
            body: nanoseconds(raw.body_ns),
            transfer: nanoseconds(raw.transfer_ns),
            decode: nanoseconds(raw.decode_ns),
            total: nanoseconds(raw.total_ns),
            bytes_received: count(raw.bytes_received),
            bytes_sent: count(raw.bytes_sent),
            body_bytes: count(raw.body_bytes),
            redirect_count: raw.redirect_count,
            retry_count: raw.retry_count,
            is_connection_reused: raw.is_connection_reused != 0,
            is_shared: raw.is_shared != 0,
            // SAFETY: as valid as the struct.
            address: unsafe { copied_text(raw.address) },
        }
    }

    /// The same; None for NULL.
    ///
    /// # Safety
    /// `raw` is NULL, or it and what it points to are valid during the call.
    pub(crate) unsafe fn copy_option(raw: *const sys::imgdl_metrics) -> Option<Metrics> {
        // SAFETY: as above.
        unsafe { raw.as_ref().map(|raw| Metrics::copy(raw)) }
    }
}

/// What an observer is told of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Observed {
    /// It has left the queue, or tries again.
    Started,
    /// A head is there that no redirect follows, also one that is then refused.
    Response,
    /// It has ended at the network, for whatever reason.
    Stopped,
    /// It has stopped well: the whole body is there. Its picture may be broken.
    Finished,
}

/// For [`Downloader::set_observer`](crate::Downloader::set_observer): lent for the time of the call. Of each transfer
/// comes [`Started`](Observed::Started) first and [`Stopped`](Observed::Stopped), then [`Finished`](Observed::Finished)
/// last; one that never left the queue is not observed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Observation<'a> {
    /// What happened.
    pub kind: Observed,
    /// A number for each transfer.
    pub transfer: u64,
    /// With dots for the values in its query.
    pub url: &'a str,
    /// Why it stopped, if not because all was there.
    pub error: Option<Code>,
    /// 0 before an answer.
    pub http_status: i32,
    /// Requests that share it.
    pub subscriber_count: u32,
    /// Attempts after the first.
    pub retry_count: u32,
    /// With [`Stopped`](Observed::Stopped) and [`Finished`](Observed::Finished).
    pub metrics: Option<Metrics>,
}

impl<'a> Observation<'a> {
    /// None for what a newer library tells.
    ///
    /// # Safety
    /// What `raw` points to lives as long as it.
    unsafe fn copy(raw: &'a sys::imgdl_observation) -> Option<Observation<'a>> {
        let kind = match raw.kind {
            sys::IMGDL_OBSERVED_STARTED => Observed::Started,
            sys::IMGDL_OBSERVED_RESPONSE => Observed::Response,
            sys::IMGDL_OBSERVED_STOPPED => Observed::Stopped,
            sys::IMGDL_OBSERVED_FINISHED => Observed::Finished,
            _ => return None,
        };
        Some(Observation {
            kind,
            transfer: raw.transfer,
            // SAFETY: as above.
            url: unsafe { lent_text(raw.url) },
            error: Some(raw.code).filter(|&code| code != sys::IMGDL_OK).map(Code::from_raw),
            http_status: raw.http_status,
            subscriber_count: raw.subscriber_count,
            retry_count: raw.retry_count,
            // SAFETY: as above.
            metrics: unsafe { Metrics::copy_option(raw.metrics) },
        })
    }
}

type Closure = Box<dyn FnMut(&Observation<'_>) + Send>;

/// What an observer's user_data points to.
pub(crate) struct Observer {
    /// None after a panic.
    closure: Option<Closure>,
}

impl Observer {
    pub(crate) fn new(closure: impl FnMut(&Observation<'_>) + Send + 'static) -> Observer {
        Observer { closure: Some(Box::new(closure)) }
    }
}

/// The observer of every downloader that has one.
///
/// # Safety
/// Called by the library, on one thread, with an Observer that has not been disposed of.
pub(crate) unsafe extern "C" fn observe(observation: *const sys::imgdl_observation, user_data: *mut c_void) {
    // SAFETY: as above.
    let observer = unsafe { &mut *user_data.cast::<Observer>() };
    if let Some(mut closure) = observer.closure.take() {
        // SAFETY: borrowed, valid during the call. A closure that panics is dropped in here, too.
        observer.closure = contained(move || {
            if let Some(seen) = unsafe { Observation::copy(&*observation) } {
                closure(&seen);
            }
            closure
        });
    }
}

/// How long something took, over all transfers.
#[derive(Clone)]
pub struct Histogram(sys::imgdl_histogram);

impl Histogram {
    /// How many times.
    pub fn count(&self) -> u64 {
        self.0.count
    }

    /// All of them together.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.0.sum_us)
    }

    /// Bucket i counts times below 2^i microseconds, and not below 2^(i-1).
    pub fn buckets(&self) -> &[u64] {
        &self.0.buckets
    }

    /// The time that a part of them, 0 to 1, stayed below, interpolated: 0.5 is the median. Zero when there is none.
    pub fn quantile(&self, part: f64) -> Duration {
        // SAFETY: lives during the call.
        let microseconds = unsafe { sys::imgdl_histogram_quantile(&self.0, part) };
        // The last bucket ends at 2^39; whatever else there might be is no time.
        Duration::from_nanos((microseconds * 1_000.0) as u64)
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        (self.0.count, self.0.sum_us, self.0.buckets) == (other.0.count, other.0.sum_us, other.0.buckets)
    }
}

impl Eq for Histogram {}

impl Hash for Histogram {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.count, self.0.sum_us, self.0.buckets).hash(state);
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = f.debug_struct("Histogram");
        parts.field("count", &self.count()).field("median", &self.quantile(0.5)).finish_non_exhaustive()
    }
}

macro_rules! stats {
    ($($(#[$text:meta])* $name:ident,)* ; $($(#[$about:meta])* $histogram:ident,)*) => {
        /// Counts and times since a downloader was made: see [`Downloader::stats`](crate::Downloader::stats).
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub struct Stats {
            $( $(#[$text])* pub $name: u64, )*
            $( $(#[$about])* pub $histogram: Histogram, )*
        }

        impl Stats {
            pub(crate) fn from_raw(raw: &sys::imgdl_stats) -> Stats {
                Stats { $( $name: raw.$name, )* $( $histogram: Histogram(raw.$histogram), )* }
            }
        }
    };
}

stats! {
    /// Requests.
    submitted,
    /// Requests.
    succeeded,
    /// Requests.
    failed,
    /// Requests.
    cancelled,
    /// Requests that joined a transfer.
    shared,
    /// Transfers that left the queue.
    transfers,
    /// Attempts after the first.
    retries,
    /// Redirects that were followed.
    redirects,
    /// Connections that were made, not used again.
    connections,
    /// On the wire.
    bytes_received,
    /// On the wire.
    bytes_sent,
    /// Decoded.
    pixels,
    /// Transfers, now.
    waiting,
    /// Transfers, now.
    running,
    /// Transfers, now.
    paused,
    /// Transfers, now.
    decoding,
    /// Bytes that count towards [`memory_budget`](crate::Builder::memory_budget), now.
    memory,
    /// The most there have been.
    memory_peak,
    ;
    /// As in [`Metrics`].
    queue,
    /// As in [`Metrics`].
    resolve,
    /// As in [`Metrics`].
    connect,
    /// As in [`Metrics`].
    tls,
    /// As in [`Metrics`].
    first_byte,
    /// As in [`Metrics`].
    transfer,
    /// As in [`Metrics`].
    decode,
    /// As in [`Metrics`].
    total,
}
