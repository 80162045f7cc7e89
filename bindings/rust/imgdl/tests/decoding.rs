//! Decoding in memory: pieces and the whole give the same, errors are errors, options do what they say.

mod support;

use imgdl::*;
use support::*;

#[test]
fn pieces_give_what_the_whole_gives() {
    for &(name, width, height, format) in PICTURES {
        let bytes = picture(name);
        let whole = decode(&bytes, &DecodeOptions::new()).unwrap();
        for size in [997, 65_536] {
            let mut decoder = Decoder::new(&DecodeOptions::new()).unwrap();
            assert_eq!(decoder.info().unwrap(), None);
            let mut partials = 0;
            for piece in bytes.chunks(size) {
                decoder.feed(piece).unwrap();
                if let Some(partial) = decoder.partial().unwrap() {
                    partials += 1;
                    assert_eq!((partial.width(), partial.height()), (width, height));
                    assert!(partial.rows().all(|row| row.len() == 4 * partial.ready().width as usize));
                }
            }
            let info = decoder.info().unwrap().unwrap();
            assert_eq!((info.width, info.height, info.format), (width, height, format), "{name}");
            let image = decoder.finish().unwrap();
            assert!(image.pixels() == whole.pixels(), "{name} in pieces of {size}");
            assert!(size > 997 || partials > 0, "{name}: nothing to see on the way");
        }
    }
}

#[test]
fn images_outlive_their_decoder_and_move_with_it() {
    let mut decoder = Decoder::new(&DecodeOptions::new()).unwrap();
    let bytes = picture("opaque.png");
    decoder.feed(&bytes[..bytes.len() / 2]).unwrap();
    let partial = decoder.partial().unwrap().unwrap();
    let rest = bytes[bytes.len() / 2..].to_vec();
    let (image, before) = std::thread::spawn(move || {
        let before = partial.pixels().to_vec();
        decoder.feed(&rest).unwrap();
        (decoder.finish().unwrap(), (partial, before))
    })
    .join()
    .unwrap();
    let (partial, pixels) = before;
    assert!(partial.pixels() == pixels, "what is ready does not change");
    assert!(image.pixels().starts_with(&pixels));
    drop(Decoder::new(&DecodeOptions::new()).unwrap());
}

#[test]
fn broken_pictures_are_errors() {
    let bytes = picture("baseline.jpg");
    let options = DecodeOptions::new();
    assert_eq!(decode(b"", &options).unwrap_err().code(), Code::BAD_IMAGE_DATA);
    assert_eq!(decode(b"neither this nor that", &options).unwrap_err().code(), Code::BAD_IMAGE_DATA);
    let cut = decode(&bytes[..50_000], &options).unwrap_err();
    assert_eq!((cut.code(), cut.image().is_none()), (Code::TRUNCATED, true));
    let salvaged = decode(&bytes[..50_000], &options.salvage()).unwrap_err();
    assert_eq!(salvaged.code(), Code::TRUNCATED);
    let image = salvaged.into_image().unwrap();
    let whole = decode(&bytes, &options).unwrap();
    assert!(!image.is_complete() && image.ready().height > 100, "{image:?}");
    let rows = image.ready().height as usize - 16;
    assert!(image.rows().zip(whole.rows()).take(rows).all(|(cut, whole)| cut == whole));
    let mut decoder = Decoder::new(&options).unwrap();
    let broken = decoder.feed(b"neither this nor that").and_then(|()| decoder.feed(b"!"));
    assert!(broken.is_err() || decoder.finish().is_err());
}

#[test]
fn options_do_what_they_say() {
    let options = DecodeOptions::new();
    let limited = decode(&picture("opaque.png"), &options.max_pixels(900 * 600 - 1)).unwrap_err();
    assert_eq!(limited.code(), Code::PIXEL_LIMIT);
    assert!(decode(&picture("opaque.png"), &options.max_pixels(900 * 600)).is_ok());
    let upright = decode(&picture("oriented-6.jpg"), &options).unwrap();
    let stored = decode(&picture("oriented-6.jpg"), &options.ignore_orientation()).unwrap();
    assert_eq!((upright.width(), upright.height()), (stored.height(), stored.width()));
    assert_eq!((upright.orientation(), stored.orientation()), (6, 6));
    let straight = decode(&picture("alpha.png"), &options).unwrap();
    let swapped = decode(&picture("alpha.png"), &options.pixel_format(PixelFormat::Bgra8)).unwrap();
    let premultiplied = decode(&picture("alpha.png"), &options.pixel_format(PixelFormat::Rgba8Premultiplied)).unwrap();
    assert_eq!(swapped.pixel_format(), PixelFormat::Bgra8);
    let pixels = straight.pixels().chunks(4).zip(swapped.pixels().chunks(4)).zip(premultiplied.pixels().chunks(4));
    for ((rgba, bgra), premultiplied) in pixels {
        assert_eq!([rgba[0], rgba[1], rgba[2], rgba[3]], [bgra[2], bgra[1], bgra[0], bgra[3]]);
        assert!(premultiplied[3] == rgba[3] && premultiplied[..3].iter().all(|&part| part <= rgba[3]));
    }
}

