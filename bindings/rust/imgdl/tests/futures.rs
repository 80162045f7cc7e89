//! Downloads as futures, without a runtime: awaiting, waking, dropping, detaching (features T04, B1, B2, B25).

mod support;

use std::future::Future;
use std::sync::{mpsc, Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use imgdl::*;
use support::*;

fn ready<T: std::fmt::Debug>(poll: Poll<T>) -> T {
    match poll {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("not ready"),
    }
}

#[test]
fn a_future_gives_what_a_token_gives() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let whole = decode(&picture("opaque.png"), &DecodeOptions::new()).unwrap();
    let url = origin.url("/pictures/opaque.png?header=X-Test:yes");
    let mut fetch = downloader.fetch(Request::new(&*url).keep_body());
    let download = block_on(&mut fetch).unwrap();
    assert!(download.image.as_ref().unwrap().pixels() == whole.pixels());
    assert!(download.body.unwrap()[..] == picture("opaque.png")[..]);
    assert_eq!(download.response.unwrap().header("x-test"), Some("yes"));
    assert_eq!((download.http_status, &*download.content_type), (200, "image/png"));
    assert!(download.metrics.unwrap().total > Duration::ZERO);
    assert!(fetch.is_finished());
    // However often it is asked, and by threads as by tasks.
    assert_eq!(block_on(&mut fetch).unwrap().image.unwrap().width(), 900);
    assert_eq!(fetch.wait_timeout(Duration::ZERO).unwrap().http_status, 200);
    assert_eq!(fetch.wait().unwrap().response.unwrap().status, 200);
}

#[test]
fn futures_run_at_the_same_time_and_need_no_polling_to_go_on() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let fetch = |n| downloader.fetch(origin.url(&format!("/pictures/lossy.webp?n={n}&hold_head=1&gate=both")));
    let (mut first, mut second) = (fetch(1), fetch(2));
    origin.await_gate("both", 2);
    origin.open("both");
    downloader.wait_idle_timeout(PATIENCE).unwrap();
    let alarm = Alarm::new();
    assert_eq!(ready(poll_once(&mut second, &alarm)).unwrap().image.unwrap().width(), 1200);
    assert_eq!(ready(poll_once(&mut first, &alarm)).unwrap().image.unwrap().width(), 1200);
    assert_eq!((alarm.count(), Arc::strong_count(&alarm)), (0, 1));
}

#[test]
fn only_who_polled_last_is_woken() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let mut fetch = downloader.fetch(origin.url("/pictures/opaque.png?hold_after=100&gate=wakers"));
    let (first, second) = (Alarm::new(), Alarm::new());
    assert!(poll_once(&mut fetch, &first).is_pending());
    assert_eq!(Arc::strong_count(&first), 2);
    for _ in 0..100 {
        assert!(poll_once(&mut fetch, &second).is_pending());
    }
    // A waker that was replaced is dropped, and the same one is not kept twice.
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2));
    origin.open("wakers");
    second.wait_beyond(0);
    assert!(ready(poll_once(&mut fetch, &first)).is_ok());
    downloader.wait_idle_timeout(PATIENCE).unwrap();
    assert_eq!((first.count(), second.count()), (0, 1));
}

#[test]
fn a_task_may_move_from_thread_to_thread() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let mut fetch = downloader.fetch(origin.url("/pictures/opaque.png?hold_after=100&gate=moving"));
    for _ in 0..4 {
        fetch = thread::spawn(move || {
            assert!(poll_once(&mut fetch, &Alarm::new()).is_pending());
            fetch
        })
        .join()
        .unwrap();
    }
    let waiting = thread::spawn(move || block_on(fetch));
    origin.open("moving");
    assert_eq!(waiting.join().unwrap().unwrap().image.unwrap().width(), 900);
}

