//! Plug-ins: loaders for schemes and codecs of one's own, their ends and their panics (features K6, T06, T22, X5, B23).

mod support;

use std::sync::mpsc;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use imgdl::*;
use support::*;

#[test]
fn a_closure_loads_a_scheme() {
    let downloader = Downloader::new().unwrap();
    let load = |request: &Outgoing<'_>, mut transfer: Transfer| {
        assert_eq!((request.url(), request.method()), ("app://icons/opaque.png", "GET"));
        thread::spawn(move || {
            let bytes = picture("opaque.png");
            transfer
                .respond(200, [("Content-Type", "image/png"), ("Content-Length", &*bytes.len().to_string())])
                .unwrap();
            for piece in bytes.chunks(100_000) {
                transfer.send(piece).unwrap();
            }
            assert!(!transfer.is_cancelled());
            transfer.end().unwrap();
        });
    };
    assert_eq!(downloader.get("app://icons/opaque.png").unwrap_err().code(), Code::UNSUPPORTED_SCHEME);
    downloader.register_transport("app", load).unwrap();
    let download = get(&downloader, Request::new("app://icons/opaque.png").keep_body()).unwrap();
    assert!(download.body.unwrap()[..] == picture("opaque.png")[..] && download.image.unwrap().width() == 900);
    assert_eq!((download.http_status, &*download.content_type), (200, "image/png"));
    downloader.unregister_transport("app").unwrap();
    assert_eq!(downloader.get("app://icons/opaque.png").unwrap_err().code(), Code::UNSUPPORTED_SCHEME);
}

#[test]
fn a_loader_fails_its_transfer() {
    let downloader = Downloader::new().unwrap();
    downloader
        .register_transport("app", |request: &Outgoing<'_>, mut transfer: Transfer| match request.url() {
            "app://a/fail" => transfer.fail(Code::CONNECT_FAILED, "nobody is there").unwrap(),
            "app://a/drop" => drop(transfer),
            "app://a/panic" => panic!("in a loader"),
            "app://a/missing" => transfer.respond(404, []).and_then(|()| transfer.end()).unwrap(),
            "app://a/order" => {
                assert_eq!(transfer.send(b"x").unwrap_err().code(), Code::INVALID_OPERATION);
                assert_eq!(transfer.respond(20, []).unwrap_err().code(), Code::INVALID_ARGUMENT);
                assert_eq!(transfer.respond(200, [("a\0", "b")]).unwrap_err().code(), Code::INVALID_HEADER);
            }
            other => panic!("{other}"),
        })
        .unwrap();
    let cases = [
        ("fail", Code::CONNECT_FAILED, "nobody is there"),
        ("drop", Code::CONNECTION_LOST, ""),
        ("panic", Code::CONNECTION_LOST, ""),
        ("missing", Code::INVALID_STATUS, "404"),
        ("order", Code::CONNECTION_LOST, ""),
    ];
    for (path, code, text) in cases {
        let error = get(&downloader, Request::new(format!("app://a/{path}"))).unwrap_err();
        assert_eq!(error.code(), code, "{path}: {error}");
        assert!(error.message().contains(text), "{path}: {error}");
    }
}

#[test]
fn a_loader_learns_that_nobody_wants_it_any_more() {
    let downloader = Downloader::new().unwrap();
    let (sender, transfers) = mpsc::channel();
    let sender = Mutex::new(sender);
    let load = move |_: &Outgoing<'_>, transfer: Transfer| sender.lock().unwrap().send(transfer).unwrap();
    downloader.register_transport("app", load).unwrap();
    let (told, cancels) = mpsc::channel();
    for is_late in [false, true] {
        let token = downloader.download(Request::new("app://a/b")).unwrap();
        let mut transfer = transfers.recv_timeout(PATIENCE).unwrap();
        let told = told.clone();
        let callback = move || told.send(()).unwrap();
        if !is_late {
            transfer.on_cancel(callback);
            token.cancel().unwrap();
            cancels.recv_timeout(PATIENCE).unwrap();
            // No error, and no effect.
            transfer.respond(200, []).unwrap();
        } else {
            let (first, cancelled) = mpsc::channel();
            transfer.on_cancel(move || first.send(()).unwrap());
            token.cancel().unwrap();
            cancelled.recv_timeout(PATIENCE).unwrap();
            transfer.on_cancel(callback);
            cancels.try_recv().unwrap();
        }
        assert!(transfer.is_cancelled());
        assert_eq!(wait(&token).unwrap_err().code(), Code::CANCELLED);
    }
}

