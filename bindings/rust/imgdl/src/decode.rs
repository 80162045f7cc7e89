//! Pictures in memory, whole or in pieces.

use std::mem;
use std::ptr::{self, NonNull};

use imgdl_sys as sys;

use crate::convert::check;
use crate::error::{Code, Result};
use crate::image::{Image, ImageInfo, PixelFormat};

/// How to decode.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodeOptions {
    pixel_format: Option<PixelFormat>,
    flags: sys::imgdl_decode_flags,
    max_pixels: u64,
}

impl DecodeOptions {
    /// RGBA8 with straight alpha, turned as its EXIF orientation says, at most 100 000 000 pixels.
    pub fn new() -> DecodeOptions {
        DecodeOptions::default()
    }

    /// How pixels are to lie in memory.
    pub fn pixel_format(self, format: PixelFormat) -> DecodeOptions {
        DecodeOptions { pixel_format: Some(format), ..self }
    }

    /// Leaves the picture as stored, whatever its EXIF orientation says.
    pub fn ignore_orientation(self) -> DecodeOptions {
        DecodeOptions { flags: self.flags | sys::IMGDL_DECODE_IGNORE_ORIENTATION, ..self }
    }

    /// A cut or broken picture is still an error, but [the pixels that could be had](crate::Error::image) come with it.
    pub fn salvage(self) -> DecodeOptions {
        DecodeOptions { flags: self.flags | sys::IMGDL_DECODE_SALVAGE, ..self }
    }

    /// Refuses pictures with more pixels, before anything is allocated for them. 0 is the default.
    pub fn max_pixels(self, max_pixels: u64) -> DecodeOptions {
        DecodeOptions { max_pixels, ..self }
    }

    pub(crate) fn to_raw(self) -> sys::imgdl_decode_options {
        let mut raw = mem::MaybeUninit::<sys::imgdl_decode_options>::zeroed();
        // SAFETY: as many bytes as it is told. All zeros is a valid value besides.
        let mut raw = unsafe {
            sys::imgdl_decode_options_init(raw.as_mut_ptr(), mem::size_of::<sys::imgdl_decode_options>());
            raw.assume_init()
        };
        raw.pixel_format = self.pixel_format.map_or(sys::IMGDL_PIXEL_FORMAT_DEFAULT, PixelFormat::raw);
        raw.flags = self.flags;
        raw.max_pixels = self.max_pixels;
        raw
    }
}

/// Decodes a whole picture in memory.
///
/// ```no_run
/// use imgdl::{DecodeOptions, PixelFormat};
/// # fn main() -> Result<(), imgdl::Error> {
/// let bytes = std::fs::read("picture.webp").unwrap();
/// let image = imgdl::decode(&bytes, &DecodeOptions::new().pixel_format(PixelFormat::Bgra8Premultiplied))?;
/// # Ok(())
/// # }
/// ```
pub fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Image> {
    let options = options.to_raw();
    let mut image = ptr::null_mut();
    // SAFETY: "length bytes, read before return".
    let status = unsafe { sys::imgdl_decode(bytes.as_ptr().cast(), bytes.len(), &options, &mut image) };
    decoded(status, image)
}

/// Decodes a picture that comes in pieces. Whatever the pieces, the result is that of [`decode`].
///
/// ```no_run
/// use std::io::Read;
/// # fn main() -> Result<(), imgdl::Error> {
/// let mut file = std::fs::File::open("picture.jpg").unwrap();
/// let mut decoder = imgdl::Decoder::new(&imgdl::DecodeOptions::new())?;
/// let mut buffer = [0; 4096];
/// loop {
///     let count = file.read(&mut buffer).unwrap();
///     if count == 0 {
///         break;
///     }
///     decoder.feed(&buffer[..count])?;
///     if let Some(partial) = decoder.partial()? {
///         println!("{} rows", partial.ready().height);
///     }
/// }
/// let image = decoder.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Decoder(NonNull<sys::imgdl_decoder>);

// SAFETY: "Threads: any; one at a time per decoder." For the second half it is not Sync.
unsafe impl Send for Decoder {}

impl Decoder {
    /// Begins a picture.
    pub fn new(options: &DecodeOptions) -> Result<Decoder> {
        let options = options.to_raw();
        let mut raw = ptr::null_mut();
        // SAFETY: both live during the call.
        check(unsafe { sys::imgdl_decoder_create(&options, &mut raw) })?;
        Ok(Decoder(NonNull::new(raw).expect("a decoder was given")))
    }

    /// The next bytes, decoded as far as they reach. Missing bytes are no error; what is broken is, and stays so.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<()> {
        // SAFETY: a living handle; "read before return".
        check(unsafe { sys::imgdl_decoder_feed(self.0.as_ptr(), bytes.as_ptr().cast(), bytes.len()) })
    }

    /// What the header of the picture tells; None while it is not complete.
    pub fn info(&self) -> Result<Option<ImageInfo>> {
        let mut raw = mem::MaybeUninit::<sys::imgdl_image_info>::zeroed();
        // SAFETY: as many bytes as it is told.
        unsafe { sys::imgdl_image_info_init(raw.as_mut_ptr(), mem::size_of::<sys::imgdl_image_info>()) };
        // SAFETY: a living handle, an initialised struct.
        match unsafe { sys::imgdl_decoder_info(self.0.as_ptr(), raw.as_mut_ptr()) } {
            sys::IMGDL_ERROR_NOT_READY => Ok(None),
            // SAFETY: initialised above.
            status => check(status).map(|()| Some(ImageInfo::from_raw(unsafe { raw.assume_init_ref() }))),
        }
    }

    /// The picture so far; None when there is nothing that the last call did not show.
    pub fn partial(&mut self) -> Result<Option<Image>> {
        let mut image = ptr::null_mut();
        // SAFETY: a living handle.
        match unsafe { sys::imgdl_decoder_partial(self.0.as_ptr(), &mut image) } {
            sys::IMGDL_ERROR_NOT_READY => Ok(None),
            status => check(status).map(|()| Image::from_owned(image)),
        }
    }

    /// No more bytes will come.
    pub fn finish(self) -> Result<Image> {
        let mut image = ptr::null_mut();
        // SAFETY: a living handle.
        let status = unsafe { sys::imgdl_decoder_finish(self.0.as_ptr(), &mut image) };
        decoded(status, image)
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: "Ends a decoder; images it gave live on."
        unsafe { sys::imgdl_decoder_destroy(self.0.as_ptr()) }
    }
}

/// A salvaged image goes with the error.
fn decoded(status: sys::imgdl_status, image: *mut sys::imgdl_image) -> Result<Image> {
    let result = check(status);
    let image = Image::from_owned(image);
    match result {
        Ok(()) => image.ok_or_else(|| crate::Error::new(Code::INTERNAL, "no image came with success".into())),
        Err(error) => Err(error.with_image(image)),
    }
}
