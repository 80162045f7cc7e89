//! Pixels: immutable, shared, reference-counted.

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ptr::{self, NonNull};
use std::slice;
use std::time::Duration;

use imgdl_sys as sys;

use crate::convert::{check, lent_bytes};
use crate::error::{Code, Error, Result};
use crate::format::{ColourNotes, Format, PixelFormat, Rectangle};
use crate::parts::{Frames, Rows};

/// A picture. Cloning it copies no pixel; it outlives the downloader or decoder that it came from.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// # fn main() -> Result<(), imgdl::Error> {
/// # let _folder = Folder::with(&["picture.png"]);
/// let image = imgdl::decode(&std::fs::read("picture.png").unwrap(), &imgdl::DecodeOptions::new())?;
/// for row in image.rows() {
///     assert_eq!(row.len(), 4 * image.width() as usize);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Image(NonNull<sys::imgdl_image>);

// SAFETY: "Every function may be called from any thread"; "pixels; immutable, shared, reference-counted". The part of a
// partial image that "may be written while you look" is outside of `ready`, and no safe function reads there.
unsafe impl Send for Image {}
// SAFETY: as for Send.
unsafe impl Sync for Image {}

impl Image {
    /// Takes over one reference; None for NULL.
    pub(crate) fn from_owned(raw: *mut sys::imgdl_image) -> Option<Image> {
        NonNull::new(raw).map(Image)
    }

    /// Takes a reference of its own; None for NULL.
    ///
    /// # Safety
    /// `raw` is NULL or valid during the call.
    pub(crate) unsafe fn from_borrowed(raw: *mut sys::imgdl_image) -> Option<Image> {
        // SAFETY: "Another reference, and the same handle; NULL for an invalid one".
        Image::from_owned(unsafe { sys::imgdl_image_retain(raw) })
    }

    /// Gives the one reference away.
    pub(crate) fn into_raw(self) -> *mut sys::imgdl_image {
        let raw = self.raw();
        mem::forget(self);
        raw
    }

