//! A download as a future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::downloader::Downloader;
use crate::error::Result;
use crate::event::{Download, Events};
use crate::pending::{Pending, State};
use crate::request::Request;
use crate::token::Token;

/// A download that has begun: a [`Future`] for tasks of any runtime, or of none, and [`wait`](Fetch::wait) for threads.
/// Dropping it cancels; [`detach`](Fetch::detach) lets it go on. It is `Send` and `Sync`.
///
/// It needs not be polled to go on: those that are made first and awaited later run at the same time. Once it has
/// ended it gives the same result however often it is asked.
///
/// Its task is woken on the library's thread. A [callback](Request::on_event) of the request's own is called as ever,
/// before the task is woken, and then both happen where callbacks run; so it is if the request names an
/// [executor](Request::executor).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// # fn main() -> Result<(), imgdl::Error> {
/// let downloader = imgdl::Downloader::new()?;
/// # offline(&downloader);
/// let both = async {
///     let first = downloader.fetch("https://example.org/first.jpg");
///     let second = downloader.fetch("https://example.org/second.jpg");
///     Ok::<_, imgdl::Error>((first.await?.image, second.await?.image))
/// };
/// # let (first, second) = block_on(both)?;
/// # assert!(first.is_some() && second.is_some());
/// # Ok(())
/// # }
/// ```
#[must_use = "a fetch that is dropped is cancelled"]
pub struct Fetch(Pending);

impl Fetch {
    pub(crate) fn begin(downloader: &Downloader, request: Request) -> Fetch {
        Fetch(Pending::begin(downloader, request, Events::NONE))
    }

    /// Waits on this thread. [`Code::WOULD_DEADLOCK`](crate::Code::WOULD_DEADLOCK) where that would be for ever, such
    /// as inside a callback; the download is cancelled then.
    pub fn wait(self) -> Result<Download> {
        self.wait_until(None)
    }

    /// The same, but [`Code::WAIT_TIMEOUT`](crate::Code::WAIT_TIMEOUT) if the end has not come by then; the download
    /// goes on, and can be waited for again.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Download> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Result<Download> {
        self.0.wait(deadline, State::has_ended)?;
        self.0.outcome()
    }

    pub(crate) fn can_wait(&self) -> Result<()> {
        self.0.can_wait()
    }

    /// Whether the end has come, so that nothing waits any more.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// To change its priority, or to cancel it and still hear how it ended; None if the request was refused.
    pub fn token(&self) -> Option<&Token> {
        self.0.token()
    }

    /// Lets the download go on with nobody waiting, into the cache for instance; the token can still cancel it. What
    /// the request was refused with is the error.
    pub fn detach(self) -> Result<Token> {
        self.0.detach()
    }
}

impl Future for Fetch {
    type Output = Result<Download>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Download>> {
        self.0.poll(context, State::has_ended).map(|()| self.0.outcome())
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fetch({})", self.token().map_or(0, Token::id))
    }
}
