//! Colours, pixel formats, memory of the caller's, limits, and what is shown early.

#![deny(unsafe_op_in_unsafe_fn)]

mod support;

use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use imgdl::*;
use support::*;

const STEPS: usize = 5;

#[test]
fn pixels_have_three_bytes_or_sixteen_bits() {
    let options = DecodeOptions::new();
    let usual = decode(&picture("alpha.png"), &options).unwrap();
    let three = decode(&picture("alpha.png"), &options.pixel_format(PixelFormat::Rgb8)).unwrap();
    assert_eq!((three.pixel_format(), three.stride()), (PixelFormat::Rgb8, 3 * usual.width() as usize));
    assert!(usual.pixels().chunks(4).zip(three.pixels().chunks(3)).all(|(four, three)| four[..3] == *three));
    assert!(three.rows().all(|row| row.len() == three.stride()));
    assert!(three.to_vec() == three.pixels());
    let words = decode(&picture("alpha.png"), &options.pixel_format(PixelFormat::Rgba16)).unwrap();
    assert_eq!((words.pixel_format(), words.stride()), (PixelFormat::Rgba16, 8 * usual.width() as usize));
    let bytes = words.pixels().chunks(2).zip(usual.pixels());
    assert!(bytes.into_iter().all(|(word, &byte)| u16::from_ne_bytes([word[0], word[1]]) == 257 * u16::from(byte)));
    let made = Image::from_pixels(2, 1, PixelFormat::Rgb8, &[1, 2, 3, 4, 5, 6], 6).unwrap();
    assert_eq!(made.rows().collect::<Vec<_>>(), [[1, 2, 3, 4, 5, 6]]);
}

#[test]
fn colours_are_as_stored_or_srgb() {
    let profile = linear_gray();
    let bytes = jpeg(24, 16, 128, Some(&profile), None);
    let options = DecodeOptions::new();
    let stored = decode(&bytes, &options.colour(Colour::AsStored)).unwrap();
    assert!(stored.pixels().chunks(4).all(|pixel| pixel == [128, 128, 128, 255]));
    let notes = stored.colour_notes();
    assert!(notes.icc && !notes.converted && !notes.unusable_profile, "{notes:?}");
    let converted = decode(&bytes, &options.colour(Colour::Srgb)).unwrap();
    // Half of the light is three quarters of sRGB (IEC 61966-2-1).
    assert!(
        converted.pixels()[..3].iter().all(|&value| (187..=189).contains(&value)),
        "{:?}",
        &converted.pixels()[..4]
    );
    assert!(converted.colour_notes().converted);
    assert_eq!((stored.icc_profile(), converted.icc_profile()), (Some(&profile[..]), Some(&profile[..])));
    let broken = decode(&jpeg(8, 8, 128, Some(b"no profile"), None), &options.colour(Colour::Srgb)).unwrap();
    assert!(broken.colour_notes().unusable_profile && !broken.colour_notes().converted);
    let plain = decode(&jpeg(8, 8, 128, None, None), &options.colour(Colour::Srgb)).unwrap();
    assert_eq!((plain.icc_profile(), plain.colour_notes()), (None, ColourNotes::default()));
}

#[test]
fn each_limit_has_its_code() {
    let options = DecodeOptions::new();
    let whole = options.all_frames();
    let cases = [
        ("baseline.jpg", options.max_side(1199), options.max_side(1200), Code::SIZE_LIMIT),
        ("progressive.jpg", options.max_scans(1), options.max_scans(100), Code::SCAN_LIMIT),
        ("animated.webp", whole.max_animation_pixels(1000), whole.max_animation_pixels(1 << 30), Code::ANIMATION_LIMIT),
        ("oriented-6.jpg", options.max_metadata_bytes(8), options.max_metadata_bytes(8000), Code::METADATA_LIMIT),
        ("lossy.webp", options.max_memory_bytes(960_000), options.max_memory_bytes(1 << 30), Code::MEMORY_LIMIT),
        // Whatever the machine, a picture of a megapixel takes more than a millisecond.
        ("arithmetic.jpg", options.max_decode_ms(1), options.max_decode_ms(u32::MAX), Code::DECODE_TIMEOUT),
    ];
    for (name, refused, taken, code) in cases {
        assert_eq!(decode(&picture(name), &refused).unwrap_err().code(), code, "{name}");
        assert!(decode(&picture(name), &taken).unwrap().is_complete(), "{name}");
    }
    let kept = decode(&picture("progressive.jpg"), &options.max_scans(1).salvage()).unwrap_err();
    assert!(!kept.image().unwrap().is_complete());
}

