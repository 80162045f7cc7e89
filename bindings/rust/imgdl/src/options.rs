//! Options that downloaders and requests have in common: a request's take the place of its downloader's.

use std::ffi::CString;
use std::os::raw::c_char;
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

use imgdl_sys as sys;

use crate::convert::{c_option, c_path, c_string, milliseconds};
use crate::error::{Code, Result};
use crate::hooks::Hooks;

/// When transient failures are retried: no connection, a lost one, a timeout but the total one, 408, 429 and 5xx.
/// Only GET, HEAD, PUT, DELETE and OPTIONS are retried.
///
/// ```
/// use imgdl::Retry;
/// use std::time::Duration;
///
/// let patient = Retry::times(5).first_wait(Duration::from_secs(1)).longest_wait(Duration::from_secs(30));
/// assert_ne!(patient, Retry::never());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Retry {
    count: u32,
    first_wait: Duration,
    longest_wait: Duration,
}

impl Retry {
    /// Not at all, whatever the downloader says.
    pub fn never() -> Retry {
        Retry::times(0)
    }

    /// At most so often.
    pub fn times(count: u32) -> Retry {
        // 0 would be the default, and the largest number none at all: one less is as good as for ever.
        let count = if count == 0 { sys::IMGDL_RETRY_NONE } else { count.min(sys::IMGDL_RETRY_NONE - 1) };
        Retry { count, first_wait: Duration::ZERO, longest_wait: Duration::ZERO }
    }

    /// Waits up to this before the first, twice it before the second, at random; Retry-After is obeyed. Zero is the
    /// default: half a second, or the downloader's.
    pub fn first_wait(self, wait: Duration) -> Retry {
        Retry { first_wait: wait, ..self }
    }

    /// The longest wait; a longer Retry-After ends the request with that answer at once. Zero is the default: a minute, or
    /// the downloader's.
    pub fn longest_wait(self, wait: Duration) -> Retry {
        Retry { longest_wait: wait, ..self }
    }
}

/// As the builders collect them.
#[derive(Clone, Default)]
pub(crate) struct Common {
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) credentials: Option<(String, String)>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) client_certificate: Option<PathBuf>,
    pub(crate) client_key: Option<PathBuf>,
    pub(crate) client_key_password: Option<String>,
    pub(crate) pinned_public_key: Option<String>,
    pub(crate) partition: Option<String>,
    pub(crate) max_stale: Option<Duration>,
    pub(crate) retry: Option<Retry>,
    pub(crate) accepted_statuses: Option<Vec<sys::imgdl_status_range>>,
    pub(crate) accepted_types: Option<Vec<String>>,
    pub(crate) hooks: Option<Hooks>,
}

/// The methods of both builders, which have a field `common`.
macro_rules! common_options {
    ($builder:ident) => {
        impl $builder {
            /// For name, connection and TLS; 15 seconds by default.
            pub fn connect_timeout(mut self, timeout: Duration) -> $builder {
                self.common.connect_timeout = timeout;
                self
            }

            /// Without a byte; 15 seconds by default.
            pub fn idle_timeout(mut self, timeout: Duration) -> $builder {
                self.common.idle_timeout = timeout;
                self
            }

            /// For Basic or Digest, as the server asks; those in a URL go before a downloader's. Never sent to another
            /// origin.
            pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> $builder {
                self.common.credentials = Some((user.into(), password.into()));
                self
            }

            /// What has been stale in the cache for longer does not answer, whatever allows it, with
            /// [`CacheMode::Only`](crate::CacheMode::Only), too; in whole seconds, rounded down. [`Duration::ZERO`]: what is
            /// stale never answers; [`Duration::MAX`], the default: however stale, as HTTP allows.
            pub fn max_stale(mut self, limit: Duration) -> $builder {
                self.common.max_stale = Some(limit);
                self
            }

            /// PEM certificates to trust instead of the system's.
            pub fn ca_file(mut self, path: impl AsRef<Path>) -> $builder {
                self.common.ca_file = Some(path.as_ref().to_path_buf());
                self
            }

            /// A certificate in PEM to show to servers that ask for one.
            pub fn client_certificate(mut self, path: impl AsRef<Path>) -> $builder {
                self.common.client_certificate = Some(path.as_ref().to_path_buf());
                self
            }

            /// Its key in PEM, if that is not in the same file.
            pub fn client_key(mut self, path: impl AsRef<Path>) -> $builder {
                self.common.client_key = Some(path.as_ref().to_path_buf());
                self
            }

            /// The password of that key.
            pub fn client_key_password(mut self, password: impl Into<String>) -> $builder {
                self.common.client_key_password = Some(password.into());
                self
            }

            /// The server's public key must be this one, `sha256//BASE64`, or one of several with ; between them: else
            /// [`Code::TLS_PIN`](crate::Code::TLS_PIN).
            pub fn pinned_public_key(mut self, pin: impl Into<String>) -> $builder {
                self.common.pinned_public_key = Some(pin.into());
                self
            }

            /// For which of your program's accounts: requests of two partitions share no connections, transfers or cookies,
            /// and nothing that is stored. Any text of 256 bytes at most.
            pub fn partition(mut self, name: impl Into<String>) -> $builder {
                self.common.partition = Some(name.into());
                self
            }

            /// Retries transient failures; without it none is retried.
            pub fn retry(mut self, retry: Retry) -> $builder {
                self.common.retry = Some(retry);
                self
            }

            /// The HTTP statuses that are a success, such as `[200..=299, 304..=304]`; 200 to 299 by default.
            pub fn accepted_statuses(mut self, ranges: impl IntoIterator<Item = RangeInclusive<u16>>) -> $builder {
                let range = |range: RangeInclusive<u16>| sys::imgdl_status_range {
                    first: i32::from(*range.start()),
                    last: i32::from(*range.end()),
                };
                self.common.accepted_statuses = Some(ranges.into_iter().map(range).collect());
                self
            }

            /// The types that are a success, such as "image/png" and "image/*"; any by default. A response without a
            /// Content-Type passes.
            pub fn accepted_types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> $builder {
                self.common.accepted_types = Some(types.into_iter().map(Into::into).collect());
                self
            }

            /// Functions of yours to ask while a download runs.
            pub fn hooks(mut self, hooks: &Hooks) -> $builder {
                self.common.hooks = Some(hooks.clone());
                self
            }
        }
    };
}
pub(crate) use common_options;

