//! Ends that somebody asked for: cancel, shutdown, close, time limits; and what they leave alone.

mod support;

use std::sync::mpsc;
use std::time::Duration;

use imgdl::*;
use support::*;

#[test]
fn cancelling_one_leaves_the_other_alone() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/baseline.jpg?hold_after=20000&gate=two");
    let (record, receiver) = recorder();
    let first = downloader.download(Request::new(&*url).on_event(Events::NONE, record)).unwrap();
    let second = downloader.download(Request::new(&*url)).unwrap();
    origin.await_gate("two", 1);
    first.cancel().unwrap();
    let seen = all(&receiver);
    assert_eq!(seen.len(), 1);
    assert_eq!(finished(&seen).as_ref().unwrap_err().code(), Code::CANCELLED);
    assert_eq!(wait(&first).unwrap_err().name(), "IMGDL_ERROR_CANCELLED");
    assert!(second.result().is_none());
    origin.open("two");
    assert_eq!(wait(&second).unwrap().image.unwrap().width(), 1200);
    assert_eq!(origin.count("/pictures/baseline.jpg"), 1);
    first.cancel().unwrap();
}

#[test]
fn the_last_cancel_ends_the_transfer() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/baseline.jpg?stall_after=20000");
    let tokens: Vec<Token> = (0..3).map(|_| downloader.download(Request::new(&*url)).unwrap()).collect();
    origin.await_log("requests=1");
    for token in &tokens {
        token.cancel().unwrap();
    }
    origin.await_log("abandoned=1&open=0");
    for token in &tokens {
        assert_eq!(wait(token).unwrap_err().code(), Code::CANCELLED);
    }
}

#[test]
fn a_callback_may_cancel_its_own_download() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/opaque.png?hold_after=1000&gate=own");
    let (sender, receiver) = mpsc::channel();
    let request = Request::new(url).on_event(Events::ALL, move |token, event| {
        if let Event::Progress { .. } = event {
            token.cancel().unwrap();
            assert_eq!(token.wait().unwrap_err().code(), Code::WOULD_DEADLOCK);
        }
        sender.send(Seen::of(event)).unwrap();
    });
    let token = downloader.download(request).unwrap();
    assert_eq!(wait(&token).unwrap_err().code(), Code::CANCELLED);
    let seen = all(&receiver);
    assert_eq!(seen.iter().filter(|event| matches!(event, Seen::Progress(..))).count(), 1);
    assert!(matches!(seen[seen.len() - 2], Seen::Progress(..)), "after the cancel only the end: {seen:?}");
    assert_eq!(finished(&seen).as_ref().unwrap_err().code(), Code::CANCELLED);
}

#[test]
fn waiting_may_have_a_limit() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/opaque.png?hold_head=1&gate=limit");
    let token = downloader.download(Request::new(url)).unwrap();
    assert_eq!(token.wait_timeout(Duration::from_millis(1)).unwrap_err().code(), Code::WAIT_TIMEOUT);
    assert_eq!(downloader.wait_idle_timeout(Duration::ZERO).unwrap_err().code(), Code::WAIT_TIMEOUT);
    token.set_priority(Priority::Low).unwrap();
    origin.open("limit");
    wait(&token).unwrap();
    downloader.wait_idle_timeout(PATIENCE).unwrap();
}

#[test]
fn suspended_downloads_wait_and_can_be_cancelled_together() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    downloader.set_suspended(true).unwrap();
    downloader.set_order(Order::Lifo).unwrap();
    downloader.set_max_concurrent(2).unwrap();
    let tokens: Vec<Token> = (0..5)
        .map(|n| downloader.download(Request::new(origin.url(&format!("/pictures/opaque.png?n={n}")))).unwrap())
        .collect();
    assert_eq!(downloader.current_count(), 5);
    downloader.cancel_all().unwrap();
    for token in &tokens {
        assert_eq!(wait(token).unwrap_err().code(), Code::CANCELLED);
    }
    downloader.set_suspended(false).unwrap();
    assert!(downloader.get(origin.url("/pictures/opaque.png?n=9")).is_ok());
    assert_eq!(origin.count("/pictures/opaque.png"), 1);
    assert_eq!(downloader.set_max_concurrent(0).unwrap_err().code(), Code::INVALID_ARGUMENT);
}

#[test]
fn shutdown_tells_every_end_and_then_its_own() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let (sender, receiver) = mpsc::channel();
    for n in 0..3 {
        let sender = sender.clone();
        let url = origin.url(&format!("/pictures/opaque.png?stall_after=100&n={n}"));
        let request = Request::new(url)
            .on_event(Events::NONE, move |_, event| sender.send(format!("{:?}", Seen::of(event).kind())).unwrap());
        downloader.download(request).unwrap();
    }
    downloader.shutdown(Shutdown::Finish, || {}).unwrap();
    let refused = downloader.download(Request::new(origin.url("/pictures/opaque.png"))).unwrap_err();
    assert_eq!(refused.code(), Code::SHUT_DOWN);
    downloader.shutdown(Shutdown::Cancel, move || sender.send("done".into()).unwrap()).unwrap();
    let told: Vec<String> = (0..4).map(|_| receiver.recv_timeout(PATIENCE).unwrap()).collect();
    assert_eq!(told, ["4", "4", "4", "done"]);
}

#[test]
fn closing_cancels_and_waits() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let other = downloader.clone();
    let drops = Drops::default();
    let guard = drops.guard();
    let url = origin.url("/pictures/opaque.png?stall_after=100");
    let token = downloader.download(Request::new(url).on_event(Events::NONE, move |_, _| guard.is_here())).unwrap();
    downloader.close().unwrap();
    assert_eq!(drops.count(), 1);
    assert_eq!(wait(&token).unwrap_err().code(), Code::CANCELLED);
    assert_eq!(other.download(Request::new(origin.url("/pictures/opaque.png"))).unwrap_err().code(), Code::SHUT_DOWN);
}

#[test]
fn the_shared_downloader_cannot_be_closed() {
    let origin = Origin::start();
    let shared = Downloader::shared().unwrap();
    assert_eq!(shared.shutdown(Shutdown::Cancel, || {}).unwrap_err().code(), Code::INVALID_OPERATION);
    assert_eq!(shared.close().unwrap_err().code(), Code::INVALID_OPERATION);
    assert!(Downloader::shared().unwrap().get(origin.url("/pictures/opaque.png")).is_ok());
}

#[test]
fn a_request_may_have_a_time_limit() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/opaque.png?stall_after=100");
    let error = get(&downloader, Request::new(url).total_timeout(Duration::from_millis(50))).unwrap_err();
    assert_eq!(error.code(), Code::TOTAL_TIMEOUT);
    let quick = Downloader::builder().idle_timeout(Duration::from_millis(50)).build().unwrap();
    let error = quick.get(origin.url("/pictures/opaque.png?first_byte=never")).unwrap_err();
    assert_eq!(error.code(), Code::IDLE_TIMEOUT);
}