#[test]
fn a_loader_waits_while_its_transfer_is_paused() {
    let piece = vec![0u8; 256 << 10];
    let downloader = Downloader::new().unwrap();
    let (sender, transfers) = mpsc::channel();
    let sender = Mutex::new(sender);
    let load = move |_: &Outgoing<'_>, mut transfer: Transfer| {
        transfer.respond(200, []).unwrap();
        assert!(transfer.try_send(&[1; 1 << 20]).unwrap());
        assert!(!transfer.try_send(b"x").unwrap());
        assert_eq!(transfer.send(b"x").unwrap_err().code(), Code::NOT_READY);
        let (resumed, resumes) = mpsc::channel();
        transfer.on_resume(move || resumed.send(()).unwrap());
        sender.lock().unwrap().send((transfer, resumes)).unwrap();
    };
    downloader.register_transport("app", load).unwrap();
    for is_cancelled in [false, true] {
        let token = downloader.download(Request::new("app://a/b").body_only()).unwrap();
        let (mut transfer, resumes) = transfers.recv_timeout(PATIENCE).unwrap();
        resumes.recv_timeout(PATIENCE).unwrap();
        downloader.enter_background(Duration::ZERO).unwrap();
        let end = Instant::now() + PATIENCE;
        while downloader.stats().unwrap().paused == 0 && Instant::now() < end {
            thread::yield_now();
        }
        let bytes = piece.clone();
        let sending = thread::spawn(move || {
            for _ in 0..12 {
                transfer.send(&bytes).unwrap();
            }
            let is_cancelled = transfer.is_cancelled();
            transfer.end().unwrap();
            is_cancelled
        });
        while downloader.stats().unwrap().memory < 2 << 20 && Instant::now() < end {
            thread::yield_now();
        }
        assert_eq!(downloader.stats().unwrap().memory, 2 << 20, "1 MiB was taken, 1 MiB is held");
        if is_cancelled {
            token.cancel().unwrap();
        } else {
            downloader.enter_foreground().unwrap();
            assert_eq!(wait(&token).unwrap().body.unwrap().len(), (1 << 20) + 12 * piece.len());
        }
        assert_eq!(sending.join().unwrap(), is_cancelled);
        downloader.enter_foreground().unwrap();
    }
}

#[test]
fn a_body_in_a_callback_does_not_wait() {
    let downloader = Downloader::new().unwrap();
    let (sender, transfers) = mpsc::channel();
    let sender = Mutex::new(sender);
    let load = move |_: &Outgoing<'_>, mut transfer: Transfer| {
        transfer.respond(200, []).unwrap();
        sender.lock().unwrap().send(transfer).unwrap();
    };
    downloader.register_transport("app", load).unwrap();
    let token = downloader.download(Request::new("app://a/b").body_only()).unwrap();
    let mut transfer = transfers.recv_timeout(PATIENCE).unwrap();
    downloader.enter_background(Duration::ZERO).unwrap();
    let end = Instant::now() + PATIENCE;
    while downloader.stats().unwrap().paused == 0 && Instant::now() < end {
        thread::yield_now();
    }
    while transfer.try_send(&[1; 256 << 10]).unwrap() {}
    // Of whatever downloader: memory may be used up by what waits for this thread.
    let other = Downloader::builder().allow_data_urls().build().unwrap();
    let (answer, answers) = mpsc::channel();
    let request = Request::new("data:image/png,x")
        .on_event(Events::NONE, move |_, _| answer.send(transfer.send(b"x").unwrap_err().code()).unwrap());
    let _asked = other.download(request).unwrap();
    assert_eq!(answers.recv_timeout(PATIENCE).unwrap(), Code::NOT_READY);
    token.cancel().unwrap();
}

