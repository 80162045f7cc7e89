//! Codecs of yours.

use std::fmt;
use std::mem;
use std::os::raw::c_void;
use std::ptr::{self, NonNull};

use imgdl_sys as sys;

use crate::convert::{check, lent_bytes};
use crate::error::{Code, Result};
use crate::format::{Colour, ImageInfo, PixelFormat};
use crate::guard::{self, contained};
use crate::image::Image;

/// A codec: see [`register_coder`]. It may be asked on several threads at the same time.
///
/// ```
/// use imgdl::{Code, Coder, CoderOptions, Image, ImageInfo, PictureDecoder, PixelFormat};
///
/// /// One byte of gray for each of 16 × 16 pixels, after "GRAY".
/// struct Gray;
/// struct GrayDecoder(Vec<u8>);
///
/// impl Coder for Gray {
///     fn can_decode(&self, prefix: &[u8]) -> Option<bool> {
///         if prefix.len() < 4 { None } else { Some(prefix.starts_with(b"GRAY")) }
///     }
///     fn decoder(&self, _options: &CoderOptions) -> Box<dyn PictureDecoder> {
///         Box::new(GrayDecoder(Vec::new()))
///     }
/// }
///
/// impl PictureDecoder for GrayDecoder {
///     fn feed(&mut self, bytes: &[u8]) -> Result<(), Code> {
///         self.0.extend_from_slice(bytes);
///         Ok(())
///     }
///     fn info(&mut self) -> Result<Option<ImageInfo>, Code> {
///         Ok(Some(ImageInfo::new(16, 16)))
///     }
///     fn finish(&mut self) -> Result<Image, Code> {
///         let gray = self.0.get(4..260).ok_or(Code::TRUNCATED)?;
///         let pixels: Vec<u8> = gray.iter().flat_map(|&value| [value, value, value, 255]).collect();
///         Image::from_pixels(16, 16, PixelFormat::Rgba8, &pixels, 64).map_err(|error| error.code())
///     }
/// }
///
/// # fn main() -> Result<(), imgdl::Error> {
/// let gray = imgdl::register_coder(Gray)?;
/// let file = [&b"GRAY"[..], &[128; 256]].concat();
/// let image = imgdl::decode(&file, &imgdl::DecodeOptions::new())?;
/// assert_eq!(image.pixels()[..4], [128, 128, 128, 255]);
/// drop(gray);
/// # Ok(())
/// # }
/// ```
pub trait Coder: Send + Sync + 'static {
    /// Whether it can decode what begins so; None if more bytes are needed to tell. The first 64 bytes, or fewer, must
    /// be enough.
    fn can_decode(&self, prefix: &[u8]) -> Option<bool>;

    /// Begins a picture.
    fn decoder(&self, options: &CoderOptions) -> Box<dyn PictureDecoder>;
}

/// One picture that a [`Coder`] decodes; used by one thread at a time. An error stays: after one only `partial` is
/// called, to salvage. A panic is [`Code::INTERNAL`], and nothing is called after it.
pub trait PictureDecoder: Send + 'static {
    /// The next bytes. Missing ones are no error.
    fn feed(&mut self, bytes: &[u8]) -> std::result::Result<(), Code>;

    /// What the header tells; None while it is unknown. An orientation other than 1 says that the images are as stored,
    /// and the library turns them; width and height are of the turned picture. The format is not read.
    fn info(&mut self) -> std::result::Result<Option<ImageInfo>, Code>;

    /// The picture so far; None for nothing new.
    fn partial(&mut self) -> std::result::Result<Option<Image>, Code> {
        Ok(None)
    }

    /// No more bytes will come: the whole picture. Options that it does not obey (size, orientation, pixel format) the
    /// library applies afterwards.
    fn finish(&mut self) -> std::result::Result<Image, Code>;
}

/// What a caller wants of a picture; a [`Coder`] need not obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CoderOptions {
    /// How pixels are to lie in memory.
    pub pixel_format: PixelFormat,
    /// The box that the picture is to fit into; 0: that side is free.
    pub target_width: u32,
    /// Likewise.
    pub target_height: u32,
    /// Width × height at most.
    pub max_pixels: u64,
    /// Frames at most.
    pub max_frames: u32,
    /// Whether the picture is to be left as stored.
    pub ignores_orientation: bool,
    /// Whether every frame of an animation is wanted.
    pub all_frames: bool,
    /// What is to become of colours.
    pub colour: Colour,
    /// Of width and of height, as stored; 0: `max_pixels` alone.
    pub max_side: u32,
    /// Of a progressive picture.
    pub max_scans: u32,
    /// Of all frames; 0: as many as `max_pixels`.
    pub max_animation_pixels: u64,
    /// EXIF and profile that are held; 0: what is too long is passed over.
    pub max_metadata_bytes: u64,
    /// [`u64::MAX`]: no limit.
    pub max_memory_bytes: u64,
    /// Milliseconds of CPU time; [`u32::MAX`]: no limit.
    pub max_decode_ms: u32,
}

impl CoderOptions {
    fn from_raw(raw: &sys::imgdl_decode_options) -> CoderOptions {
        CoderOptions {
            pixel_format: PixelFormat::from_raw(raw.pixel_format),
            target_width: raw.target_width,
            target_height: raw.target_height,
            max_pixels: raw.max_pixels,
            max_frames: raw.max_frames,
            ignores_orientation: raw.flags & sys::IMGDL_DECODE_IGNORE_ORIENTATION != 0,
            all_frames: raw.flags & sys::IMGDL_DECODE_ALL_FRAMES != 0,
            colour: Colour::from_raw(raw.colour),
            max_side: raw.max_side,
            max_scans: raw.max_scans,
            max_animation_pixels: raw.max_animation_pixels,
            max_metadata_bytes: raw.max_metadata_bytes,
            max_memory_bytes: raw.max_memory_bytes,
            max_decode_ms: raw.max_decode_ms,
        }
    }
}

