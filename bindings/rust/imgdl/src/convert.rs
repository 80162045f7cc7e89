//! Between C and Rust: text, time, results.

use std::ffi::{CStr, CString};
use std::mem::{size_of, MaybeUninit};
use std::os::raw::{c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::slice;
use std::time::Duration;

use crate::error::{Code, Error, Result};

/// # Safety
/// `text` is a static string of the library.
pub(crate) unsafe fn static_text(text: *const c_char) -> &'static str {
    // SAFETY: as above; "Strings are UTF-8, end with NUL".
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}

/// "" for NULL.
///
/// # Safety
/// `text` is NULL or a string that lives as long as 'a.
pub(crate) unsafe fn lent_text<'a>(text: *const c_char) -> &'a str {
    if text.is_null() {
        return "";
    }
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

/// Bytes that are lent.
///
/// # Safety
/// `bytes` is NULL, or so many bytes that live as long as 'a.
pub(crate) unsafe fn lent_bytes<'a>(bytes: *const c_void, length: usize) -> &'a [u8] {
    if bytes.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: as above.
    unsafe { slice::from_raw_parts(bytes.cast(), length) }
}

/// Things that are lent.
///
/// # Safety
/// `count` is 0, or there are so many that live as long as 'a.
pub(crate) unsafe fn lent<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as above.
    unsafe { slice::from_raw_parts(first, count) }
}

/// A struct as the library's own function for that fills it.
///
/// # Safety
/// `fill` is the function of T, and all zeros is a T.
pub(crate) unsafe fn filled<T>(fill: unsafe extern "C" fn(*mut T, usize)) -> T {
    let mut raw = MaybeUninit::<T>::zeroed();
    // SAFETY: as many bytes as it is told; all zeros is a valid value besides.
    unsafe {
        fill(raw.as_mut_ptr(), size_of::<T>());
        raw.assume_init()
    }
}

/// NULL for None; valid as long as the text.
pub(crate) fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(ptr::null(), |text| text.as_ptr())
}

/// C strings end at the first NUL: one inside would silently cut what was meant.
pub(crate) fn c_string(text: &str, code: Code, what: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::new(code, format!("{what} holds a NUL")))
}

pub(crate) fn c_option(text: Option<&str>, code: Code, what: &str) -> Result<Option<CString>> {
    text.map(|text| c_string(text, code, what)).transpose()
}

pub(crate) fn c_path(path: Option<&Path>, what: &str) -> Result<Option<CString>> {
    let text = path.map(|path| CString::new(path.as_os_str().as_bytes())).transpose();
    text.map_err(|_| Error::new(Code::INVALID_OPERATION, format!("the path of {what} holds a NUL")))
}

/// A sentence; what cannot be in one is left out.
pub(crate) fn c_sentence(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
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

/// Not negative in anything that the library tells.
pub(crate) fn nanoseconds(count: i64) -> Duration {
    Duration::from_nanos(u64::try_from(count).unwrap_or(0))
}
