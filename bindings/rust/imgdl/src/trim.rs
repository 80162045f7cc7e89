//! Memory back to the system.

use imgdl_sys as sys;

/// What the library is to do without, each level with all that stand before it: see [`trim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TrimLevel {
    /// Memory of pictures and bodies that nobody has, and what is kept of transfers that have ended.
    Unused,
    /// Idle connections: the next requests make new ones.
    Connections,
    /// What caches have in memory. What is on disk stays.
    Caches,
}

/// Gives memory back, when the system is short of it, for all downloaders and caches of the process: how many bytes. No
/// download is disturbed. What somebody still has leaves the caches and is not counted: its memory goes with the last
/// reference. Nor is what a downloader's own thread gives up a moment later, such as connections.
///
/// ```
/// let bytes = imgdl::trim(imgdl::TrimLevel::Connections);
/// # let _ = bytes;
/// ```
pub fn trim(level: TrimLevel) -> u64 {
    let level = match level {
        TrimLevel::Unused => sys::IMGDL_TRIM_UNUSED,
        TrimLevel::Connections => sys::IMGDL_TRIM_CONNECTIONS,
        TrimLevel::Caches => sys::IMGDL_TRIM_CACHES,
    };
    // SAFETY: takes a number.
    unsafe { sys::imgdl_trim(level) }
}
