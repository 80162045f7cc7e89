//! Between C and Rust: text, time, results.

use std::ffi::{CStr, CString};
use std::os::raw::c_char;
use std::time::Duration;

use crate::error::{Code, Error, Result};

/// # Safety
/// `text` is a static string of the library.
pub(crate) unsafe fn static_text(text: *const c_char) -> &'static str {
    // SAFETY: as above; "Strings are UTF-8, end with NUL".
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}

/// A copy; "" for NULL.
///
/// # Safety
/// `text` is NULL or a string that lives until this returns.
pub(crate) unsafe fn copied_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not NULL, and alive.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// C strings end at the first NUL: one inside would silently cut what was meant.
pub(crate) fn c_string(text: &str, code: Code, what: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::new(code, format!("{what} holds a NUL")))
}

/// Milliseconds that are at least as long; zero only for zero, since zero means default.
pub(crate) fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(wait_milliseconds(duration)).unwrap_or(u32::MAX)
}

pub(crate) fn wait_milliseconds(duration: Duration) -> i64 {
    let rounded_up = duration.as_millis() + u128::from(duration.subsec_nanos() % 1_000_000 != 0);
    i64::try_from(rounded_up).unwrap_or(i64::MAX)
}

/// What a function of the library returned; to be called at once, on the thread that called the function.
pub(crate) fn check(status: imgdl_sys::imgdl_status) -> Result<()> {
    if status == imgdl_sys::IMGDL_OK {
        return Ok(());
    }
    // SAFETY: "Never NULL; valid until the next call of the library on this thread that fails": copied here.
    let message = unsafe { copied_text(imgdl_sys::imgdl_last_error()) };
    Err(Error::new(Code::from_raw(status), message))
}