#[test]
fn the_thumbnail_comes_first() {
    let bytes = jpeg(48, 32, 200, None, Some(&jpeg(12, 8, 40, None, None)));
    // Behind the head of the scan, which has ten bytes.
    let start = 10 + bytes.windows(2).rposition(|marker| marker == [0xFF, 0xDA]).unwrap();
    for (options, first) in
        [(DecodeOptions::new().thumbnail_first(), Some([40, 40, 40, 255])), (DecodeOptions::new(), None)]
    {
        let mut decoder = Decoder::new(&options).unwrap();
        decoder.feed(&bytes[..start]).unwrap();
        let partial = decoder.partial().unwrap();
        assert_eq!(partial.as_ref().map(|image| (image.width(), image.height())), first.map(|_| (48, 32)));
        assert_eq!(partial.as_ref().map(|image| &image.pixels()[..4]), first.as_ref().map(|pixel| &pixel[..]));
        assert!(!partial.map_or(false, |image| image.is_good_enough()));
        decoder.feed(&bytes[start..]).unwrap();
        let image = decoder.finish().unwrap();
        assert_eq!((&image.pixels()[..4], image.is_good_enough()), (&[200, 200, 200, 255][..], true));
    }
}

#[test]
fn a_picture_without_its_end_says_so() {
    let bytes = picture("baseline.jpg");
    assert!(!decode(&bytes, &DecodeOptions::new()).unwrap().has_incomplete_end());
    let shown = decode(&bytes[..bytes.len() - 2], &DecodeOptions::new()).unwrap();
    assert!(shown.has_incomplete_end() && shown.is_complete());
}

#[test]
fn a_scan_is_good_enough() {
    for scan in [2, 4] {
        let mut decoder = Decoder::new(&DecodeOptions::new().good_enough_scan(scan)).unwrap();
        let mut last = 0;
        for piece in picture("progressive.jpg").chunks(2000) {
            decoder.feed(piece).unwrap();
            if let Some(partial) = decoder.partial().unwrap() {
                last = partial.pass();
                assert_eq!(partial.is_good_enough(), last >= scan, "scan {last} of {partial:?}");
            }
        }
        assert!(last > scan);
    }
}

#[test]
fn a_slice_takes_the_pixels() {
    let names = PICTURES.iter().map(|&(name, ..)| name);
    for name in names.chain(["oriented-6.jpg", "alpha.webp", "animated.webp", "cmyk.jpg", "palette.png"]) {
        for format in [PixelFormat::Bgra8, PixelFormat::Rgb8, PixelFormat::Rgba16] {
            let options = DecodeOptions::new().pixel_format(format).fit(300, 300);
            let expected = decode(&picture(name), &options).unwrap();
            let row = expected.stride();
            let stride = row + STEPS;
            // The last row may end where its pixels do.
            let mut pixels = vec![7; stride * (expected.height() as usize - 1) + row];
            let placed = decode_into(&picture(name), &options, &mut pixels, stride).unwrap();
            assert_eq!((placed.width, placed.height), (expected.width(), expected.height()), "{name}");
            assert_eq!((placed.format, placed.pixel_format), (expected.format(), format), "{name}");
            assert_eq!((placed.orientation, placed.frame_count), (expected.orientation(), expected.frame_count()));
            assert!(
                pixels.chunks(stride).zip(expected.rows()).all(|(got, expected)| got[..row] == *expected),
                "{name}"
            );
            assert!(pixels.chunks(stride).all(|row_| row_[row..].iter().all(|&byte| byte == 7)), "{name}");
        }
    }
}