#[test]
fn dropping_cancels_and_wakes_nobody() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let alarm = Alarm::new();
    let mut fetch = downloader.fetch(origin.url("/pictures/opaque.png?stall_after=100"));
    let token = fetch.token().unwrap().clone();
    assert!(poll_once(&mut fetch, &alarm).is_pending());
    origin.await_log("requests=1");
    drop(fetch);
    assert_eq!(Arc::strong_count(&alarm), 1, "the waker goes with the future");
    origin.await_log("abandoned=1&open=0");
    assert_eq!(wait(&token).unwrap_err().code(), Code::CANCELLED);
    downloader.wait_idle_timeout(PATIENCE).unwrap();
    assert_eq!(alarm.count(), 0);
}

#[test]
fn dropping_one_leaves_the_others_alone() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/baseline.jpg?hold_after=20000&gate=shared");
    let mut fetches: Vec<Fetch> = (0..4).map(|_| downloader.fetch(&url)).collect();
    origin.await_gate("shared", 1);
    fetches.truncate(1);
    origin.open("shared");
    assert_eq!(block_on(&mut fetches[0]).unwrap().image.unwrap().width(), 1200);
    assert_eq!(origin.count("/pictures/baseline.jpg"), 1);
}

#[test]
fn a_detached_download_goes_on() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let alarm = Alarm::new();
    let drops = Drops::default();
    let guard = drops.guard();
    let request = Request::new(origin.url("/pictures/opaque.png?hold_after=100&gate=detached"));
    let mut fetch = downloader.fetch(request.on_event(Events::NONE, move |_, event| {
        assert!(matches!(event, Event::Finished(Ok(_))));
        guard.is_here();
    }));
    assert!(poll_once(&mut fetch, &alarm).is_pending());
    let token = fetch.detach().unwrap();
    assert_eq!(Arc::strong_count(&alarm), 1);
    origin.open("detached");
    assert_eq!(wait(&token).unwrap().http_status, 200);
    downloader.wait_idle_timeout(PATIENCE).unwrap();
    assert_eq!((alarm.count(), drops.count()), (0, 1));
    // The token still cancels it.
    let token = downloader.fetch(origin.url("/pictures/opaque.png?stall_after=100")).detach().unwrap();
    token.cancel().unwrap();
    assert_eq!(wait(&token).unwrap_err().code(), Code::CANCELLED);
}

#[test]
fn a_cancelled_download_wakes_its_task() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let mut fetches = [(); 2].map(|()| downloader.fetch(origin.url("/pictures/opaque.png?stall_after=100")));
    let alarms = [Alarm::new(), Alarm::new()];
    for (fetch, alarm) in fetches.iter_mut().zip(&alarms) {
        assert!(poll_once(fetch, alarm).is_pending());
    }
    fetches[0].token().unwrap().cancel().unwrap();
    alarms[0].wait_beyond(0);
    assert_eq!(ready(poll_once(&mut fetches[0], &alarms[0])).unwrap_err().code(), Code::CANCELLED);
    assert!(poll_once(&mut fetches[1], &alarms[1]).is_pending());
    downloader.close().unwrap();
    alarms[1].wait_beyond(0);
    assert_eq!(ready(poll_once(&mut fetches[1], &alarms[1])).unwrap_err().code(), Code::CANCELLED);
}

#[test]
fn a_refused_request_is_its_result() {
    let downloader = Downloader::new().unwrap();
    for (url, code) in [("nothing", Code::INVALID_URL), ("ftp://127.0.0.1/", Code::UNSUPPORTED_SCHEME)] {
        let mut fetch = downloader.fetch(url);
        assert!(fetch.token().is_none() && fetch.is_finished());
        assert_eq!(ready(poll_once(&mut fetch, &Alarm::new())).unwrap_err().code(), code);
        assert_eq!(fetch.wait().unwrap_err().code(), code);
        assert_eq!(downloader.fetch(url).detach().unwrap_err().code(), code);
    }
    let nul = Request::new("http://127.0.0.1/").header("A\0", "");
    assert_eq!(block_on(downloader.fetch(nul)).unwrap_err().code(), Code::INVALID_HEADER);
    let closed = downloader.clone();
    downloader.close().unwrap();
    assert_eq!(block_on(closed.fetch("http://127.0.0.1/")).unwrap_err().code(), Code::SHUT_DOWN);
}

