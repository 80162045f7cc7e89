//! How to make a downloader.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use imgdl_sys as sys;

use crate::cache::{Cache, CacheMode};
use crate::convert::{c_option, c_path, check, filled, milliseconds, pointer};
use crate::downloader::Downloader;
use crate::error::{Code, Result};
use crate::executor::Executor;
use crate::hooks::Hooks;
use crate::options::{common_options, write_common, CCommon, Common, Retry};

/// The order among waiting requests of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// First come, first served.
    #[default]
    Fifo,
    /// Newest first.
    Lifo,
}

impl Order {
    pub(crate) fn raw(self) -> sys::imgdl_order {
        match self {
            Order::Fifo => sys::IMGDL_ORDER_FIFO,
            Order::Lifo => sys::IMGDL_ORDER_LIFO,
        }
    }
}

/// How to make a [`Downloader`]. Zero is the default everywhere.
///
/// ```
/// # fn main() -> Result<(), imgdl::Error> {
/// let downloader = imgdl::Downloader::builder().max_concurrent(12).user_agent("viewer/3.1").build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[must_use = "a builder does nothing until build() is called"]
pub struct Builder {
    max_concurrent: u32,
    max_per_host: u32,
    order: Order,
    decode_threads: u32,
    max_redirects: u32,
    memory_budget: u64,
    failure_ttl: Duration,
    progress_interval: f64,
    flags: sys::imgdl_config_flags,
    user_agent: Option<String>,
    proxy: Option<String>,
    cookie_file: Option<PathBuf>,
    dns_servers: Option<String>,
    crl_file: Option<PathBuf>,
    nat64_prefixes: Option<String>,
    executor: Executor,
    cache: Option<Cache>,
    cache_mode: Option<CacheMode>,
    common: Common,
}

