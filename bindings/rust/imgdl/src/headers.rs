//! Headers as C wants them, and as it lends them.

use std::ffi::CString;
use std::os::raw::c_char;
use std::ptr;

use imgdl_sys as sys;

use crate::convert::{c_string, copied_text};
use crate::error::{Code, Result};

/// Headers as C wants them.
pub(crate) struct CHeaders {
    pub(crate) raw: Vec<sys::imgdl_header>,
    _texts: Vec<CString>,
}

impl CHeaders {
    /// None for a header that is not to be sent.
    pub(crate) fn new<'a>(headers: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Result<CHeaders> {
        let mut texts = Vec::new();
        let mut raw = Vec::new();
        // A CString's bytes stay where they are when the CString moves.
        let mut keep = |text: &str| -> Result<*const c_char> {
            texts.push(c_string(text, Code::INVALID_HEADER, "a header")?);
            Ok(texts[texts.len() - 1].as_ptr())
        };
        for (name, value) in headers {
            let name = keep(name)?;
            let value = value.map_or(Ok(ptr::null()), &mut keep)?;
            raw.push(sys::imgdl_header { name, value });
        }
        Ok(CHeaders { raw, _texts: texts })
    }
}

/// # Safety
/// Names and values are NULL or valid during the call.
pub(crate) unsafe fn copied_headers(raw: &[sys::imgdl_header]) -> Vec<(String, String)> {
    // SAFETY: as above.
    raw.iter().map(|header| unsafe { (copied_text(header.name), copied_text(header.value)) }).collect()
}

/// The first value of a header, whatever the case of its name.
pub(crate) fn header_value<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}