#[test]
fn failures_are_typed() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let error = block_on(downloader.fetch(origin.url("/status/404"))).unwrap_err();
    assert_eq!((error.code(), error.http_status()), (Code::INVALID_STATUS, 404));
    let salvage = DecodeOptions::new().salvage();
    let cut = Request::new(origin.url("/pictures/baseline.jpg?close_after=60000")).decode_options(salvage);
    let error = block_on(downloader.fetch(cut)).unwrap_err();
    assert!(error.image().is_some(), "{error:?}");
}

#[test]
fn waiting_may_have_a_limit() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let fetch = downloader.fetch(origin.url("/pictures/opaque.png?hold_head=1&gate=limit"));
    assert_eq!(fetch.wait_timeout(Duration::from_millis(1)).unwrap_err().code(), Code::WAIT_TIMEOUT);
    fetch.token().unwrap().set_priority(Priority::High).unwrap();
    origin.open("limit");
    assert!(fetch.wait_timeout(PATIENCE).is_ok());
}

#[test]
fn waiting_for_oneself_is_refused() {
    let origin = Origin::start();
    let pumped = PumpedExecutor::new().unwrap();
    let downloader = Downloader::builder().executor(&pumped).build().unwrap();
    let url = origin.url("/pictures/opaque.png");
    // Nobody dispatches, and nobody has to: nothing of the request's own runs there.
    assert!(downloader.fetch(&url).wait().is_ok());
    let named = downloader.fetch(Request::new(&*url).executor(&pumped));
    assert_eq!(named.wait_timeout(PATIENCE).unwrap_err().code(), Code::WOULD_DEADLOCK);
    let called = downloader.fetch(Request::new(&*url).on_event(Events::NONE, |_, _| {}));
    assert_eq!(called.wait_timeout(PATIENCE).unwrap_err().code(), Code::WOULD_DEADLOCK);
    let other = Downloader::new().unwrap();
    // It has not ended before it is waited for.
    let silent = origin.url("/pictures/baseline.jpg?first_byte=never");
    let (sender, receiver) = mpsc::channel();
    let inner = other.clone();
    let request = Request::new(&*url).on_event(Events::NONE, move |_, _| {
        sender.send(inner.fetch(&silent).wait()).unwrap();
    });
    other.fetch(request).wait().unwrap();
    assert_eq!(receiver.recv().unwrap().unwrap_err().code(), Code::WOULD_DEADLOCK);
}

#[test]
fn its_own_callback_is_called_with_what_it_asked_for() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/baseline.jpg");
    for (events, count) in [(Events::NONE, 1), (Events::STARTED | Events::HEADER, 3)] {
        let (record, receiver) = recorder();
        let download = block_on(downloader.fetch(Request::new(&*url).on_event(events, record))).unwrap();
        assert!(download.response.is_some());
        let seen = all(&receiver);
        assert_eq!(seen.len(), count, "{seen:?}");
        assert!(finished(&seen).is_ok());
    }
    let pumped = PumpedExecutor::new().unwrap();
    let here = thread::current().id();
    let request = Request::new(&*url).executor(&pumped).on_event(Events::NONE, move |_, _| {
        assert_eq!(thread::current().id(), here);
    });
    let (mut fetch, alarm) = (downloader.fetch(request), Alarm::new());
    while poll_once(&mut fetch, &alarm).is_pending() {
        assert!(is_readable(&pumped, PATIENCE));
        pumped.dispatch(0).unwrap();
    }
    assert!(ready(poll_once(&mut fetch, &alarm)).is_ok());
}

