//! Image downloads: a URL goes in, pixels come out.
//!
//! Requests for the same bytes share one transfer, each can be cancelled without harm to the others, and a picture can
//! be shown while it is still arriving. This crate is the safe face of the C library libimgdl.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
//! # fn main() -> Result<(), imgdl::Error> {
//! let downloader = imgdl::Downloader::new()?;
//! # offline(&downloader);
//! let image = downloader.get("https://example.org/picture.jpg")?;
//! println!("{} x {}, {} bytes of RGBA", image.width(), image.height(), image.pixels().len());
//! # Ok(())
//! # }
//! ```
//!
//! # Ways to wait
//!
//! | | begins a download and gives | dropping it |
//! |---|---|---|
//! | [`get`](Downloader::get) | the [`Image`], when it is there | |
//! | [`fetch`](Downloader::fetch) | a [`Fetch`]: a future, which threads can wait for, too | cancels |
//! | [`stream`](Downloader::stream) | an [`ImageStream`]: partial images, then the whole | cancels |
//! | [`map`](Downloader::map) | of many: an iterator over the results | cancels |
//! | [`download`](Downloader::download) | a [`Token`], beside a callback with all [events](Event) | goes on |
//! | [`prefetch`](Downloader::prefetch) | of many: a [`Batch`] with one progress | goes on |
//!
//! Futures are those of the standard library: any runtime drives them, and none is needed. They are woken by the
//! library's own thread.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
//! # fn main() -> Result<(), imgdl::Error> {
//! # let downloader = imgdl::Downloader::new()?;
//! # offline(&downloader);
//! # block_on(async {
//! let preview = downloader.fetch("https://example.org/preview.jpg");
//! let mut images = downloader.stream("https://example.org/picture.jpg");
//! println!("{:?}", preview.await?.image);
//! while let Some(image) = images.next_image().await {
//!     println!("{} rows are there", image?.ready().height);
//! }
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! With events, while it arrives:
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
//! use imgdl::{Downloader, Event, Events, Request};
//! # fn main() -> Result<(), imgdl::Error> {
//! let downloader = Downloader::new()?;
//! # offline(&downloader);
//! let request = Request::new("https://example.org/picture.jpg").on_event(
//!     Events::PROGRESS | Events::PARTIAL,
//!     |_token, event| match event {
//!         Event::Progress { received, expected } => println!("{received} of {expected:?}"),
//!         Event::Partial(image) => println!("{} rows are there", image.ready().height),
//!         Event::Finished(Ok(download)) => println!("whole: {:?}", download.image),
//!         Event::Finished(Err(error)) => println!("{error}"),
//!         _ => {}
//!     },
//! );
//! downloader.download(request)?.wait()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Options
//!
//! Options are methods of builders, and what is not said is the default: [`Builder`] for a downloader, [`Request`] for
//! one download, [`DecodeOptions`] for pixels, [`CacheBuilder`] for a cache, [`HooksBuilder`] for questions that a
//! download asks. Every failure is an [`Error`] with a stable [`Code`].
//!
//! # Threads
//!
//! What may cross threads is `Send`, what may be shared is `Sync`: all handles are both, except those that one thread
//! at a time uses: a [`Decoder`], a [`PumpedExecutor`], a [`Transfer`] and a [`Continuation`] are `Send` alone.
//!
//! # Where callbacks run
//!
//! On a thread of the downloader; or, named with [`Request::executor`] or [`Builder::executor`],
//! [inline](Executor::inline) on the library's thread that made the event, or in your own event loop with a
//! [`PumpedExecutor`].
//!
//! # Panics
//!
//! A panic in a callback goes no further than the callback. Its download is cancelled, the callback is not called
//! again, and [`Token::wait`] returns an [`Error`] that [says so](Error::is_panic); [`Token::take_panic`] gives the
//! panic to whoever wants to resume it. The same holds for the progress of a [`Batch`]. A [hook](Hooks) that panics
//! refuses, a [`Loader`] fails its transfer, a [`Coder`] its picture, and an observer is not called again. Where the program
//! is built with `panic = "abort"`, each of them ends it, with the panic's message.

#![deny(missing_debug_implementations, missing_docs, unsafe_op_in_unsafe_fn)]
// What may get another field or variant says so.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod batch;
mod body;
mod builder;
mod cache;
mod coder;
mod continuation;
mod convert;
mod decode;
mod downloader;
mod error;
mod event;
mod executor;
mod fetch;
mod format;
mod guard;
mod headers;
mod hooks;
mod image;
mod loader;
mod map;
mod memory;
mod observing;
mod options;
mod outgoing;
mod parts;
mod pending;
mod request;
mod sink;
mod stream;
mod token;
mod trim;

pub use batch::{Batch, BatchOptions, BatchProgress};
pub use body::Body;
pub use builder::{Builder, Order};
pub use cache::{Cache, CacheBuilder, CacheEntry, CacheEvent, CacheMode, CacheOutcome, CacheStatistics};
pub use coder::{register_coder, Coder, CoderOptions, PictureDecoder, RegisteredCoder};
pub use continuation::{question, Continuation};
pub use decode::{decode, DecodeOptions, Decoder};
pub use downloader::{Downloader, Shutdown};
pub use error::{Code, Error, Result};
pub use event::{Download, Event, Events, Hop, Response};
pub use executor::{Executor, PumpedExecutor};
pub use fetch::Fetch;
pub use format::{Colour, ColourNotes, Format, ImageInfo, PixelFormat, Rectangle};
pub use hooks::{Hooks, HooksBuilder};
pub use image::Image;
pub use loader::{Loader, Transfer};
pub use map::{Map, Unordered};
pub use memory::{decode_into, Allocator, CanvasSize, Placed};
pub use observing::{Histogram, Metrics, Observation, Observed, Stats};
pub use options::Retry;
pub use outgoing::{Outgoing, Replacement};
pub use parts::{Frame, Frames, Rows};
pub use request::{Priority, Request};
pub use stream::{ImageStream, NextImage};
pub use token::Token;
pub use trim::{trim, TrimLevel};

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The version of the library that is loaded, such as "1.1.0".
pub fn version() -> &'static str {
    // SAFETY: takes nothing; "static ones forever".
    unsafe { convert::static_text(imgdl_sys::imgdl_version_string()) }
}
