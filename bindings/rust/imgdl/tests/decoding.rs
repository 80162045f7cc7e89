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
    assert_eq!(decode(&picture("animated.webp"), &options).unwrap().format(), Format::WebP);
}