    /// An image of pixels of yours, which are copied: what a [`Coder`](crate::Coder) gives. A row has `stride` bytes,
    /// at least `width` × [those of a pixel](PixelFormat::bytes_per_pixel).
    ///
    /// ```
    /// use imgdl::{Image, PixelFormat};
    /// # fn main() -> Result<(), imgdl::Error> {
    /// let red = Image::from_pixels(2, 1, PixelFormat::Rgba8, &[255, 0, 0, 255, 255, 0, 0, 255], 8)?;
    /// assert_eq!(red.rows().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_pixels(width: u32, height: u32, format: PixelFormat, pixels: &[u8], stride: usize) -> Result<Image> {
        let needed = stride.checked_mul(height as usize);
        if needed.map_or(true, |needed| needed > pixels.len()) {
            let message = format!("{} bytes are fewer than {stride} for each of {height} rows", pixels.len());
            return Err(Error::new(Code::INVALID_ARGUMENT, message));
        }
        let mut image = ptr::null_mut();
        // SAFETY: "Takes: stride × height bytes, copied": there are as many.
        check(unsafe {
            sys::imgdl_image_create(width, height, format.raw(), pixels.as_ptr().cast(), stride, &mut image)
        })?;
        Image::from_owned(image).ok_or_else(|| Error::new(Code::INTERNAL, "no image came with success".into()))
    }

    /// To be looked at while somebody else's reference lives.
    pub(crate) fn lend(raw: *mut sys::imgdl_image) -> Option<ManuallyDrop<Image>> {
        NonNull::new(raw).map(|raw| ManuallyDrop::new(Image(raw)))
    }

    fn raw(&self) -> *mut sys::imgdl_image {
        self.0.as_ptr()
    }

    /// In pixels, orientation applied.
    pub fn width(&self) -> u32 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_width(self.raw()) }
    }

    /// In pixels.
    pub fn height(&self) -> u32 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_height(self.raw()) }
    }

    /// Bytes from one row to the next.
    pub fn stride(&self) -> usize {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_stride(self.raw()) }
    }

    /// What the file is.
    pub fn format(&self) -> Format {
        // SAFETY: a living handle.
        Format::from_raw(unsafe { sys::imgdl_image_format(self.raw()) })
    }

    /// How its pixels lie in memory.
    pub fn pixel_format(&self) -> PixelFormat {
        // SAFETY: a living handle.
        PixelFormat::from_raw(unsafe { sys::imgdl_image_pixel_format(self.raw()) })
    }

    /// Frames in the file; the image's own pixels are the first's. Of a partial or salvaged image those that it
    /// holds, 1 at least.
    pub fn frame_count(&self) -> u32 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_frame_count(self.raw()) }
    }

    /// One frame as the viewer sees it (blended, disposed), as an image of its own. Frame 0 is always there; the others
    /// with [`DecodeOptions::all_frames`](crate::DecodeOptions::all_frames), else [`Code::NOT_READY`].
    pub fn frame(&self, index: u32) -> Result<Image> {
        let mut frame = ptr::null_mut();
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_image_frame(self.raw(), index, &mut frame) })?;
        Image::from_owned(frame).ok_or_else(|| Error::new(Code::INTERNAL, "no frame came with success".into()))
    }

    /// The frames that were decoded, from the first on.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
    /// # fn main() -> Result<(), imgdl::Error> {
    /// # let _folder = Folder::with(&["animated.gif"]);
    /// let options = imgdl::DecodeOptions::new().all_frames();
    /// let image = imgdl::decode(&std::fs::read("animated.gif").unwrap(), &options)?;
    /// for frame in image.frames() {
    ///     println!("{:?} for {:?}", frame.image, frame.duration);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn frames(&self) -> Frames<'_> {
        Frames::new(self)
    }

    /// How long a frame is shown; files that say less than 11 ms mean 100. Zero for still pictures and frames that were
    /// not decoded.
    pub fn frame_duration(&self, index: u32) -> Duration {
        // SAFETY: a living handle.
        Duration::from_millis(unsafe { sys::imgdl_image_frame_duration_ms(self.raw(), index) }.into())
    }

    /// How long the animation takes to play once, of the frames that were decoded. Zero for still pictures.
    pub fn duration(&self) -> Duration {
        (0..self.frame_count()).map(|index| self.frame_duration(index)).sum()
    }

    /// How often the animation plays; 0 is for ever, 1 for still pictures.
    pub fn loop_count(&self) -> u32 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_loop_count(self.raw()) }
    }

    /// Pixels of the picture for each pixel of the layout: what the request said, or its URL's file name
    /// (photo@2x.png). 1 for images that no request made.
    pub fn scale_factor(&self) -> f64 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_scale_factor(self.raw()) }
    }

    /// The EXIF orientation as stored in the file, 1 to 8. The pixels are turned already.
    pub fn orientation(&self) -> u32 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_orientation(self.raw()) }
    }

    /// Whether the picture is whole; not if it is a partial or a salvaged one.
    pub fn is_complete(&self) -> bool {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_is_complete(self.raw()) != 0 }
    }

    /// Which pass over the picture this is: the scan of a progressive JPEG, 1 otherwise.
    pub fn pass(&self) -> u32 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_pass(self.raw()) }
    }

    /// Whether all of the picture is there, but what marks the end of its file is missing or damaged.
    pub fn has_incomplete_end(&self) -> bool {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_notes(self.raw()) & sys::IMGDL_IMAGE_INCOMPLETE_END != 0 }
    }

    /// Whether it can be shown for a while: it is whole, or at the scan that
    /// [`DecodeOptions::good_enough_scan`](crate::DecodeOptions::good_enough_scan) names.
    pub fn is_good_enough(&self) -> bool {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_is_good_enough(self.raw()) != 0 }
    }

    /// What the file says about its colours, and what was done about it.
    pub fn colour_notes(&self) -> ColourNotes {
        // SAFETY: a living handle.
        ColourNotes::from_raw(unsafe { sys::imgdl_image_colour_notes(self.raw()) })
    }

    /// The ICC profile in the file, also when the pixels were converted by it.
    pub fn icc_profile(&self) -> Option<&[u8]> {
        let mut length = 0;
        // SAFETY: a living handle; "Valid until the last reference to the image is released".
        let profile = unsafe { lent_bytes(sys::imgdl_image_icc_profile(self.raw(), &mut length), length) };
        Some(profile).filter(|profile| !profile.is_empty())
    }

    /// The part that holds pixels: of a complete image, all of it.
    pub fn ready(&self) -> Rectangle {
        // SAFETY: a living handle.
        let raw = unsafe { sys::imgdl_image_ready(self.raw()) };
        Rectangle { x: raw.x, y: raw.y, width: raw.width, height: raw.height }
    }

    /// The rows that are [ready](Image::ready), one after the other with [`stride`](Image::stride) bytes each: the
    /// whole picture if it is complete. Nothing is copied.
    ///
    /// Of a partial image only these rows may be looked at: the decoder may be writing the others at this moment. If
    /// what is ready is narrower than the picture, this is empty; [`rows`](Image::rows) works always.
    pub fn pixels(&self) -> &[u8] {
        let ready = self.ready();
        if ready.width != self.width() {
            return &[];
        }
        let stride = self.stride();
        // SAFETY: "stride × height bytes, first row first, valid until the last reference to the image is released";
        // what is ready is not written any more.
        unsafe { self.slice(ready.y as usize * stride, ready.height as usize * stride) }
    }

    /// The rows of the part that is [ready](Image::ready), from the top, without what lies beside it.
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(self)
    }

    /// A copy of the whole canvas, [`stride`](Image::stride) × [`height`](Image::height) bytes; what is not
    /// [ready](Image::ready) is transparent.
    pub fn to_vec(&self) -> Vec<u8> {
        let (ready, stride) = (self.ready(), self.stride());
        let pixel = self.pixel_format().bytes_per_pixel();
        let mut canvas = vec![0; stride * self.height() as usize];
        for (index, row) in self.rows().enumerate() {
            let start = (ready.y as usize + index) * stride + ready.x as usize * pixel;
            canvas[start..start + row.len()].copy_from_slice(row);
        }
        canvas
    }

    pub(crate) fn start(&self) -> *const u8 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_pixels(self.raw()) }.cast()
    }

    /// # Safety
    /// The range is inside of stride × height bytes and of what is ready.
    pub(crate) unsafe fn slice(&self, start: usize, length: usize) -> &[u8] {
        let pixels = self.start();
        if pixels.is_null() || length == 0 {
            return &[];
        }
        // SAFETY: as above; the reference that `self` holds keeps the memory.
        unsafe { slice::from_raw_parts(pixels.add(start), length) }
    }
}

impl Clone for Image {
    fn clone(&self) -> Image {
        // SAFETY: a living handle: the same one comes back, with one more reference.
        unsafe { sys::imgdl_image_retain(self.raw()) };
        Image(self.0)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: the one reference that this value holds.
        unsafe { sys::imgdl_image_release(self.raw()) }
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = f.debug_struct("Image");
        parts.field("format", &self.format()).field("width", &self.width()).field("height", &self.height());
        if !self.is_complete() {
            parts.field("ready", &self.ready());
        }
        parts.finish_non_exhaustive()
    }
}