/// A codec that is registered, until this is dropped; what decodes with it goes on. To name it:
/// [`DecodeOptions::coder`](crate::DecodeOptions::coder).
#[must_use = "the coder is taken out when this is dropped"]
pub struct RegisteredCoder(NonNull<sys::imgdl_coder>);

// SAFETY: "Every function may be called from any thread"; the coder behind it is Send and Sync.
unsafe impl Send for RegisteredCoder {}
// SAFETY: as for Send.
unsafe impl Sync for RegisteredCoder {}

impl RegisteredCoder {
    pub(crate) fn raw(&self) -> *mut sys::imgdl_coder {
        self.0.as_ptr()
    }
}

impl Drop for RegisteredCoder {
    fn drop(&mut self) {
        // SAFETY: the one reference that this value holds.
        unsafe { sys::imgdl_coder_release(self.raw()) }
    }
}

impl fmt::Debug for RegisteredCoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegisteredCoder")
    }
}

type BoxedCoder = Box<dyn Coder>;

/// Registers a codec for every downloader and [`decode`](crate::decode()) of the process. The newest that can decode
/// something is asked first, and all of them before the library's own. The coder is dropped when it was taken out and
/// nothing decodes with it.
pub fn register_coder(coder: impl Coder) -> Result<RegisteredCoder> {
    let table = sys::imgdl_coder_table {
        struct_size: mem::size_of::<sys::imgdl_coder_table>() as u32,
        reserved: 0,
        can_decode: Some(can_decode),
        create: Some(create),
        feed: Some(feed),
        info: Some(info),
        partial: Some(partial),
        finish: Some(finish),
        destroy: Some(guard::dispose::<Running>),
        user_data: guard::into_user_data::<BoxedCoder>(Box::new(coder)),
        destructor: Some(guard::dispose::<BoxedCoder>),
    };
    let mut registered = ptr::null_mut();
    // SAFETY: the table is read before the library returns.
    let result = check(unsafe { sys::imgdl_coder_register(&table, &mut registered) });
    if result.is_err() {
        // SAFETY: "not when an error is returned": it is still ours.
        unsafe { guard::dispose::<BoxedCoder>(table.user_data) };
    }
    result.map(|()| RegisteredCoder(NonNull::new(registered).expect("a coder was given")))
}

/// What a decoder's pointer points to: None after a panic.
struct Running(Option<Box<dyn PictureDecoder>>);

impl Running {
    /// # Safety
    /// `decoder` was made by `create` and not yet disposed of; "one decoder is used by one thread at a time".
    unsafe fn run(
        decoder: *mut c_void,
        call: impl FnOnce(&mut dyn PictureDecoder) -> std::result::Result<(), Code>,
    ) -> sys::imgdl_status {
        // SAFETY: as above.
        let running = unsafe { &mut *decoder.cast::<Running>() };
        if let Some(mut decoder) = running.0.take() {
            // One that panics is dropped in here, too.
            let done = contained(move || {
                let result = call(&mut *decoder);
                (decoder, result)
            });
            if let Some((decoder, result)) = done {
                running.0 = Some(decoder);
                return result.err().map_or(sys::IMGDL_OK, Code::number);
            }
        }
        sys::IMGDL_ERROR_INTERNAL
    }
}

// SAFETY of all of these: called by the library as the header says, with what `register_coder` and `create` made.

unsafe extern "C" fn can_decode(prefix: *const c_void, length: usize, user_data: *mut c_void) -> i32 {
    // SAFETY: as above; the bytes are valid during the call.
    let answer = contained(|| unsafe { (*user_data.cast::<BoxedCoder>()).can_decode(lent_bytes(prefix, length)) });
    match answer {
        Some(None) => -1,
        Some(Some(true)) => 1,
        Some(Some(false)) | None => 0,
    }
}

unsafe extern "C" fn create(options: *const sys::imgdl_decode_options, user_data: *mut c_void) -> *mut c_void {
    // SAFETY: as above; the struct is valid during the call.
    let decoder =
        contained(|| unsafe { (*user_data.cast::<BoxedCoder>()).decoder(&CoderOptions::from_raw(&*options)) });
    guard::into_user_data(Running(decoder))
}

unsafe extern "C" fn feed(decoder: *mut c_void, bytes: *const c_void, length: usize) -> sys::imgdl_status {
    // SAFETY: as above; the bytes are valid during the call.
    unsafe { Running::run(decoder, |decoder| decoder.feed(lent_bytes(bytes, length))) }
}

unsafe extern "C" fn info(decoder: *mut c_void, info: *mut sys::imgdl_image_info) -> sys::imgdl_status {
    // SAFETY: as above; the struct is valid during the call, and of the size of this version.
    unsafe {
        Running::run(decoder, |decoder| decoder.info()?.map(|known| known.write(&mut *info)).ok_or(Code::NOT_READY))
    }
}

unsafe extern "C" fn partial(decoder: *mut c_void, image: *mut *mut sys::imgdl_image) -> sys::imgdl_status {
    // SAFETY: as above; "with a reference that is the library's then".
    unsafe {
        Running::run(decoder, |decoder| {
            decoder.partial()?.map(|partial| *image = partial.into_raw()).ok_or(Code::NOT_READY)
        })
    }
}

unsafe extern "C" fn finish(decoder: *mut c_void, image: *mut *mut sys::imgdl_image) -> sys::imgdl_status {
    // SAFETY: as above; "with a reference that is the library's then".
    unsafe { Running::run(decoder, |decoder| decoder.finish().map(|whole| *image = whole.into_raw())) }
}
