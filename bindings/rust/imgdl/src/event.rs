//! What a download tells while it runs, and at its end.

use std::fmt;
use std::ops::BitOr;

use imgdl_sys as sys;

use crate::body::Body;
use crate::cache::CacheOutcome;
use crate::convert::{copied_text, lent};
use crate::error::Error;
use crate::format::ImageInfo;
use crate::headers::{copied_headers, header_value};
use crate::image::Image;
use crate::observing::Metrics;

/// A set of kinds of event. [`Event::Finished`] always comes, and need not be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Events(sys::imgdl_event_mask);

impl Events {
    /// [`Event::Finished`] alone.
    pub const NONE: Events = Events(0);
    /// [`Event::Started`].
    pub const STARTED: Events = Events(sys::IMGDL_EVENT_STARTED);
    /// [`Event::Response`].
    pub const RESPONSE: Events = Events(sys::IMGDL_EVENT_RESPONSE);
    /// [`Event::Header`].
    pub const HEADER: Events = Events(sys::IMGDL_EVENT_HEADER);
    /// [`Event::Progress`].
    pub const PROGRESS: Events = Events(sys::IMGDL_EVENT_PROGRESS);
    /// [`Event::Partial`].
    pub const PARTIAL: Events = Events(sys::IMGDL_EVENT_PARTIAL);
    /// All of them.
    pub const ALL: Events = Events(sys::IMGDL_EVENT_ALL);

    pub(crate) fn raw(self) -> sys::imgdl_event_mask {
        self.0
    }

    pub(crate) fn contains(self, other: Events) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Events {
    type Output = Events;

    fn bitor(self, other: Events) -> Events {
        Events(self.0 | other.0)
    }
}

/// What happened to a download: in this order, [`Finished`](Event::Finished) exactly once and always last.
///
/// What it lends is for the time of the callback: clone an image, a body or the token to keep it. What keeps the loan
/// does not compile:
///
/// ```compile_fail
/// use imgdl::{Event, Events, Request};
/// let mut kept = None;
/// let request = Request::new("https://example.org/picture.jpg").on_event(Events::PARTIAL, move |_, event| {
///     if let Event::Partial(image) = event {
///         kept = Some(image);
///     }
/// });
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The transfer leaves the queue.
    Started,
    /// The server has answered; again with each attempt that is answered.
    Response(&'a Response),
    /// The size of the picture, from its first bytes; again likewise.
    Header(&'a ImageInfo),
    /// Bytes have come; the first time with the first bytes of the body.
    Progress {
        /// Body bytes so far, Content-Encoding undone.
        received: u64,
        /// Body bytes in all, if that is known.
        expected: Option<u64>,
    },
    /// The picture so far.
    Partial(&'a Image),
    /// The end.
    Finished(Result<&'a Download, &'a Error>),
}

impl Event<'_> {
    /// What has to be asked for to get it.
    pub(crate) fn kind(&self) -> Events {
        match self {
            Event::Started => Events::STARTED,
            Event::Response(_) => Events::RESPONSE,
            Event::Header(_) => Events::HEADER,
            Event::Progress { .. } => Events::PROGRESS,
            Event::Partial(_) => Events::PARTIAL,
            Event::Finished(_) => Events::NONE,
        }
    }
}

/// How a download succeeded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Download {
    /// The picture, unless only the body was wanted. With a callback it comes in [`Event::Finished`], and only there.
    pub image: Option<Image>,
    /// The body, if it was wanted. With a callback it comes in [`Event::Finished`], and only there.
    pub body: Option<Body>,
    /// Of the last response.
    pub http_status: i32,
    /// The media type of the last response, in lower case, without parameters; "" when it said none.
    pub content_type: String,
    /// Where the time went.
    pub metrics: Option<Metrics>,
    /// The last response, of requests without a callback, and of a [`Fetch`](crate::Fetch). With a callback it comes in
    /// [`Event::Response`].
    pub response: Option<Response>,
}

/// A redirect that was followed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Hop {
    /// That answered with the redirect; as [`Response::url`].
    pub url: String,
    /// Such as 302.
    pub status: i32,
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Response {
    /// Such as 200.
    pub status: i32,
    /// 10, 11 or 20.
    pub http_version: i32,
    /// How many redirects led here.
    pub redirect_count: u32,
    /// These redirects, in order.
    pub hops: Vec<Hop>,
    /// None when the server did not tell.
    pub content_length: Option<u64>,
    /// The URL that answered, without user, password and fragment, and, unless the request has
    /// [`full_urls`](crate::Request::full_urls), with dots for the values in its query.
    pub url: String,
    /// Its media type in lower case, without parameters; "" when there is none.
    pub content_type: String,
    /// Where it is from.
    pub cache_outcome: CacheOutcome,
    /// Names and values as received, repeated ones too.
    pub headers: Vec<(String, String)>,
}

impl Response {
    /// The first value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        header_value(&self.headers, name)
    }

    /// A copy.
    ///
    /// # Safety
    /// `raw` and what it points to are valid during the call.
    pub(crate) unsafe fn copy(raw: &sys::imgdl_response) -> Response {
        // SAFETY: as many as the struct says; all of it is as valid as the struct.
        let (headers, hops) = unsafe {
            (copied_headers(lent(raw.headers, raw.header_count)), lent(raw.hops, raw.redirect_count as usize))
        };
        // SAFETY: the same.
        let text = |text| unsafe { copied_text(text) };
        Response {
            status: raw.status,
            http_version: raw.http_version,
            redirect_count: raw.redirect_count,
            hops: hops.iter().map(|hop| Hop { url: text(hop.url), status: hop.status }).collect(),
            content_length: known(raw.content_length),
            url: text(raw.url),
            content_type: text(raw.content_type),
            cache_outcome: CacheOutcome::from_raw(raw.cache_outcome),
            headers,
        }
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.url)
    }
}

/// -1 stands for what is not known.
pub(crate) fn known(count: i64) -> Option<u64> {
    u64::try_from(count).ok()
}
