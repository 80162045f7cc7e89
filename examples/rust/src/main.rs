//! fetch: downloads pictures, all at once, and says what comes.
//!
//!     cargo run -- https://example.org/a.jpg https://example.org/b.png
//!
//! With --save each is written besides, as a PAM file that most viewers show: 0.pam, 1.pam …

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use imgdl::{Downloader, Event, Events, Image, Request};

fn main() -> ExitCode {
    let (options, urls): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    if urls.is_empty() || options.iter().any(|option| option != "--save") {
        eprintln!("usage: fetch [--save] URL...");
        return ExitCode::from(2);
    }
    match fetch(&urls, !options.is_empty()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("{failed} of {} failed", urls.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{}: {error}", error.name());
            ExitCode::FAILURE
        }
    }
}

/// How many failed.
fn fetch(urls: &[String], saves: bool) -> Result<usize, imgdl::Error> {
    let downloader = Downloader::builder().user_agent("imgdl-fetch-example/1.0").build()?;
    // All are asked for before the first is waited for. The callbacks run on a thread of the downloader, one at a time.
    let tokens: Vec<_> = urls
        .iter()
        .enumerate()
        .map(|(index, url)| {
            let events = Events::HEADER | Events::PARTIAL;
            let request = Request::new(&**url).on_event(events, move |_token, event| match event {
                Event::Header(info) => println!("{index}: {} x {} {:?}", info.width, info.height, info.format),
                Event::Partial(image) => println!("{index}: {} rows, pass {}", image.ready().height, image.pass()),
                Event::Finished(Ok(download)) => {
                    if let Some(image) = &download.image {
                        println!("{index}: complete, {} bytes of pixels", image.pixels().len());
                        if saves {
                            save(&format!("{index}.pam"), image).unwrap_or_else(|error| eprintln!("{index}: {error}"));
                        }
                    }
                }
                Event::Finished(Err(error)) => eprintln!("{index}: {} {error}", error.name()),
                _ => {}
            });
            downloader.download(request)
        })
        .collect();
    let mut failed = 0;
    for (url, token) in urls.iter().zip(tokens) {
        match token {
            Ok(token) => failed += usize::from(token.wait().is_err()),
            Err(error) => {
                eprintln!("{url}: {} {error}", error.name());
                failed += 1;
            }
        }
    }
    downloader.close()?;
    Ok(failed)
}

fn save(path: &str, image: &Image) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let (width, height) = (image.width(), image.height());
    write!(file, "P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n")?;
    image.rows().try_for_each(|row| file.write_all(row))?;
    file.flush()
}