#[test]
fn a_transfer_may_go_where_it_is_cancelled() {
    let downloader = Downloader::new().unwrap();
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(sender);
    let load = move |_: &Outgoing<'_>, mut transfer: Transfer| {
        let place = std::sync::Arc::new(Mutex::new(None::<Transfer>));
        let (inside, told) = (place.clone(), sender.lock().unwrap().clone());
        transfer.on_cancel(move || {
            drop(inside.lock().unwrap().take());
            told.send("dropped").unwrap();
            panic!("after that");
        });
        *place.lock().unwrap() = Some(transfer);
        sender.lock().unwrap().send("started").unwrap();
    };
    downloader.register_transport("app", load).unwrap();
    let token = downloader.download(Request::new("app://a/b")).unwrap();
    assert_eq!(receiver.recv_timeout(PATIENCE).unwrap(), "started");
    token.cancel().unwrap();
    assert_eq!(receiver.recv_timeout(PATIENCE).unwrap(), "dropped");
    assert_eq!(wait(&token).unwrap_err().code(), Code::CANCELLED);
}

#[test]
fn loaders_are_dropped_once_when_they_are_out() {
    struct Counted(CountsItsDrop);
    impl Loader for Counted {
        fn start(&self, _: &Outgoing<'_>, transfer: Transfer) {
            self.0.is_here();
            transfer.fail(Code::NOT_MODIFIED, "").unwrap();
        }
    }
    let drops = Drops::default();
    let downloader = Downloader::new().unwrap();
    downloader.register_transport("one", Counted(drops.guard())).unwrap();
    assert_eq!(downloader.get("one://a").unwrap_err().code(), Code::NOT_MODIFIED);
    let refused = downloader.register_transport("no scheme", Counted(drops.guard())).unwrap_err();
    assert_eq!((refused.code(), drops.count()), (Code::INVALID_ARGUMENT, 1));
    assert_eq!(
        downloader.register_transport("a\0", Counted(drops.guard())).unwrap_err().code(),
        Code::INVALID_ARGUMENT
    );
    assert_eq!(drops.count(), 2);
    downloader.close().unwrap();
    assert_eq!(drops.count(), 3);
}

/// Gray bytes of 16 × 16 pixels, after a name of four letters.
struct Gray {
    name: &'static [u8; 4],
    _guard: CountsItsDrop,
}

struct GrayDecoder {
    bytes: Vec<u8>,
    shown: usize,
}

impl Coder for Gray {
    fn can_decode(&self, prefix: &[u8]) -> Option<bool> {
        match prefix.get(..4) {
            None => Some(false).filter(|_| !self.name.starts_with(prefix)),
            Some(name) => Some(name == self.name),
        }
    }

    fn decoder(&self, options: &CoderOptions) -> Box<dyn PictureDecoder> {
        assert!(options.max_pixels > 0);
        Box::new(GrayDecoder { bytes: Vec::new(), shown: 0 })
    }
}

impl GrayDecoder {
    fn image(&self) -> Image {
        let mut pixels: Vec<u8> = self.bytes[4..].iter().flat_map(|&value| [value, value, value, 255]).collect();
        pixels.resize(16 * 64, 0);
        Image::from_pixels(16, 16, PixelFormat::Rgba8, &pixels, 64).unwrap()
    }
}

