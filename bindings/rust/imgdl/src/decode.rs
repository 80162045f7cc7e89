//! Pictures in memory, whole or in pieces.

use std::ptr::{self, NonNull};

use imgdl_sys as sys;

use crate::coder::RegisteredCoder;
use crate::convert::{check, filled};
use crate::error::{Code, Result};
use crate::format::{Colour, Format, ImageInfo, PixelFormat};
use crate::image::Image;
use crate::memory::{Allocator, AllocatorTicket};

/// How to decode.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodeOptions {
    pixel_format: Option<PixelFormat>,
    flags: sys::imgdl_decode_flags,
    max_pixels: u64,
    target: (u32, u32),
    max_output_bytes: u64,
    max_frames: u32,
    format_hint: Option<Format>,
    coder: Option<CoderTicket>,
    max_side: u32,
    max_scans: u32,
    max_animation_pixels: u64,
    max_metadata_bytes: u64,
    max_memory_bytes: u64,
    max_decode_ms: u32,
    colour: Option<Colour>,
    allocator: Option<AllocatorTicket>,
    good_enough_scan: u32,
}

/// "The pointer is a ticket that is looked up, never an address": when its coder is gone that is an error, never
/// damage.
#[derive(Clone, Copy, Debug)]
struct CoderTicket(*mut sys::imgdl_coder);

// SAFETY: only a number here; "Every function may be called from any thread".
unsafe impl Send for CoderTicket {}
// SAFETY: as for Send.
unsafe impl Sync for CoderTicket {}

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
        self.with(sys::IMGDL_DECODE_IGNORE_ORIENTATION)
    }

    /// A cut or broken picture is still an error, but [the pixels that could be had](crate::Error::image) come with it.
    pub fn salvage(self) -> DecodeOptions {
        self.with(sys::IMGDL_DECODE_SALVAGE)
    }

    /// Refuses pictures with more pixels, before anything is allocated for them. 0 is the default.
    pub fn max_pixels(self, max_pixels: u64) -> DecodeOptions {
        DecodeOptions { max_pixels, ..self }
    }

    /// Decodes to a size that fits into this box, never larger than stored, and keeps the picture's proportions; 0:
    /// that side is free. At most 1 048 576.
    ///
    /// ```
    /// let thumbnail = imgdl::DecodeOptions::new().fit(400, 300);
    /// let stretched = imgdl::DecodeOptions::new().fit(400, 300).stretch();
    /// ```
    pub fn fit(self, width: u32, height: u32) -> DecodeOptions {
        DecodeOptions { target: (width, height), ..self }
    }

    /// Each side as long as that of the box of [`fit`](DecodeOptions::fit), whatever the picture's own proportions, if
    /// both sides of the box are given. A side that is shorter in the file stays as it is, since nothing is made larger:
    /// for arrays of one shape, pad or resize those afterwards.
    pub fn stretch(self) -> DecodeOptions {
        self.with(sys::IMGDL_DECODE_STRETCH)
    }

    /// Large pictures come smaller, so that all decoded frames together fit into so many bytes; 0 is the default of 60
    /// MiB. It takes the place of the box: [`fit`](DecodeOptions::fit) and [`stretch`](DecodeOptions::stretch) are ignored
    /// with it.
    pub fn scale_down(self, max_output_bytes: u64) -> DecodeOptions {
        DecodeOptions { max_output_bytes, ..self }.with(sys::IMGDL_DECODE_SCALE_DOWN)
    }

    /// Decodes every frame of an animation, not the first alone.
    pub fn all_frames(self) -> DecodeOptions {
        self.with(sys::IMGDL_DECODE_ALL_FRAMES)
    }

    /// A picture of one frame is an error, [`Code::BAD_IMAGE_DATA`].
    pub fn require_animation(self) -> DecodeOptions {
        self.with(sys::IMGDL_DECODE_REQUIRE_ANIMATION)
    }

    /// Refuses animations with more frames, [`Code::FRAME_LIMIT`]. 0 is the default of 1000.
    pub fn max_frames(self, max_frames: u32) -> DecodeOptions {
        DecodeOptions { max_frames, ..self }
    }

    /// For data whose beginning does not tell what it is.
    pub fn format_hint(self, format: Format) -> DecodeOptions {
        DecodeOptions { format_hint: Some(format), ..self }
    }

    /// Decodes with this codec of yours and no other. It does not keep the codec: when that is gone decoding is
    /// refused.
    pub fn coder(self, coder: &RegisteredCoder) -> DecodeOptions {
        DecodeOptions { coder: Some(CoderTicket(coder.raw())), ..self }
    }

    /// Refuses pictures of which a side, as stored, has more pixels, [`Code::SIZE_LIMIT`]. 0: `max_pixels` alone.
    pub fn max_side(self, max_side: u32) -> DecodeOptions {
        DecodeOptions { max_side, ..self }
    }

    /// Refuses progressive JPEGs with more scans, [`Code::SCAN_LIMIT`]; what came before can be salvaged. 0 is the default
    /// of 500.
    pub fn max_scans(self, max_scans: u32) -> DecodeOptions {
        DecodeOptions { max_scans, ..self }
    }

    /// Of all frames that are decoded, [`Code::ANIMATION_LIMIT`]. 0: as many as `max_pixels`.
    pub fn max_animation_pixels(self, max_animation_pixels: u64) -> DecodeOptions {
        DecodeOptions { max_animation_pixels, ..self }
    }

    /// EXIF and ICC profile together that are held, a PNG's profile as it is unpacked, [`Code::METADATA_LIMIT`]. 0: what is
    /// longer than 16 MiB is passed over, and no error. EXIF of more than 1 MiB is passed over and not judged.
    pub fn max_metadata_bytes(self, max_metadata_bytes: u64) -> DecodeOptions {
        DecodeOptions { max_metadata_bytes, ..self }
    }

    /// Canvases, the codec's own memory, EXIF and profile of this picture, estimated before anything is allocated,
    /// [`Code::MEMORY_LIMIT`]. 0: 1 GiB; [`u64::MAX`]: any.
    pub fn max_memory_bytes(self, max_memory_bytes: u64) -> DecodeOptions {
        DecodeOptions { max_memory_bytes, ..self }
    }

    /// Milliseconds of CPU time, [`Code::DECODE_TIMEOUT`]. 0: 10,000; [`u32::MAX`]: any.
    pub fn max_decode_ms(self, max_decode_ms: u32) -> DecodeOptions {
        DecodeOptions { max_decode_ms, ..self }
    }

    /// What becomes of colours. [`Image::colour_notes`](crate::Image::colour_notes) tells what did.
    pub fn colour(self, colour: Colour) -> DecodeOptions {
        DecodeOptions { colour: Some(colour), ..self }
    }

    /// The first partial image of a JPEG is the thumbnail in its EXIF, where there is one, made as large as the picture.
    pub fn thumbnail_first(self) -> DecodeOptions {
        self.with(sys::IMGDL_DECODE_THUMBNAIL_FIRST)
    }

    /// The scan of a progressive JPEG at which a partial image [is good enough](crate::Image::is_good_enough). 0: the one
    /// after which each component has all of its pixels in some precision.
    pub fn good_enough_scan(self, good_enough_scan: u32) -> DecodeOptions {
        DecodeOptions { good_enough_scan, ..self }
    }

    /// Decodes into memory of yours. Requests whose options are all the same, this one too, share canvases. See
    /// [`decode_into`](crate::decode_into) for a slice.
    pub fn allocator<A: Allocator>(self, allocator: &'static A) -> DecodeOptions {
        DecodeOptions { allocator: Some(AllocatorTicket::new(allocator)), ..self }
    }

    fn with(self, flags: sys::imgdl_decode_flags) -> DecodeOptions {
        DecodeOptions { flags: self.flags | flags, ..self }
    }

    pub(crate) fn to_raw(self) -> sys::imgdl_decode_options {
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_decode_options_init) };
        raw.pixel_format = self.pixel_format.map_or(sys::IMGDL_PIXEL_FORMAT_DEFAULT, PixelFormat::raw);
        raw.flags = self.flags;
        raw.max_pixels = self.max_pixels;
        (raw.target_width, raw.target_height) = self.target;
        raw.max_output_bytes = self.max_output_bytes;
        raw.max_frames = self.max_frames;
        raw.format_hint = self.format_hint.map_or(sys::IMGDL_FORMAT_UNKNOWN, Format::raw);
        raw.coder = self.coder.map_or(ptr::null_mut(), |coder| coder.0);
        raw.max_side = self.max_side;
        raw.max_scans = self.max_scans;
        raw.max_animation_pixels = self.max_animation_pixels;
        raw.max_metadata_bytes = self.max_metadata_bytes;
        raw.max_memory_bytes = self.max_memory_bytes;
        raw.max_decode_ms = self.max_decode_ms;
        raw.colour = self.colour.map_or(sys::IMGDL_COLOUR_AS_STORED, Colour::raw);
        raw.good_enough_scan = self.good_enough_scan;
        if let Some(allocator) = self.allocator {
            allocator.write(&mut raw);
        }
        raw
    }
}