#[test]
fn a_panic_in_its_callback_ends_it() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    for (events, fault) in [(Events::HEADER, "?stall_after=20000"), (Events::NONE, "")] {
        let url = origin.url(&format!("/pictures/baseline.jpg{fault}"));
        let mut fetch = downloader.fetch(Request::new(url).on_event(events, |_, _| panic!("on purpose")));
        let error = block_on(&mut fetch).unwrap_err();
        assert!(error.is_panic() && error.code() == Code::CANCELLED, "{error:?}");
        let payload = fetch.token().unwrap().take_panic().unwrap();
        assert_eq!(*payload.downcast::<&str>().unwrap(), "on purpose");
    }
}

#[test]
fn an_executor_that_is_dropped_ends_what_waits_for_it() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let pumped = PumpedExecutor::new().unwrap();
    let mut fetch = downloader.fetch(Request::new(origin.url("/pictures/opaque.png")).executor(&pumped));
    let alarm = Alarm::new();
    assert!(poll_once(&mut fetch, &alarm).is_pending());
    assert!(is_readable(&pumped, PATIENCE));
    drop(pumped);
    alarm.wait_beyond(0);
    assert!(ready(poll_once(&mut fetch, &alarm)).is_err());
}

#[test]
fn wakers_may_do_anything() {
    /// Polls at once, where it is woken.
    struct Impatient {
        fetch: Mutex<Option<Fetch>>,
        results: Mutex<mpsc::Sender<Result<Download>>>,
        panics: bool,
    }
    impl Wake for Impatient {
        fn wake(self: Arc<Impatient>) {
            let fetch = self.fetch.lock().unwrap().take();
            let mut fetch = fetch.expect("polled before it is woken");
            assert_eq!(fetch.wait_timeout(PATIENCE).is_ok(), fetch.is_finished());
            let result = ready(poll_once(&mut fetch, &Alarm::new()));
            drop(fetch);
            self.results.lock().unwrap().send(result).unwrap();
            assert!(!self.panics, "on purpose");
        }
    }
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    for panics in [false, true] {
        let gate = format!("impatient{panics}");
        let fetch = downloader.fetch(origin.url(&format!("/pictures/opaque.png?hold_after=100&gate={gate}")));
        let (sender, receiver) = mpsc::channel();
        let task = Arc::new(Impatient { fetch: Mutex::new(None), results: Mutex::new(sender), panics });
        let waker = Waker::from(task.clone());
        {
            let mut fetch = fetch;
            assert!(std::pin::Pin::new(&mut fetch).poll(&mut Context::from_waker(&waker)).is_pending());
            *task.fetch.lock().unwrap() = Some(fetch);
        }
        origin.open(&gate);
        assert!(receiver.recv_timeout(PATIENCE).unwrap().is_ok());
        downloader.wait_idle_timeout(PATIENCE).unwrap();
    }
    assert!(block_on(downloader.fetch(origin.url("/pictures/opaque.png"))).is_ok());
}

#[test]
fn every_future_of_every_thread_ends_once() {
    let origin = Origin::start();
    let downloader = Downloader::builder().max_concurrent(4).build().unwrap();
    thread::scope(|scope| {
        for number in 0..6_u64 {
            let (downloader, origin) = (&downloader, &origin);
            scope.spawn(move || {
                let mut random = number + 1;
                for turn in 0..30 {
                    random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let url = origin.url(&format!("/pictures/lossy.webp?n={}", (number + turn) % 5));
                    let mut fetch =
                        downloader.fetch(Request::new(url).decode_options(DecodeOptions::new().fit(60, 40)));
                    match random >> 61 {
                        0 => drop(fetch),
                        1 => drop(poll_once(&mut fetch, &Alarm::new())),
                        2 => drop(fetch.detach().unwrap()),
                        3 => {
                            fetch.token().unwrap().cancel().unwrap();
                            assert!(block_on(fetch).map_or_else(|error| error.code() == Code::CANCELLED, |_| true));
                        }
                        4 => assert!(fetch.wait().is_ok()),
                        _ => assert_eq!(block_on(fetch).unwrap().image.unwrap().width(), 60),
                    }
                }
            });
        }
    });
    downloader.wait_idle_timeout(PATIENCE).unwrap();
    assert_eq!(downloader.current_count(), 0);
}
