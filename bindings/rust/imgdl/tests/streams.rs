//! Pictures as they arrive, for threads and for tasks (features T09, B6, B15).

mod support;

use std::sync::mpsc;
use std::thread;

use imgdl::*;
use support::*;

#[test]
fn partial_images_come_first_and_the_whole_last() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    for (name, after) in [("baseline.jpg", 60_000), ("opaque.png", 200_000), ("progressive.jpg", 60_000)] {
        let whole = decode(&picture(name), &DecodeOptions::new()).unwrap();
        let url = origin.url(&format!("/pictures/{name}?hold_after={after}&gate={name}"));
        let mut images = downloader.stream(url);
        let partial = images.next().unwrap().unwrap();
        assert!(!partial.is_complete() && partial.ready().height > 0, "{name}: {partial:?}");
        assert_eq!((partial.width(), partial.height()), (whole.width(), whole.height()));
        assert!(images.download().is_none());
        origin.open(name);
        let rest: Vec<Image> = images.by_ref().collect::<Result<_>>().unwrap();
        let (last, before) = rest.split_last().unwrap();
        assert!(last.is_complete() && before.iter().all(|image| !image.is_complete()), "{name}");
        assert!(last.pixels() == whole.pixels(), "{name}");
        assert!(images.next().is_none() && images.next().is_none());
        assert_eq!(images.download().unwrap().unwrap().response.unwrap().status, 200);
    }
}

#[test]
fn tasks_see_the_same() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let mut images = downloader.stream(origin.url("/pictures/opaque.png?hold_after=200000&gate=task"));
    let alarm = Alarm::new();
    let mut seen = 0;
    // One that is dropped loses no image.
    while poll_once(&mut images.next_image(), &alarm).is_pending() {
        seen = alarm.wait_beyond(seen);
        drop(images.next_image());
    }
    let last = block_on(async {
        origin.open("task");
        let mut last = None;
        while let Some(image) = images.next_image().await {
            last = Some(image.unwrap());
        }
        last
    });
    assert!(last.unwrap().is_complete());
    assert!(matches!(poll_once(&mut images.next_image(), &alarm), std::task::Poll::Ready(None)));
}

#[test]
fn who_is_slow_gets_the_newest() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let images = downloader.stream(origin.url("/pictures/progressive.jpg"));
    wait(images.token().unwrap()).unwrap();
    let images: Vec<Image> = images.collect::<Result<_>>().unwrap();
    assert_eq!(images.len(), 1);
    assert!(images[0].is_complete());
}

#[test]
fn an_error_is_the_last_item() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let mut images = downloader.stream(origin.url("/status/404"));
    assert_eq!(images.next().unwrap().unwrap_err().http_status(), 404);
    assert!(images.next().is_none());
    assert_eq!(images.download().unwrap().unwrap_err().code(), Code::INVALID_STATUS);
    let salvage = DecodeOptions::new().salvage();
    let cut = Request::new(origin.url("/pictures/baseline.jpg?close_after=60000")).decode_options(salvage);
    let error = downloader.stream(cut).last().unwrap().unwrap_err();
    assert!(!error.into_image().unwrap().is_complete());
    let mut refused = downloader.stream("nothing");
    assert!(refused.token().is_none());
    assert_eq!(refused.next().unwrap().unwrap_err().code(), Code::INVALID_URL);
    assert!(refused.next().is_none());
    assert_eq!(refused.detach().unwrap_err().code(), Code::INVALID_URL);
}

#[test]
fn a_body_alone_has_no_images() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let mut images = downloader.stream(Request::new(origin.url("/pictures/page.html")).body_only());
    assert!(images.next().is_none());
    assert!(images.download().unwrap().unwrap().body.unwrap().starts_with(b"<!DOCTYPE"));
}

#[test]
fn dropping_cancels_and_detaching_does_not() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let mut images = downloader.stream(origin.url("/pictures/baseline.jpg?stall_after=60000"));
    assert!(!images.next().unwrap().unwrap().is_complete());
    drop(images);
    origin.await_log("abandoned=1&open=0");
    let mut images = downloader.stream(origin.url("/pictures/baseline.jpg?hold_after=60000&gate=detached"));
    assert!(!images.next().unwrap().unwrap().is_complete());
    let token = images.detach().unwrap();
    origin.open("detached");
    assert_eq!(wait(&token).unwrap().http_status, 200);
}

#[test]
fn its_own_callback_sees_partial_images_only_if_it_asked() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/baseline.jpg?hold_after=60000&gate=own");
    let (record, receiver) = recorder();
    let mut images = downloader.stream(Request::new(url).on_event(Events::NONE, record));
    assert!(!images.next().unwrap().unwrap().is_complete());
    origin.open("own");
    assert!(images.last().unwrap().unwrap().is_complete());
    assert_eq!(all(&receiver).len(), 1);
}

#[test]
fn waiting_for_oneself_is_refused_once() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/opaque.png");
    // Nothing of it is there before it is waited for.
    let silent = origin.url("/pictures/baseline.jpg?first_byte=never");
    let (sender, receiver) = mpsc::channel();
    let inner = downloader.clone();
    let request = Request::new(&*url).on_event(Events::NONE, move |_, _| {
        sender.send(inner.stream(&silent).collect::<Vec<_>>()).unwrap();
    });
    downloader.fetch(request).wait().unwrap();
    let items = receiver.recv().unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].as_ref().unwrap_err().code(), Code::WOULD_DEADLOCK);
}

#[test]
fn a_stream_may_move_to_another_thread() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let mut images = downloader.stream(origin.url("/pictures/baseline.jpg?hold_after=60000&gate=thread"));
    assert!(!images.next().unwrap().unwrap().is_complete());
    let rest = thread::spawn(move || images.last().unwrap());
    origin.open("thread");
    assert!(rest.join().unwrap().unwrap().is_complete());
}
