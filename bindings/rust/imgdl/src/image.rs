//! Pixels and bodies: immutable, shared, reference-counted.

use std::fmt;
use std::iter::FusedIterator;
use std::mem::{self, ManuallyDrop};
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::slice;
use std::time::Duration;

use imgdl_sys as sys;

use crate::convert::check;
use crate::error::{Code, Error, Result};

/// What a file is, by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// None of those below.
    Unknown,
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// WebP.
    WebP,
    /// GIF.
    Gif,
    /// Decoded by a [`Coder`](crate::Coder) of yours.
    Other,
}

impl Format {
    pub(crate) fn from_raw(raw: sys::imgdl_format) -> Format {
        match raw {
            sys::IMGDL_FORMAT_JPEG => Format::Jpeg,
            sys::IMGDL_FORMAT_PNG => Format::Png,
            sys::IMGDL_FORMAT_WEBP => Format::WebP,
            sys::IMGDL_FORMAT_GIF => Format::Gif,
            sys::IMGDL_FORMAT_OTHER => Format::Other,
            _ => Format::Unknown,
        }
    }

    pub(crate) fn raw(self) -> sys::imgdl_format {
        match self {
            Format::Unknown => sys::IMGDL_FORMAT_UNKNOWN,
            Format::Jpeg => sys::IMGDL_FORMAT_JPEG,
            Format::Png => sys::IMGDL_FORMAT_PNG,
            Format::WebP => sys::IMGDL_FORMAT_WEBP,
            Format::Gif => sys::IMGDL_FORMAT_GIF,
            Format::Other => sys::IMGDL_FORMAT_OTHER,
        }
    }
}

/// How a pixel lies in memory, byte after byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PixelFormat {
    /// Red, green, blue, alpha; straight alpha. The default.
    Rgba8,
    /// Red, green, blue, alpha; premultiplied.
    Rgba8Premultiplied,
    /// Blue, green, red, alpha; straight alpha.
    Bgra8,
    /// Blue, green, red, alpha; premultiplied.
    Bgra8Premultiplied,
}

impl PixelFormat {
    pub(crate) fn raw(self) -> sys::imgdl_pixel_format {
        match self {
            PixelFormat::Rgba8 => sys::IMGDL_PIXEL_FORMAT_RGBA8,
            PixelFormat::Rgba8Premultiplied => sys::IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED,
            PixelFormat::Bgra8 => sys::IMGDL_PIXEL_FORMAT_BGRA8,
            PixelFormat::Bgra8Premultiplied => sys::IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED,
        }
    }

    /// The library gives no image in a format that was not asked for.
    pub(crate) fn from_raw(raw: sys::imgdl_pixel_format) -> PixelFormat {
        match raw {
            sys::IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED => PixelFormat::Rgba8Premultiplied,
            sys::IMGDL_PIXEL_FORMAT_BGRA8 => PixelFormat::Bgra8,
            sys::IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED => PixelFormat::Bgra8Premultiplied,
            _ => PixelFormat::Rgba8,
        }
    }
}

/// A part of a picture, in pixels from its upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rectangle {
    /// From the left.
    pub x: u32,
    /// From the top.
    pub y: u32,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

/// What the header of a picture tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageInfo {
    /// What the file is.
    pub format: Format,
    /// In pixels, orientation applied.
    pub width: u32,
    /// In pixels, orientation applied.
    pub height: u32,
    /// The EXIF orientation as stored, 1 to 8.
    pub orientation: u32,
    /// Frames in the file, once that is known.
    pub frame_count: Option<u32>,
    /// Whether pixels may be transparent.
    pub has_alpha: bool,
    /// Whether partial images cover the whole canvas.
    pub is_progressive: bool,
}

impl ImageInfo {
    /// For a [`Coder`](crate::Coder): upright, of one frame, without transparency, not progressive. The other fields are
    /// public.
    pub fn new(width: u32, height: u32) -> ImageInfo {
        ImageInfo {
            format: Format::Other,
            width,
            height,
            orientation: 1,
            frame_count: Some(1),
            has_alpha: false,
            is_progressive: false,
        }
    }

    /// Leaves the format, which is not read.
    pub(crate) fn write(&self, raw: &mut sys::imgdl_image_info) {
        raw.width = self.width;
        raw.height = self.height;
        raw.orientation = self.orientation;
        raw.frame_count = self.frame_count.unwrap_or(0);
        raw.has_alpha = self.has_alpha.into();
        raw.is_progressive = self.is_progressive.into();
    }

    pub(crate) fn from_raw(raw: &sys::imgdl_image_info) -> ImageInfo {
        ImageInfo {
            format: Format::from_raw(raw.format),
            width: raw.width,
            height: raw.height,
            orientation: raw.orientation,
            frame_count: Some(raw.frame_count).filter(|&count| count > 0),
            has_alpha: raw.has_alpha != 0,
            is_progressive: raw.is_progressive != 0,
        }
    }
}