common_options!(Builder);

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

    /// 10 by default, 100 at most.
    pub fn max_redirects(self, max_redirects: u32) -> Builder {
        Builder { max_redirects, ..self }
    }

    /// "imgdl/1.1.0" by default.
    pub fn user_agent(self, user_agent: impl Into<String>) -> Builder {
        Builder { user_agent: Some(user_agent.into()), ..self }
    }

    /// Running transfers to one host and port; 0 is the default: no limit but `max_concurrent`.
    pub fn max_per_host(self, max_per_host: u32) -> Builder {
        Builder { max_per_host, ..self }
    }

    /// Bytes of bodies and pixels that are in work; 512 MiB by default. When they are reached nothing new starts, and
    /// HTTP/1.1 transfers pause.
    pub fn memory_budget(self, bytes: u64) -> Builder {
        Builder { memory_budget: bytes, ..self }
    }

    /// A URL that failed in a way that will not pass (bad picture, certificate, protocol) fails at once for so long,
    /// with [`Code::BLACKLISTED`], unless it has been removed from the cache or changed by another method since; zero is the default: not at all.
    pub fn failure_ttl(self, ttl: Duration) -> Builder {
        Builder { failure_ttl: ttl, ..self }
    }

    /// This part of the whole, 0 to 1, must come between two [`Event::Progress`](crate::Event::Progress); the last is
    /// always told, and all are where the whole is unknown.
    pub fn progress_interval(self, part: f64) -> Builder {
        Builder { progress_interval: part, ..self }
    }

    /// Refuses to connect to loopback, link-local, private and other such addresses, in whatever form, on every hop:
    /// [`Code::ADDRESS_REFUSED`]. Not together with a proxy.
    pub fn deny_private_addresses(self) -> Builder {
        self.with(sys::IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES)
    }

    /// Allows file: URLs; never as the target of a redirect.
    pub fn allow_file_urls(self) -> Builder {
        self.with(sys::IMGDL_CONFIG_ALLOW_FILE_URLS)
    }

    /// Allows data: URLs; never as the target of a redirect.
    pub fn allow_data_urls(self) -> Builder {
        self.with(sys::IMGDL_CONFIG_ALLOW_DATA_URLS)
    }

    fn with(self, flags: sys::imgdl_config_flags) -> Builder {
        Builder { flags: self.flags | flags, ..self }
    }

    /// Such as "http://user:password@host:3128"; by default what curl's environment variables say.
    pub fn proxy(self, url: impl Into<String>) -> Builder {
        Builder { proxy: Some(url.into()), ..self }
    }

    /// No proxy, whatever the environment says.
    pub fn no_proxy(self) -> Builder {
        self.proxy("")
    }

    /// Where the cookie jar is kept, in Netscape's format: read at the start, written at the end. In memory by default.
    /// [`Builder::build`] fails where it is a folder, a pipe or a device, cannot be read or written, holds something
    /// else, or is in a folder that does not exist or where no file can be made.
    pub fn cookie_file(self, path: impl AsRef<Path>) -> Builder {
        Builder { cookie_file: Some(path.as_ref().to_path_buf()), ..self }
    }

    /// Who is asked for names, after /etc/hosts: numeric addresses, each with a port if it is not 53, such as
    /// `192.0.2.1,[2001:db8::1]:5353`, 8 at most. By default as the system has it.
    pub fn dns_servers(self, servers: impl Into<String>) -> Builder {
        Builder { dns_servers: Some(servers.into()), ..self }
    }

    /// Revocation lists in PEM, of all authorities that servers have: a certificate that is in one, or whose authority has
    /// none, is not trusted. By default revocation is not looked at.
    pub fn crl_file(self, path: impl AsRef<Path>) -> Builder {
        Builder { crl_file: Some(path.as_ref().to_path_buf()), ..self }
    }

    /// TLS 1.3 at least, in place of 1.2.
    pub fn require_tls_1_3(self) -> Builder {
        self.with(sys::IMGDL_CONFIG_REQUIRE_TLS_1_3)
    }

    /// Of the network's NAT64, for [`deny_private_addresses`](Builder::deny_private_addresses), besides 64:ff9b::/96: such
    /// as "2001:db8:64::/96"; with commas between them, 8 at most.
    pub fn nat64_prefixes(self, prefixes: impl Into<String>) -> Builder {
        Builder { nat64_prefixes: Some(prefixes.into()), ..self }
    }

    /// Keeps what downloads bring, and answers with it. Any number of downloaders may have the same.
    pub fn cache(self, cache: &Cache) -> Builder {
        Builder { cache: Some(cache.clone()), ..self }
    }

    /// Of requests that say nothing; by default [`CacheMode::Use`] where there is a cache.
    pub fn cache_mode(self, mode: CacheMode) -> Builder {
        Builder { cache_mode: Some(mode), ..self }
    }

    /// A transfer whose last request is cancelled goes on into the cache when its rest would take less time than the
    /// server took to answer.
    pub fn finish_nearly_done(self) -> Builder {
        self.with(sys::IMGDL_CONFIG_FINISH_NEARLY_DONE)
    }

    /// [`Request::basic_over_http`](crate::Request::basic_over_http) for every request.
    pub fn basic_over_http(self) -> Builder {
        self.with(sys::IMGDL_CONFIG_BASIC_OVER_HTTP)
    }

    /// Where callbacks run of requests that name no executor; by default on a thread of the downloader.
    pub fn executor(self, executor: impl Into<Executor>) -> Builder {
        Builder { executor: executor.into(), ..self }
    }

    /// Makes the downloader.
    pub fn build(self) -> Result<Downloader> {
        let executor = self.executor.clone();
        let mut downloader = ptr::null_mut();
        // SAFETY: the struct lives until the library returns.
        self.read(|config| unsafe { sys::imgdl_downloader_create(config, &mut downloader) })?;
        Ok(Downloader::from_owned(downloader, executor))
    }

    /// Lets the library read it as C.
    pub(crate) fn read(self, reader: impl FnOnce(&sys::imgdl_config) -> sys::imgdl_status) -> Result<()> {
        let user_agent = c_option(self.user_agent.as_deref(), Code::INVALID_HEADER, "the user agent")?;
        let proxy = c_option(self.proxy.as_deref(), Code::INVALID_URL, "the proxy")?;
        let cookie_file = c_path(self.cookie_file.as_deref(), "cookie_file")?;
        let dns_servers = c_option(self.dns_servers.as_deref(), Code::INVALID_ARGUMENT, "dns_servers")?;
        let crl_file = c_path(self.crl_file.as_deref(), "crl_file")?;
        let nat64_prefixes = c_option(self.nat64_prefixes.as_deref(), Code::INVALID_ARGUMENT, "nat64_prefixes")?;
        let common = CCommon::new(self.common)?;
        let (executor, _keeps_executor) = self.executor.resolve()?;
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_config_init) };
        raw.max_concurrent = self.max_concurrent;
        raw.order = self.order.raw();
        raw.decode_threads = self.decode_threads;
        raw.max_redirects = self.max_redirects;
        raw.user_agent = pointer(&user_agent);
        raw.executor = executor;
        raw.flags = self.flags;
        raw.max_per_host = self.max_per_host;
        raw.memory_budget = self.memory_budget;
        raw.proxy = pointer(&proxy);
        raw.cookie_file = pointer(&cookie_file);
        raw.dns_servers = pointer(&dns_servers);
        raw.crl_file = pointer(&crl_file);
        raw.nat64_prefixes = pointer(&nat64_prefixes);
        raw.failure_ttl_ms = milliseconds(self.failure_ttl);
        raw.progress_interval = self.progress_interval;
        if let Some(cache) = &self.cache {
            raw.cache = cache.raw();
            raw.cache_mode = CacheMode::Use.raw();
        }
        if let Some(mode) = self.cache_mode {
            raw.cache_mode = mode.raw();
        }
        write_common!(raw, common);
        check(reader(&raw))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No proxy and no credentials: they hold secrets.
        let mut parts = f.debug_struct("Builder");
        parts.field("max_concurrent", &self.max_concurrent).field("order", &self.order);
        parts.field("user_agent", &self.user_agent).finish_non_exhaustive()
    }
}
