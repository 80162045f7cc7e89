//! What a picture is, and how its pixels lie in memory.

use imgdl_sys as sys;

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
    /// Red, green, blue in three bytes; alpha is left out, and the colours are as if it were straight.
    Rgb8,
    /// Red, green, blue, alpha in two bytes each, as this machine has numbers; straight alpha. A PNG of 16 bits keeps
    /// them unless it is scaled or animated; everything else comes times 257.
    Rgba16,
}

impl PixelFormat {
    /// 3, 4 or 8.
    pub fn bytes_per_pixel(self) -> usize {
        match self {
            PixelFormat::Rgb8 => 3,
            PixelFormat::Rgba16 => 8,
            _ => 4,
        }
    }

    pub(crate) fn raw(self) -> sys::imgdl_pixel_format {
        match self {
            PixelFormat::Rgba8 => sys::IMGDL_PIXEL_FORMAT_RGBA8,
            PixelFormat::Rgba8Premultiplied => sys::IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED,
            PixelFormat::Bgra8 => sys::IMGDL_PIXEL_FORMAT_BGRA8,
            PixelFormat::Bgra8Premultiplied => sys::IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED,
            PixelFormat::Rgb8 => sys::IMGDL_PIXEL_FORMAT_RGB8,
            PixelFormat::Rgba16 => sys::IMGDL_PIXEL_FORMAT_RGBA16,
        }
    }

    /// The library gives no image in a format that was not asked for.
    pub(crate) fn from_raw(raw: sys::imgdl_pixel_format) -> PixelFormat {
        match raw {
            sys::IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED => PixelFormat::Rgba8Premultiplied,
            sys::IMGDL_PIXEL_FORMAT_BGRA8 => PixelFormat::Bgra8,
            sys::IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED => PixelFormat::Bgra8Premultiplied,
            sys::IMGDL_PIXEL_FORMAT_RGB8 => PixelFormat::Rgb8,
            sys::IMGDL_PIXEL_FORMAT_RGBA16 => PixelFormat::Rgba16,
            _ => PixelFormat::Rgba8,
        }
    }
}

/// What becomes of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Colour {
    /// Values as the file has them. The default.
    AsStored,
    /// By the file's ICC profile to sRGB (perceptual intent), CMYK too; alpha is not touched. Without a profile, or with
    /// one that is of no use, as stored.
    Srgb,
}

impl Colour {
    pub(crate) fn raw(self) -> sys::imgdl_colour {
        match self {
            Colour::AsStored => sys::IMGDL_COLOUR_AS_STORED,
            Colour::Srgb => sys::IMGDL_COLOUR_SRGB,
        }
    }

    pub(crate) fn from_raw(raw: sys::imgdl_colour) -> Colour {
        if raw == sys::IMGDL_COLOUR_SRGB {
            Colour::Srgb
        } else {
            Colour::AsStored
        }
    }
}

/// What a file says about its colours, and what was done about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ColourNotes {
    /// It has an ICC profile, whole: [`Image::icc_profile`](crate::Image::icc_profile).
    pub icc: bool,
    /// A PNG says that it is sRGB.
    pub srgb: bool,
    /// A PNG names its gamma.
    pub gamma: bool,
    /// A PNG names its primaries.
    pub chromaticities: bool,
    /// The pixels are not as stored but sRGB, by the profile.
    pub converted: bool,
    /// The profile is broken, incomplete, too long, or not for pixels of this kind: they are as stored.
    pub unusable_profile: bool,
    /// Besides: the profile is whole, but to follow it might take any time.
    pub costly_profile: bool,
}

impl ColourNotes {
    pub(crate) fn from_raw(raw: sys::imgdl_colour_notes) -> ColourNotes {
        ColourNotes {
            icc: raw & sys::IMGDL_COLOUR_NOTE_ICC != 0,
            srgb: raw & sys::IMGDL_COLOUR_NOTE_SRGB != 0,
            gamma: raw & sys::IMGDL_COLOUR_NOTE_GAMMA != 0,
            chromaticities: raw & sys::IMGDL_COLOUR_NOTE_CHROMATICITIES != 0,
            converted: raw & sys::IMGDL_COLOUR_NOTE_CONVERTED != 0,
            unusable_profile: raw & sys::IMGDL_COLOUR_NOTE_UNUSABLE_PROFILE != 0,
            costly_profile: raw & sys::IMGDL_COLOUR_NOTE_COSTLY_PROFILE != 0,
        }
    }
}

/// A part of a picture, in pixels from its upper left corner.
// Four numbers, and no more.
#[allow(clippy::exhaustive_structs)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Whether something is seen through one of its pixels, once the picture is whole (of RGB8, and of an animation,
    /// whose frames may not all be decoded: whether it may be). Before that: whether the file may have alpha.
    pub has_alpha: bool,
    /// Whether partial images cover the whole canvas.
    pub is_progressive: bool,
}

impl ImageInfo {
    /// For a [`Coder`](crate::Coder): upright, of one frame, without transparency, not progressive. The other fields
    /// are public.
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
