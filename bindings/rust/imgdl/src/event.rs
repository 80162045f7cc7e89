//! What a download tells while it runs, and at its end.

use std::fmt;
use std::ops::BitOr;
use std::slice;

use imgdl_sys as sys;

use crate::convert::copied_text;
use crate::error::Error;
use crate::image::{Body, Image, ImageInfo};

/// A set of kinds of event. [`Event::Finished`] always comes, and need not be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
}

impl BitOr for Events {
    type Output = Events;

    fn bitor(self, other: Events) -> Events {
        Events(self.0 | other.0)
    }
}

/// What happened to a download: in this order, [`Finished`](Event::Finished) exactly once and always last.
///
/// What it lends is for the time of the callback: clone an image, a body or the token to keep it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The transfer leaves the queue.
    Started,
    /// The server has answered.
    Response(&'a Response),
    /// The size of the picture, from its first bytes.
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
    /// The last response, of requests without a callback. With one, it comes in [`Event::Response`].
    pub response: Option<Response>,
}

/// What a server answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Response {
    /// Such as 200.
    pub status: i32,
    /// 10, 11 or 20.
    pub http_version: i32,
    /// How many redirects led here.
    pub redirect_count: u32,
    /// None when the server did not tell.
    pub content_length: Option<u64>,
    /// The URL that answered, without user, password and fragment.
    pub url: String,
    /// Names and values as received, repeated ones too.
    pub headers: Vec<(String, String)>,
}

impl Response {
    /// The first value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// A copy.
    ///
    /// # Safety
    /// `raw` and what it points to are valid during the call.
    pub(crate) unsafe fn copy(raw: &sys::imgdl_response) -> Response {
        let headers = match raw.header_count {
            0 => &[],
            // SAFETY: as many as the struct says.
            count => unsafe { slice::from_raw_parts(raw.headers, count) },
        };
        // SAFETY: all of it is as valid as the struct.
        let text = |text| unsafe { copied_text(text) };
        Response {
            status: raw.status,
            http_version: raw.http_version,
            redirect_count: raw.redirect_count,
            content_length: known(raw.content_length),
            url: text(raw.url),
            headers: headers.iter().map(|header| (text(header.name), text(header.value))).collect(),
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
