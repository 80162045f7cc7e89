//! futures: downloads that are awaited, with a runtime of twenty lines; any other does as well.
//!
//!     cargo run --example futures -- https://example.org/a.jpg https://example.org/b.jpg

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use imgdl::{Downloader, Error, Fetch};

fn main() -> ExitCode {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    match block_on(fetch_all(&urls)) {
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
async fn fetch_all(urls: &[String]) -> Result<usize, Error> {
    let downloader = Downloader::new()?;
    // They go on from here, all at once, whoever is awaited first.
    let fetches: Vec<Fetch> = urls.iter().map(|url| downloader.fetch(url)).collect();
    let mut failed = 0;
    for (url, fetch) in urls.iter().zip(fetches) {
        match fetch.await {
            Ok(download) => println!("{url}: {:?}", download.image),
            Err(error) => {
                eprintln!("{}: {error}", error.name());
                failed += 1;
            }
        }
    }
    Ok(failed)
}

/// Wakes the thread that polls.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = Box::pin(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
