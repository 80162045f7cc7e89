//! A picture as it arrives: an iterator for threads, and the same for tasks.

use std::fmt;
use std::future::Future;
use std::iter::FusedIterator;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::downloader::Downloader;
use crate::error::Result;
use crate::event::{Download, Events};
use crate::image::Image;
use crate::pending::{Pending, State};
use crate::request::Request;
use crate::token::Token;

/// The images of one download: partial ones as they come, then the whole, or an error as the last item. Dropping it
/// cancels; [`detach`](ImageStream::detach) lets the download go on. It is `Send` and `Sync`.
///
/// Whoever is slow misses partial images, never the newest. [`Image::is_complete`] tells the whole from the partial
/// ones, which come [so often](Request::partial_interval) at most. A request for the body only has no images: its
/// stream ends when [`download`](ImageStream::download) has the body.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// # fn main() -> Result<(), imgdl::Error> {
/// let downloader = imgdl::Downloader::new()?;
/// # offline(&downloader);
/// for image in downloader.stream("https://example.org/picture.jpg") {
///     let image = image?;
///     println!("{} of {} rows", image.ready().height, image.height());
/// }
/// # Ok(())
/// # }
/// ```
///
/// In a task, with any runtime or none:
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// # fn main() -> Result<(), imgdl::Error> {
/// # let downloader = imgdl::Downloader::new()?;
/// # offline(&downloader);
/// # block_on(async {
/// let mut images = downloader.stream("https://example.org/picture.jpg");
/// while let Some(image) = images.next_image().await {
///     println!("{:?}", image?.ready());
/// }
/// # Ok(())
/// # })
/// # }
/// ```
///
/// Those who have the crate `futures` make it one of its streams with
/// `futures::stream::poll_fn(move |context| images.poll_next(context))`.
#[must_use = "a stream that is dropped cancels its download"]
pub struct ImageStream {
    pending: Pending,
    has_given_last: bool,
}

impl ImageStream {
    pub(crate) fn begin(downloader: &Downloader, request: Request) -> ImageStream {
        ImageStream { pending: Pending::begin(downloader, request, Events::PARTIAL), has_given_last: false }
    }

    /// The next one, for a task; None after the last. Dropping what this gives loses no image.
    pub fn next_image(&mut self) -> NextImage<'_> {
        NextImage(self)
    }

    /// The same by hand.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Image>>> {
        if self.has_given_last {
            return Poll::Ready(None);
        }
        self.pending.poll(context, State::has_news).map(|()| self.news())
    }

    /// How the download ended, with response, body and metrics; None before that.
    pub fn download(&self) -> Option<Result<Download>> {
        self.pending.is_finished().then(|| self.pending.outcome())
    }

    /// To change its priority, or to cancel it and still hear how it ended; None if the request was refused.
    pub fn token(&self) -> Option<&Token> {
        self.pending.token()
    }

    /// Lets the download go on with nobody looking; the token can still cancel it. What the request was refused with is
    /// the error.
    pub fn detach(self) -> Result<Token> {
        self.pending.detach()
    }

    /// When there is some.
    fn news(&mut self) -> Option<Result<Image>> {
        if !self.pending.is_finished() {
            if let Some(partial) = self.pending.take_partial() {
                return Some(Ok(partial));
            }
        }
        self.has_given_last = true;
        self.pending.outcome().map(|download| download.image).transpose()
    }
}

/// Waits on this thread. Where that would be for ever, such as inside a callback, the one item is
/// [`Code::WOULD_DEADLOCK`](crate::Code::WOULD_DEADLOCK).
impl Iterator for ImageStream {
    type Item = Result<Image>;

    fn next(&mut self) -> Option<Result<Image>> {
        if self.has_given_last {
            return None;
        }
        match self.pending.wait(None, State::has_news) {
            Ok(()) => self.news(),
            Err(error) => {
                self.has_given_last = true;
                Some(Err(error))
            }
        }
    }
}

impl FusedIterator for ImageStream {}

impl fmt::Debug for ImageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ImageStream({})", self.token().map_or(0, Token::id))
    }
}

/// The next image of an [`ImageStream`]: see [`next_image`](ImageStream::next_image).
#[must_use = "a future does nothing until it is polled"]
#[derive(Debug)]
pub struct NextImage<'a>(&'a mut ImageStream);

impl Future for NextImage<'_> {
    type Output = Option<Result<Image>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Image>>> {
        self.0.poll_next(context)
    }
}