impl PictureDecoder for GrayDecoder {
    fn feed(&mut self, bytes: &[u8]) -> std::result::Result<(), Code> {
        assert!(bytes.last() != Some(&13), "an unlucky byte");
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn info(&mut self) -> std::result::Result<Option<ImageInfo>, Code> {
        let mut info = ImageInfo::new(16, 16);
        info.orientation = 1;
        Ok(Some(info).filter(|_| self.bytes.len() >= 4))
    }

    fn partial(&mut self) -> std::result::Result<Option<Image>, Code> {
        let is_new = self.bytes.len() > 4 && self.bytes.len() > self.shown;
        self.shown = self.bytes.len();
        Ok(is_new.then(|| self.image()))
    }

    fn finish(&mut self) -> std::result::Result<Image, Code> {
        if self.bytes.len() < 4 + 256 {
            return Err(Code::TRUNCATED);
        }
        Ok(self.image())
    }
}

fn gray(name: &[u8; 4]) -> Vec<u8> {
    name.iter().copied().chain((0..=255).map(|value: u8| value.max(14))).collect()
}

#[test]
fn a_codec_of_ones_own_decodes() {
    let bytes = gray(b"GRA1");
    let options = DecodeOptions::new();
    assert_eq!(decode(&bytes, &options).unwrap_err().code(), Code::BAD_IMAGE_DATA);
    let drops = Drops::default();
    let registered = register_coder(Gray { name: b"GRA1", _guard: drops.guard() }).unwrap();
    let image = decode(&bytes, &options).unwrap();
    assert_eq!((image.width(), image.height(), image.format()), (16, 16, Format::Other));
    assert_eq!(image.pixels()[255 * 4..], [255, 255, 255, 255]);
    // What it does not do itself.
    let small = decode(&bytes, &options.fit(4, 4).pixel_format(PixelFormat::Bgra8)).unwrap();
    assert_eq!((small.width(), small.pixel_format()), (4, PixelFormat::Bgra8));
    assert_eq!(decode(&bytes, &options.max_pixels(10)).unwrap_err().code(), Code::PIXEL_LIMIT);
    assert_eq!(decode(&picture("opaque.png"), &options).unwrap().width(), 900);
    // In pieces.
    let mut decoder = Decoder::new(&options).unwrap();
    decoder.feed(&bytes[..100]).unwrap();
    assert_eq!(decoder.info().unwrap().unwrap().width, 16);
    assert!(decoder.partial().unwrap().is_some());
    drop(registered);
    // What decodes with it goes on.
    assert_eq!(drops.count(), 0);
    decoder.feed(&bytes[100..]).unwrap();
    assert!(decoder.finish().unwrap().pixels() == image.pixels());
    // Decoding in another test of this process may still be asking it whether it knows the format.
    drops.wait_for(1);
    assert_eq!(decode(&bytes, &options).unwrap_err().code(), Code::BAD_IMAGE_DATA);
}

#[test]
fn a_codec_may_be_named() {
    let registered = register_coder(Gray { name: b"GRA2", _guard: Drops::default().guard() }).unwrap();
    let options = DecodeOptions::new().coder(&registered);
    // It is not asked.
    let image = decode(&gray(b"????"), &options).unwrap();
    assert_eq!(image.width(), 16);
    drop(registered);
    assert_eq!(decode(&gray(b"????"), &options).unwrap_err().code(), Code::INVALID_HANDLE);
}

#[test]
fn what_a_codec_does_wrong_is_an_error() {
    let _registered = register_coder(Gray { name: b"GRA3", _guard: Drops::default().guard() }).unwrap();
    let bytes = gray(b"GRA3");
    let options = DecodeOptions::new();
    let short = decode(&bytes[..200], &options.salvage()).unwrap_err();
    assert_eq!(short.code(), Code::TRUNCATED);
    assert!(!short.image().unwrap().is_complete());
    let mut decoder = Decoder::new(&options).unwrap();
    decoder.feed(&bytes[..100]).unwrap();
    assert_eq!(decoder.feed(&[13]).unwrap_err().code(), Code::INTERNAL);
    assert_eq!(decoder.feed(&bytes[100..]).unwrap_err().code(), Code::INTERNAL);
    assert_eq!(decoder.finish().unwrap_err().code(), Code::INTERNAL);

    struct Panics;
    impl Coder for Panics {
        fn can_decode(&self, prefix: &[u8]) -> Option<bool> {
            assert!(!prefix.starts_with(b"PAN0"), "cannot tell");
            Some(prefix.starts_with(b"PAN"))
        }
        fn decoder(&self, _: &CoderOptions) -> Box<dyn PictureDecoder> {
            panic!("no decoder")
        }
    }
    let _registered = register_coder(Panics).unwrap();
    assert_eq!(decode(b"PAN0, not a picture", &options).unwrap_err().code(), Code::BAD_IMAGE_DATA);
    assert_eq!(decode(b"PAN1, not a picture", &options).unwrap_err().code(), Code::INTERNAL);
}
