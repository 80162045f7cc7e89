//! What the library calls: a panic in there must not unwind into C, and whoever would wait there must not.

use std::any::Any;
use std::cell::Cell;
use std::mem;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};

thread_local! {
    // Clippy of 1.63 takes the block for a constant item.
    #[allow(clippy::declare_interior_mutable_const)]
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs what is somebody else's. What it leaves in disorder by a panic must not be looked at again.
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    // A thread that ends has no depth any more, and nobody waits there.
    let change = |by: i32| DEPTH.try_with(|depth| depth.set(depth.get().wrapping_add(by as u32))).unwrap_or(());
    change(1);
    let result = catch_unwind(AssertUnwindSafe(run));
    change(-1);
    result
}

/// The same where nobody is left to hear of the panic; the panic hook has told it.
pub(crate) fn contained<T>(run: impl FnOnce() -> T) -> Option<T> {
    guarded(run).map_err(discard).ok()
}

/// Drops what a panic has thrown, whose own drop might panic.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = guarded(|| drop(payload)) {
        mem::forget(another);
    }
}

/// Whether the library is waiting for this thread to return.
pub(crate) fn is_in_callback() -> bool {
    DEPTH.try_with(Cell::get).unwrap_or(0) > 0
}

/// What a panic says.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(no text)".into())
}

/// To be given to `dispose`, once.
pub(crate) fn into_user_data<T>(value: T) -> *mut c_void {
    Box::into_raw(Box::new(value)).cast()
}

/// The destructor of what `into_user_data` made.
///
/// # Safety
/// "Called once when nothing will be called with user_data any more"; T is the type that was given.
pub(crate) unsafe extern "C" fn dispose<T>(user_data: *mut c_void) {
    // SAFETY: as above.
    let value = unsafe { Box::from_raw(user_data.cast::<T>()) };
    contained(|| drop(value));
}
