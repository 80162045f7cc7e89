// What the examples in the documentation run with, without a network: hidden there, included by each that needs it.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// A picture of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDAT\
    x\xdac\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xffV\xc7/\r\0\0\0\0IEND\xaeB`\x82";

/// Every https URL leads to that picture.
fn offline(downloader: &imgdl::Downloader) {
    let answer = |_: &imgdl::Outgoing<'_>, mut transfer: imgdl::Transfer| {
        let sent = transfer.respond(200, [("Content-Type", "image/png")]).and_then(|()| transfer.send(PNG));
        sent.and_then(|()| transfer.end()).unwrap();
    };
    downloader.register_transport("https", answer).unwrap();
}

/// A folder with files of that picture, which is the current one until this is dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn with(names: &[&str]) -> Folder {
        let folder = std::env::temp_dir().join(format!("imgdl-documentation-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::env::set_current_dir(&folder).unwrap();
        for name in names {
            std::fs::write(name, PNG).unwrap();
        }
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The smallest runtime: one future, one thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Unpark>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = Box::pin(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