#[test]
fn pictures_come_smaller() {
    let options = DecodeOptions::new();
    let size = |bytes: &[u8], options| decode(bytes, &options).map(|image| (image.width(), image.height()));
    for name in ["baseline.jpg", "opaque.png", "lossy.webp"] {
        let bytes = picture(name);
        assert_eq!(size(&bytes, options.fit(300, 300)).unwrap(), (300, 200), "{name}");
        assert_eq!(size(&bytes, options.fit(0, 100)).unwrap(), (150, 100), "{name}");
        assert_eq!(size(&bytes, options.fit(10, 100).stretch()).unwrap(), (10, 100), "{name}");
        assert!(size(&bytes, options.fit(5000, 5000)).unwrap().0 < 5000, "{name} is not enlarged");
        let small = decode(&bytes, &options.scale_down(100_000)).unwrap();
        assert!(small.pixels().len() <= 100_000 && small.pixels().len() > 90_000, "{name}: {small:?}");
    }
    let bytes = picture("baseline.jpg");
    assert_eq!(size(&bytes, options.fit(10, 0).stretch()).unwrap(), (10, 7), "it needs both sides");
    assert_eq!(size(&bytes, options.fit(1_048_577, 0)).unwrap_err().code(), Code::INVALID_ARGUMENT);
    assert_eq!(size(&bytes, options.format_hint(Format::Jpeg)).unwrap(), (1200, 800));
}

#[test]
fn animations_have_frames() {
    let options = DecodeOptions::new();
    let bytes = picture("animated.webp");
    let first = decode(&bytes, &options).unwrap();
    assert_eq!((first.format(), first.frames().count()), (Format::WebP, 1));
    assert!(first.frame_count() > 1 && first.frame(0).unwrap().pixels() == first.pixels());
    assert_eq!(first.frame(1).unwrap_err().code(), Code::NOT_READY);
    assert_eq!(first.frame(first.frame_count()).unwrap_err().code(), Code::INVALID_ARGUMENT);
    let whole = decode(&bytes, &options.all_frames().require_animation()).unwrap();
    let frames: Vec<Frame> = whole.frames().collect();
    assert_eq!(frames.len(), whole.frame_count() as usize);
    assert!(frames[0].image.pixels() == first.pixels() && frames[1].image.pixels() != first.pixels());
    assert_eq!((frames[1].image.width(), frames[1].duration), (whole.width(), whole.frame_duration(1)));
    assert!(frames.iter().all(|frame| frame.duration.as_millis() > 10));
    assert_eq!(whole.duration(), frames.iter().map(|frame| frame.duration).sum());
    drop(whole);
    assert!(frames[1].image.pixels().len() == first.pixels().len(), "a frame outlives its image");
    let limited = decode(&bytes, &options.all_frames().max_frames(1)).unwrap_err();
    assert_eq!(limited.code(), Code::FRAME_LIMIT);
    let still = decode(&picture("opaque.png"), &options.require_animation()).unwrap_err();
    assert_eq!(still.code(), Code::BAD_IMAGE_DATA);
    let still = decode(&picture("opaque.png"), &options.all_frames()).unwrap();
    assert_eq!((still.loop_count(), still.duration().as_nanos(), still.frames().count()), (1, 0, 1));
    assert_eq!(still.scale_factor(), 1.0);
}

#[test]
fn images_are_made_of_pixels() {
    let rows = [1, 2, 3, 4, 5, 6, 7, 8, 99, 99, 9, 10, 11, 12, 13, 14, 15, 16];
    let image = Image::from_pixels(2, 2, PixelFormat::Bgra8Premultiplied, &rows, 10).unwrap_err();
    assert_eq!(image.code(), Code::INVALID_ARGUMENT, "fewer bytes than stride × height");
    let rows = [&rows[..], &[99, 99]].concat();
    let image = Image::from_pixels(2, 2, PixelFormat::Bgra8Premultiplied, &rows, 10).unwrap();
    assert_eq!(image.rows().collect::<Vec<_>>(), [&rows[..8], &rows[10..18]]);
    assert_eq!(image.pixel_format(), PixelFormat::Bgra8Premultiplied);
    for (width, height, stride) in [(0, 1, 0), (1, 0, 4), (2, 1, 7), (u32::MAX, 2, 10), (2, u32::MAX, usize::MAX)] {
        let error = Image::from_pixels(width, height, PixelFormat::Rgba8, &rows, stride).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{width} × {height}, {stride}");
    }
}
