//! bulk: downloads the addresses on standard input, few at a time, and sums up what became of them.
//!
//!     cargo run --example bulk < list-of-urls.txt

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::process::ExitCode;

use imgdl::{Downloader, Error};

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {error}", error.name());
            ExitCode::FAILURE
        }
    }
}

/// How many failed.
fn run() -> Result<usize, Error> {
    let downloader = Downloader::builder().max_concurrent(12).user_agent("imgdl-bulk-example/1.0").build()?;
    // Lines are read as they are needed: the list may be longer than memory is large.
    let lines = io::stdin().lock().split(b'\n').map_while(Result::ok);
    let urls = lines.map(|line| String::from_utf8_lossy(&line).trim().to_string()).filter(|url| !url.is_empty());
    let (mut images, mut pixels) = (0_u64, 0);
    let mut failures: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, result) in downloader.map(urls).unordered() {
        match result {
            Ok(download) => {
                images += 1;
                pixels += download.image.map_or(0, |image| u64::from(image.width()) * u64::from(image.height()));
            }
            Err(error) => {
                eprintln!("{}: {error}", number + 1);
                *failures.entry(error.name()).or_default() += 1;
            }
        }
    }
    println!("{images} images, {pixels} pixels");
    for (name, count) in &failures {
        println!("{count} {name}");
    }
    Ok(failures.values().sum())
}
