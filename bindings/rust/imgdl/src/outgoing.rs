//! A request as it will be sent, and what takes its place.

use std::ffi::CString;
use std::fmt;
use std::ptr;

use imgdl_sys as sys;

use crate::convert::{c_option, filled, lent, lent_bytes, lent_text, pointer};
use crate::error::{Code, Result};
use crate::headers::CHeaders;

/// A request as it will be sent: lent to a hook or a [`Loader`](crate::Loader) for the time of the call.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    raw: &'a sys::imgdl_outgoing,
}

impl<'a> Outgoing<'a> {
    /// # Safety
    /// What `raw` points to lives as long as it.
    pub(crate) unsafe fn new(raw: &'a sys::imgdl_outgoing) -> Outgoing<'a> {
        Outgoing { raw }
    }

    /// The whole URL, with its query; without user and password.
    pub fn url(&self) -> &'a str {
        // SAFETY: lives as long as the struct.
        unsafe { lent_text(self.raw.url) }
    }

    /// Such as "GET".
    pub fn method(&self) -> &'a str {
        // SAFETY: lives as long as the struct.
        unsafe { lent_text(self.raw.method) }
    }

    /// Names and values, the downloader's included.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        // SAFETY: as many as the struct says.
        let headers = unsafe { lent(self.raw.headers, self.raw.header_count) };
        // SAFETY: they live as long as the struct.
        headers.iter().map(|header| unsafe { (lent_text(header.name), lent_text(header.value)) })
    }

    /// The first value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// What it sends.
    pub fn body(&self) -> &'a [u8] {
        // SAFETY: as many bytes as the struct says, as long as it lives.
        unsafe { lent_bytes(self.raw.body, self.raw.body_length) }
    }

    /// This request with one more header, which takes the place of those of the same name.
    pub fn with_header(&self, name: &str, value: &str) -> Replacement {
        let others = self.headers().filter(|(known, _)| !known.eq_ignore_ascii_case(name));
        Replacement::new().headers(others.chain(Some((name, value))))
    }
}

impl fmt::Debug for Outgoing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither headers nor the query go into logs: they may hold secrets.
        let url = self.url().split('?').next().unwrap_or("");
        f.debug_struct("Outgoing").field("url", &url).field("method", &self.method()).finish_non_exhaustive()
    }
}

/// What to send instead of an [`Outgoing`] request; what is not said stays as it was.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Replacement {
    url: Option<String>,
    method: Option<String>,
    headers: Option<Vec<(String, String)>>,
    body: Option<Vec<u8>>,
}

impl Replacement {
    /// All as it was.
    pub fn new() -> Replacement {
        Replacement::default()
    }

    /// Another URL.
    pub fn url(self, url: impl Into<String>) -> Replacement {
        Replacement { url: Some(url.into()), ..self }
    }

    /// Another method.
    pub fn method(self, method: impl Into<String>) -> Replacement {
        Replacement { method: Some(method.into()), ..self }
    }

    /// All headers: none of those that were there remain. See [`Outgoing::with_header`] for one more.
    pub fn headers<N: Into<String>, V: Into<String>>(self, headers: impl IntoIterator<Item = (N, V)>) -> Replacement {
        let headers = headers.into_iter().map(|(name, value)| (name.into(), value.into()));
        Replacement { headers: Some(headers.collect()), ..self }
    }

    /// Another body to send.
    pub fn body(self, body: impl Into<Vec<u8>>) -> Replacement {
        Replacement { body: Some(body.into()), ..self }
    }

    pub(crate) fn prepare(self) -> Result<CReplacement> {
        let headers = self
            .headers
            .as_ref()
            .map(|headers| CHeaders::new(headers.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())))));
        Ok(CReplacement {
            url: c_option(self.url.as_deref(), Code::INVALID_URL, "the URL")?,
            method: c_option(self.method.as_deref(), Code::INVALID_HEADER, "the method")?,
            headers: headers.transpose()?,
            body: self.body,
        })
    }
}

impl fmt::Debug for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replacement").field("method", &self.method).finish_non_exhaustive()
    }
}

/// The same as C wants it.
pub(crate) struct CReplacement {
    url: Option<CString>,
    method: Option<CString>,
    headers: Option<CHeaders>,
    body: Option<Vec<u8>>,
}

impl CReplacement {
    /// Valid as long as `self`.
    pub(crate) fn raw(&self) -> sys::imgdl_outgoing {
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_outgoing_init) };
        raw.url = pointer(&self.url);
        raw.method = pointer(&self.method);
        raw.headers = self.headers.as_ref().map_or(ptr::null(), |headers| headers.raw.as_ptr());
        raw.header_count = self.headers.as_ref().map_or(0, |headers| headers.raw.len());
        raw.body = self.body.as_ref().map_or(ptr::null(), |body| body.as_ptr().cast());
        raw.body_length = self.body.as_ref().map_or(0, Vec::len);
        raw
    }
}