/// Decodes a whole picture in memory.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// use imgdl::{DecodeOptions, PixelFormat};
/// # fn main() -> Result<(), imgdl::Error> {
/// # let _folder = Folder::with(&["picture.webp"]);
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
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// use std::io::Read;
/// # fn main() -> Result<(), imgdl::Error> {
/// # let _folder = Folder::with(&["picture.jpg"]);
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
///
/// It may move to another thread, and is not `Sync`: pieces come one after the other.
///
/// ```compile_fail,E0277
/// fn needs_sync<T: Sync>() {}
/// needs_sync::<imgdl::Decoder>();
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

    /// The next bytes, decoded as far as they reach. Missing bytes are no error. What is broken is, and
    /// each later call of this and of `finish` returns it again.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<()> {
        // SAFETY: a living handle; "read before return".
        check(unsafe { sys::imgdl_decoder_feed(self.0.as_ptr(), bytes.as_ptr().cast(), bytes.len()) })
    }

    /// What the header of the picture tells; None while it is not complete.
    pub fn info(&self) -> Result<Option<ImageInfo>> {
        // SAFETY: its own function; all zeros is a valid value.
        let mut raw = unsafe { filled(sys::imgdl_image_info_init) };
        // SAFETY: a living handle, an initialised struct.
        match unsafe { sys::imgdl_decoder_info(self.0.as_ptr(), &mut raw) } {
            sys::IMGDL_ERROR_NOT_READY => Ok(None),
            status => check(status).map(|()| Some(ImageInfo::from_raw(&raw))),
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
pub(crate) fn decoded(status: sys::imgdl_status, image: *mut sys::imgdl_image) -> Result<Image> {
    let result = check(status);
    let image = Image::from_owned(image);
    match result {
        Ok(()) => image.ok_or_else(|| crate::Error::new(Code::INTERNAL, "no image came with success".into())),
        Err(error) => Err(error.with_image(image)),
    }
}