/// A picture. Cloning it copies no pixel; it outlives the downloader or decoder that it came from.
///
/// ```no_run
/// # fn main() -> Result<(), imgdl::Error> {
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

    /// An image of pixels of yours, which are copied: what a [`Coder`](crate::Coder) gives. A row has `stride` bytes, at
    /// least 4 × `width`.
    ///
    /// ```no_run
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

    /// Frames in the file; the image's own pixels are the first's.
    pub fn frame_count(&self) -> u32 {
        // SAFETY: a living handle.
        unsafe { sys::imgdl_image_frame_count(self.raw()) }
    }

    /// One frame as the viewer sees it (blended, disposed), as an image of its own. Frame 0 is always there; the others with
    /// [`DecodeOptions::all_frames`](crate::DecodeOptions::all_frames), else [`Code::NOT_READY`].
    pub fn frame(&self, index: u32) -> Result<Image> {
        let mut frame = ptr::null_mut();
        // SAFETY: a living handle.
        check(unsafe { sys::imgdl_image_frame(self.raw(), index, &mut frame) })?;
        Image::from_owned(frame).ok_or_else(|| Error::new(Code::INTERNAL, "no frame came with success".into()))
    }

    /// The frames that were decoded, from the first on.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), imgdl::Error> {
    /// let options = imgdl::DecodeOptions::new().all_frames();
    /// let image = imgdl::decode(&std::fs::read("animated.gif").unwrap(), &options)?;
    /// for frame in image.frames() {
    ///     println!("{:?} for {:?}", frame.image, frame.duration);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn frames(&self) -> Frames<'_> {
        Frames { image: self, next: 0, count: self.frame_count() }
    }

    /// How long a frame is shown; files that say less than 11 ms mean 100. Zero for still pictures and frames that were not
    /// decoded.
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

    /// Pixels of the picture for each pixel of the layout: what the request said, or its URL's file name (photo@2x.png). 1
    /// for images that no request made.
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

    /// The part that holds pixels: of a complete image, all of it.
    pub fn ready(&self) -> Rectangle {
        // SAFETY: a living handle.
        let raw = unsafe { sys::imgdl_image_ready(self.raw()) };
        Rectangle { x: raw.x, y: raw.y, width: raw.width, height: raw.height }
    }

    /// The rows that are [ready](Image::ready), one after the other with [`stride`](Image::stride) bytes each: the whole
    /// picture if it is complete. Nothing is copied.
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
        Rows { image: self, ready: self.ready(), stride: self.stride(), next: 0 }
    }

    /// A copy of the whole canvas, [`stride`](Image::stride) × [`height`](Image::height) bytes; what is not
    /// [ready](Image::ready) is transparent.
    pub fn to_vec(&self) -> Vec<u8> {
        let (ready, stride) = (self.ready(), self.stride());
        let mut canvas = vec![0; stride * self.height() as usize];
        for (index, row) in self.rows().enumerate() {
            let start = (ready.y as usize + index) * stride + ready.x as usize * 4;
            canvas[start..start + row.len()].copy_from_slice(row);
        }
        canvas
    }

    /// # Safety
    /// The range is inside of stride × height bytes and of what is ready.
    unsafe fn slice(&self, start: usize, length: usize) -> &[u8] {
        // SAFETY: a living handle.
        let pixels = unsafe { sys::imgdl_image_pixels(self.raw()) }.cast::<u8>();
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

/// The rows of an image that are ready: see [`Image::rows`].
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    image: &'a Image,
    ready: Rectangle,
    stride: usize,
    next: u32,
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.next == self.ready.height {
            return None;
        }
        let row = self.ready.y as usize + self.next as usize;
        self.next += 1;
        // SAFETY: inside of `ready`: "Copy or upload this rectangle only".
        Some(unsafe { self.image.slice(row * self.stride + self.ready.x as usize * 4, self.ready.width as usize * 4) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.ready.height - self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Rows<'_> {}

/// One frame of an animation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Frame {
    /// As the viewer sees it.
    pub image: Image,
    /// How long it is shown.
    pub duration: Duration,
}

/// The frames of an image: see [`Image::frames`].
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    image: &'a Image,
    next: u32,
    count: u32,
}

impl Iterator for Frames<'_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        if self.next == self.count {
            return None;
        }
        let index = self.next;
        match self.image.frame(index) {
            Ok(image) => {
                self.next += 1;
                Some(Frame { image, duration: self.image.frame_duration(index) })
            }
            // None after it was decoded either.
            Err(_) => {
                self.next = self.count;
                None
            }
        }
    }
}

impl FusedIterator for Frames<'_> {}

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
