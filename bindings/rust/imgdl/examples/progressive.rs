//! progressive: a picture as it arrives, as characters in the terminal.
//!
//!     cargo run --example progressive -- https://example.org/picture.jpg

use std::process::ExitCode;

use imgdl::{DecodeOptions, Downloader, Error, Image, Request};

fn main() -> ExitCode {
    let url = match std::env::args().nth(1) {
        Some(url) => url,
        None => {
            eprintln!("usage: progressive URL");
            return ExitCode::from(2);
        }
    };
    match show(&url) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", error.name());
            ExitCode::FAILURE
        }
    }
}

fn show(url: &str) -> Result<(), Error> {
    let downloader = Downloader::new()?;
    // Decoded to the size that is shown. Characters are about twice as high as they are wide.
    let small = DecodeOptions::new().fit(72, 24).stretch();
    for image in downloader.stream(Request::new(url).decode_options(small)) {
        let image = image?;
        println!("{}", characters(&image));
        println!("{}", if image.is_complete() { "complete" } else { "so far" });
    }
    Ok(())
}

/// One for each pixel that is there.
fn characters(image: &Image) -> String {
    let brightness = |pixel: &[u8]| {
        let light = pixel[..3].iter().map(|&value| usize::from(value)).sum::<usize>() * usize::from(pixel[3]);
        b" .:-=+*#%@"[light * 9 / (3 * 255 * 255)] as char
    };
    let row = |row: &[u8]| row.chunks(4).map(brightness).collect::<String>();
    image.rows().map(row).collect::<Vec<_>>().join("\n")
}