#[test]
fn a_slice_may_be_no_place_for_the_picture() {
    let bytes = jpeg(24, 16, 128, None, None);
    let options = DecodeOptions::new();
    let mut pixels = vec![7; 24 * 16 * 4];
    for (length, stride) in [(24 * 16 * 4 - 1, 96), (24 * 16 * 4, 95), (24 * 16 * 4, 97), (0, 0), (5, usize::MAX)] {
        let error = decode_into(&bytes, &options, &mut pixels[..length], stride).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{length} with {stride}: {error}");
        assert!(error.message().contains("16 rows of 96 bytes"), "{error}");
    }
    assert!(pixels.iter().all(|&byte| byte == 7));
    let error = decode_into(&bytes, &options.allocator(&TEXTURES), &mut pixels, 96).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    for options in [options, options.salvage()] {
        let error = decode_into(&bytes[..bytes.len() - 8], &options, &mut pixels, 96).unwrap_err();
        assert_eq!((error.code(), error.image().is_none()), (Code::TRUNCATED, true));
    }
    assert_eq!(decode_into(&bytes, &options.max_side(8), &mut pixels, 96).unwrap_err().code(), Code::SIZE_LIMIT);
    let frames = decode_into(&picture("animated.webp"), &options.all_frames(), &mut vec![0; 1 << 24], 4096).unwrap();
    assert!(frames.frame_count > 1);
    decode_into(&bytes, &options, &mut pixels, 96).unwrap();
    assert!(pixels.chunks(4).all(|pixel| pixel == [128, 128, 128, 255]));
}

/// Memory whose rows lie apart, and how much of it is lent.
struct Textures(Mutex<Option<HashMap<usize, Layout>>>, AtomicUsize);

static TEXTURES: Textures = Textures(Mutex::new(None), AtomicUsize::new(0));

// SAFETY: zeroed memory of the heap for each canvas.
unsafe impl Allocator for Textures {
    fn allocate(&self, size: CanvasSize, stride: &mut usize) -> Option<NonNull<u8>> {
        assert_eq!(*stride, (size.width * size.bytes_per_pixel) as usize);
        assert_ne!(size.width, 13, "a panic is no memory");
        *stride = (*stride + 64) / 64 * 64;
        let layout = Layout::from_size_align(*stride * size.height as usize, 64).unwrap();
        // SAFETY: not of no bytes.
        let pixels = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        self.0.lock().unwrap().get_or_insert_with(HashMap::new).insert(pixels.as_ptr() as usize, layout);
        self.1.fetch_add(1, Ordering::SeqCst);
        Some(pixels)
    }

    unsafe fn deallocate(&self, pixels: NonNull<u8>) {
        let layout = self.0.lock().unwrap().as_mut().unwrap().remove(&(pixels.as_ptr() as usize)).unwrap();
        // SAFETY: what `allocate` gave.
        unsafe { dealloc(pixels.as_ptr(), layout) };
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn an_allocator_gives_the_memory() {
    let options = DecodeOptions::new().allocator(&TEXTURES);
    let usual = decode(&picture("animated.webp"), &DecodeOptions::new().all_frames()).unwrap();
    let image = decode(&picture("animated.webp"), &options.all_frames()).unwrap();
    assert_eq!((image.stride() % 64, image.pixels().as_ptr() as usize % 64), (0, 0));
    assert!(image.stride() > usual.stride() && image.rows().eq(usual.rows()));
    let frames: Vec<Frame> = image.frames().collect();
    assert!(frames.iter().zip(usual.frames()).all(|(ours, usual)| ours.image.rows().eq(usual.image.rows())));
    assert!(TEXTURES.1.load(Ordering::SeqCst) >= frames.len());
    drop((image, frames));

    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/progressive.jpg");
    let image = get(&downloader, Request::new(&*url).decode_options(options)).unwrap().image.unwrap();
    assert_eq!((image.stride() % 64, image.width()), (0, 1280));
    assert!(image.rows().eq(decode(&picture("progressive.jpg"), &DecodeOptions::new()).unwrap().rows()));
    drop(image);
    downloader.close().unwrap();

    let error = decode(&jpeg(13, 8, 128, None, None), &options).unwrap_err();
    assert_eq!(error.code(), Code::OUT_OF_MEMORY);
    assert_eq!(TEXTURES.1.load(Ordering::SeqCst), 0, "all of it came back");
}
