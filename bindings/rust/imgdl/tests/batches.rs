//! Batches: joint progress, cancel, pause, priority, waiting, panics (features F1–F6, R09).

mod support;

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use imgdl::*;
use support::*;

fn requests(origin: &Origin, count: usize, faults: &str) -> Vec<Request> {
    let url = |n| origin.url(&format!("/pictures/opaque.png?n={n}{faults}"));
    (0..count).map(|n| Request::new(url(n)).body_only()).collect()
}

fn recording() -> (BatchOptions, Receiver<BatchProgress>) {
    let (sender, receiver) = mpsc::channel();
    (BatchOptions::new().on_progress(move |now| sender.send(*now).unwrap()), receiver)
}

#[test]
fn progress_is_told_after_each_end() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let (options, receiver) = recording();
    let (record, seen) = recorder();
    let mut list = requests(&origin, 4, "");
    list.push(Request::new(origin.url("/status/404")).on_event(Events::NONE, record));
    let batch = downloader.prefetch(list, options.max_concurrent(2)).unwrap();
    let end = batch.wait_timeout(PATIENCE).unwrap();
    assert_eq!((end.finished, end.failed, end.cancelled, end.total), (5, 1, 0, 5));
    assert!(end.is_finished);
    let told: Vec<_> = receiver.iter().collect();
    assert_eq!(told.iter().map(|now| now.finished).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(told.iter().filter(|now| now.is_finished).count(), 1);
    assert_eq!(finished(&all(&seen)).as_ref().unwrap_err().http_status(), 404);
    assert_eq!(batch.progress().unwrap(), end);
    let again = batch.clone();
    drop(batch);
    assert_eq!(again.wait().unwrap(), end, "again");
    assert!(format!("{again:?}").contains("5 of 5"));
}

#[test]
fn an_empty_batch_ends_at_once() {
    let downloader = Downloader::new().unwrap();
    let (options, receiver) = recording();
    let batch = downloader.prefetch([], options).unwrap();
    assert!(batch.wait_timeout(PATIENCE).unwrap().is_finished);
    assert_eq!(receiver.iter().count(), 1);
    assert!(downloader.prefetch([], BatchOptions::new()).unwrap().wait_timeout(PATIENCE).unwrap().is_finished);
}

#[test]
fn a_batch_is_paused_cancelled_and_dropped() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let batch = downloader.prefetch(requests(&origin, 6, "&hold_after=10&gate=batch"), BatchOptions::new()).unwrap();
    batch.set_paused(true).unwrap();
    batch.set_priority(Priority::High).unwrap();
    origin.await_gate("batch", 3);
    assert_eq!(batch.wait_timeout(Duration::from_millis(1)).unwrap_err().code(), Code::WAIT_TIMEOUT);
    batch.cancel().unwrap();
    let end = batch.wait_timeout(PATIENCE).unwrap();
    assert_eq!((end.finished, end.cancelled, end.failed), (6, 6, 0));
    assert_eq!(origin.count("/pictures/opaque.png"), 3);
    batch.cancel().unwrap();
    // Dropping it is no cancelling.
    let (options, receiver) = recording();
    drop(downloader.prefetch(requests(&origin, 2, "&k=1"), options).unwrap());
    assert_eq!(receiver.iter().last().unwrap().finished, 2);
    downloader.wait_idle_timeout(PATIENCE).unwrap();
}

#[test]
fn requests_may_keep_their_priority() {
    let origin = Origin::start();
    let downloader = Downloader::builder().max_concurrent(1).build().unwrap();
    downloader.set_suspended(true).unwrap();
    let high = |n: &str| Request::new(origin.url(&format!("/pictures/opaque.png?n={n}"))).priority(Priority::High);
    let low = downloader.prefetch([high("low")], BatchOptions::new()).unwrap();
    let kept = downloader.prefetch([high("kept")], BatchOptions::new().keep_priority()).unwrap();
    downloader.set_suspended(false).unwrap();
    for batch in [&low, &kept] {
        batch.wait_timeout(PATIENCE).unwrap();
    }
    let log = origin.log();
    assert!(log.find("n=kept").unwrap() < log.find("n=low").unwrap(), "{log}");
}

#[test]
fn one_that_is_not_valid_refuses_them_all() {
    let downloader = Downloader::new().unwrap();
    let drops = Drops::default();
    for bad in ["no URL", "http://a\0b/"] {
        let (first, second) = (drops.guard(), drops.guard());
        let good = Request::new("http://127.0.0.1:1/").on_event(Events::NONE, move |_, _| first.is_here());
        let options = BatchOptions::new().on_progress(move |_| second.is_here());
        let error = downloader.prefetch([good, Request::new(bad)], options).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_URL);
        assert!(error.message().starts_with("requests[1]"), "{error}");
    }
    assert_eq!(drops.count(), 4);
    assert_eq!(downloader.current_count(), 0);
}

#[test]
fn waiting_for_oneself_is_refused() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let place: Arc<Mutex<Option<Batch>>> = Arc::default();
    let (inside, (sender, receiver)) = (place.clone(), mpsc::channel());
    let options = BatchOptions::new().on_progress(move |_| {
        let batch = inside.lock().unwrap();
        sender.send(batch.as_ref().map(|batch| batch.wait().unwrap_err().code())).unwrap();
    });
    let batch = downloader.prefetch(requests(&origin, 1, "&hold_after=10&gate=own"), options).unwrap();
    *place.lock().unwrap() = Some(batch.clone());
    origin.open("own");
    batch.wait_timeout(PATIENCE).unwrap();
    assert_eq!(receiver.recv_timeout(PATIENCE).unwrap(), Some(Code::WOULD_DEADLOCK));
    // On the thread of a pumped executor: of the batch, or of one of its requests.
    let pumped = PumpedExecutor::new().unwrap();
    let (options, receiver) = recording();
    let batch = downloader.prefetch(requests(&origin, 1, ""), options.executor(&pumped)).unwrap();
    assert_eq!(batch.wait().unwrap_err().code(), Code::WOULD_DEADLOCK);
    while receiver.try_recv().is_err() {
        assert!(is_readable(&pumped, PATIENCE));
        pumped.dispatch(0).unwrap();
    }
    let request = Request::new("http://127.0.0.1/").executor(&pumped).on_event(Events::NONE, |_, _| {});
    let batch = downloader.prefetch([request], BatchOptions::new()).unwrap();
    assert_eq!(batch.wait().unwrap_err().code(), Code::WOULD_DEADLOCK);
    batch.cancel().unwrap();
}

#[test]
fn a_panic_in_progress_cancels_the_batch() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let drops = Drops::default();
    let guard = drops.guard();
    let options = BatchOptions::new().max_concurrent(1).on_progress(move |_| {
        guard.is_here();
        panic!("in progress")
    });
    let mut list = requests(&origin, 1, "");
    list.extend(requests(&origin, 4, "&stall_after=10"));
    let batch = downloader.prefetch(list, options).unwrap();
    let error = batch.wait_timeout(PATIENCE).unwrap_err();
    assert!(error.is_panic() && error.message().ends_with("in progress"), "{error}");
    let end = batch.progress().unwrap();
    assert_eq!((end.finished, end.cancelled), (5, 4));
    assert_eq!(drops.count(), 1);
}
