//! Bodies: immutable, shared, reference-counted.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::slice;

use imgdl_sys as sys;

/// The bytes of a response, Content-Encoding undone. Cloning it copies no byte.
pub struct Body(NonNull<sys::imgdl_data>);

// SAFETY: "Every function may be called from any thread"; "a body; immutable, shared, reference-counted".
unsafe impl Send for Body {}
// SAFETY: as for Send.
unsafe impl Sync for Body {}

impl Body {
    /// Takes a reference of its own; None for NULL.
    ///
    /// # Safety
    /// `raw` is NULL or valid during the call.
    pub(crate) unsafe fn from_borrowed(raw: *mut sys::imgdl_data) -> Option<Body> {
        // SAFETY: "Another reference, and the same handle; NULL for an invalid one".
        NonNull::new(unsafe { sys::imgdl_data_retain(raw) }).map(Body)
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: a living handle. "The bytes, valid until the last reference is released; NULL if there are none."
        unsafe {
            let bytes = sys::imgdl_data_bytes(self.0.as_ptr()).cast::<u8>();
            if bytes.is_null() {
                return &[];
            }
            slice::from_raw_parts(bytes, sys::imgdl_data_length(self.0.as_ptr()))
        }
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Clone for Body {
    fn clone(&self) -> Body {
        // SAFETY: a living handle: the same one comes back, with one more reference.
        unsafe { sys::imgdl_data_retain(self.0.as_ptr()) };
        Body(self.0)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // SAFETY: the one reference that this value holds.
        unsafe { sys::imgdl_data_release(self.0.as_ptr()) }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.len())
    }
}