/// The same as C wants them.
pub(crate) struct CCommon {
    pub(crate) user: Option<CString>,
    pub(crate) password: Option<CString>,
    pub(crate) ca_file: Option<CString>,
    pub(crate) client_certificate: Option<CString>,
    pub(crate) client_key: Option<CString>,
    pub(crate) client_key_password: Option<CString>,
    pub(crate) pinned_public_key: Option<CString>,
    pub(crate) partition: Option<CString>,
    /// What the pointers in `type_pointers` point to.
    _types: Vec<CString>,
    type_pointers: Vec<*const c_char>,
    common: Common,
}

impl CCommon {
    pub(crate) fn new(common: Common) -> Result<CCommon> {
        let credential = |text| c_option(text, Code::INVALID_HEADER, "a user name or password");
        let types = common.accepted_types.iter().flatten();
        let types = types.map(|text| c_string(text, Code::INVALID_ARGUMENT, "an accepted type"));
        let types = types.collect::<Result<Vec<CString>>>()?;
        Ok(CCommon {
            user: credential(common.credentials.as_ref().map(|pair| pair.0.as_str()))?,
            password: credential(common.credentials.as_ref().map(|pair| pair.1.as_str()))?,
            ca_file: c_path(common.ca_file.as_deref(), "ca_file")?,
            client_certificate: c_path(common.client_certificate.as_deref(), "client_certificate")?,
            client_key: c_path(common.client_key.as_deref(), "client_key")?,
            client_key_password: credential(common.client_key_password.as_deref())?,
            pinned_public_key: c_option(common.pinned_public_key.as_deref(), Code::INVALID_ARGUMENT, "a pin")?,
            partition: c_option(common.partition.as_deref(), Code::INVALID_ARGUMENT, "a partition")?,
            // A CString's bytes stay where they are when the CString moves.
            type_pointers: types.iter().map(|text| text.as_ptr()).collect(),
            _types: types,
            common,
        })
    }

    pub(crate) fn connect_timeout_ms(&self) -> u32 {
        milliseconds(self.common.connect_timeout)
    }

    pub(crate) fn idle_timeout_ms(&self) -> u32 {
        milliseconds(self.common.idle_timeout)
    }

    pub(crate) fn max_stale_ms(&self) -> u64 {
        match self.common.max_stale {
            None => 0,
            Some(Duration::MAX) => sys::IMGDL_NO_LIMIT,
            // 0 would be the default.
            Some(limit) if limit.as_millis() == 0 => sys::IMGDL_STALE_NEVER,
            Some(limit) => u64::try_from(limit.as_millis()).unwrap_or(sys::IMGDL_NO_LIMIT),
        }
    }

    /// Count, base and maximum.
    pub(crate) fn retry(&self) -> (u32, u32, u32) {
        let times = |retry: Retry| (retry.count, milliseconds(retry.first_wait), milliseconds(retry.longest_wait));
        self.common.retry.map_or((0, 0, 0), times)
    }

    pub(crate) fn statuses(&self) -> (*const sys::imgdl_status_range, usize) {
        self.common.accepted_statuses.as_ref().map_or((ptr::null(), 0), |ranges| (ranges.as_ptr(), ranges.len()))
    }

    pub(crate) fn types(&self) -> (*const *const c_char, usize) {
        let pointers = self.common.accepted_types.as_ref().map(|_| &self.type_pointers);
        pointers.map_or((ptr::null(), 0), |pointers| (pointers.as_ptr(), pointers.len()))
    }

    pub(crate) fn hooks(&self) -> *mut sys::imgdl_hooks {
        self.common.hooks.as_ref().map_or(ptr::null_mut(), Hooks::raw)
    }
}

/// Writes them into an imgdl_config or an imgdl_request, which lives no longer.
macro_rules! write_common {
    ($raw:ident, $common:expr) => {
        $raw.connect_timeout_ms = $common.connect_timeout_ms();
        $raw.idle_timeout_ms = $common.idle_timeout_ms();
        $raw.user = pointer(&$common.user);
        $raw.password = pointer(&$common.password);
        $raw.ca_file = pointer(&$common.ca_file);
        $raw.client_certificate = pointer(&$common.client_certificate);
        $raw.client_key = pointer(&$common.client_key);
        $raw.client_key_password = pointer(&$common.client_key_password);
        $raw.pinned_public_key = pointer(&$common.pinned_public_key);
        $raw.partition = pointer(&$common.partition);
        $raw.max_stale_ms = $common.max_stale_ms();
        ($raw.retry_count, $raw.retry_base_ms, $raw.retry_max_ms) = $common.retry();
        ($raw.accepted_statuses, $raw.accepted_status_count) = $common.statuses();
        ($raw.accepted_types, $raw.accepted_type_count) = $common.types();
        $raw.hooks = $common.hooks();
    };
}
pub(crate) use write_common;
