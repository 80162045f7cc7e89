//! Closures: what panics in them stays in them, and each is dropped exactly once, whatever happens.

mod support;

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex};

use imgdl::*;
use support::*;

fn executors(pumped: &PumpedExecutor) -> [(Executor, bool); 3] {
    [(Executor::default(), false), (Executor::inline(), false), (pumped.executor(), true)]
}

#[test]
fn a_panic_cancels_its_download_and_is_told_to_whoever_waits() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let pumped = PumpedExecutor::new().unwrap();
    for (index, (executor, is_pumped)) in executors(&pumped).into_iter().enumerate() {
        let gate = format!("panic{index}");
        let url = origin.url(&format!("/pictures/baseline.jpg?hold_after=1000&gate={gate}"));
        let calls = Arc::new(AtomicUsize::new(0));
        let drops = Drops::default();
        let (guard, counted) = (drops.guard(), calls.clone());
        let request = Request::new(&*url).executor(executor).on_event(Events::ALL, move |_, _| {
            guard.is_here();
            counted.fetch_add(1, Ordering::SeqCst);
            panic!("number {index}");
        });
        let token = downloader.download(request).unwrap();
        // It shares the transfer, and is none the worse.
        let innocent = downloader.download(Request::new(&*url)).unwrap();
        while is_pumped && drops.count() == 0 {
            assert!(is_readable(&pumped, PATIENCE));
            pumped.dispatch(0).unwrap();
        }
        let error = wait(&token).unwrap_err();
        assert!(error.is_panic(), "{error:?}");
        assert_eq!(error.code(), Code::CANCELLED);
        assert!(error.message().ends_with(&format!("number {index}")), "{error}");
        assert!(matches!(token.result(), Some(Err(error)) if error.is_panic()));
        let payload = token.clone().take_panic().unwrap();
        assert_eq!(*payload.downcast::<String>().unwrap(), format!("number {index}"));
        assert!(token.take_panic().is_none() && wait(&token).unwrap_err().is_panic());
        assert_eq!(calls.load(Ordering::SeqCst), 1, "it is not called again");
        origin.await_gate(&gate, 1);
        origin.open(&gate);
        assert!(wait(&innocent).is_ok());
        downloader.wait_idle_timeout(PATIENCE).unwrap();
        assert_eq!(drops.count(), 1);
    }
}

#[test]
fn a_panic_in_the_last_callback_is_told_too() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let request = Request::new(origin.url("/pictures/opaque.png")).on_event(Events::NONE, |_, event| {
        assert!(matches!(event, Event::Finished(Ok(_))));
        panic!("too late");
    });
    let error = wait(&downloader.download(request).unwrap()).unwrap_err();
    assert!(error.is_panic() && error.message().contains("too late"), "{error}");
    // Its owner may go on with it.
    let request = Request::new(origin.url("/pictures/opaque.png")).on_event(Events::NONE, |_, _| panic!("again"));
    let token = downloader.download(request).unwrap();
    wait(&token).unwrap_err();
    let resumed = panic::catch_unwind(AssertUnwindSafe(|| panic::resume_unwind(token.take_panic().unwrap())));
    assert_eq!(*resumed.unwrap_err().downcast::<&str>().unwrap(), "again");
}

#[test]
fn a_panic_in_a_closures_drop_stays_there() {
    struct Explosive;
    impl Drop for Explosive {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let explosive = Explosive;
    let request = Request::new(origin.url("/pictures/opaque.png")).on_event(Events::NONE, move |_, _| {
        let _held = &explosive;
    });
    let token = downloader.download(request).unwrap();
    downloader.wait_idle_timeout(PATIENCE).unwrap();
    assert!(wait(&token).unwrap_err().is_panic());
    assert!(downloader.get(origin.url("/pictures/opaque.png")).is_ok());
}

#[test]
fn closures_are_dropped_once_however_it_ends() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let stalled = "/pictures/opaque.png?stall_after=100";
    for (path, cancels) in [("/pictures/opaque.png", false), ("/status/404", false), (stalled, true)] {
        let drops = Drops::default();
        let guard = drops.guard();
        let request = Request::new(origin.url(path)).on_event(Events::ALL, move |_, _| guard.is_here());
        let token = downloader.download(request).unwrap();
        if cancels {
            token.cancel().unwrap();
        }
        downloader.wait_idle_timeout(PATIENCE).unwrap();
        assert_eq!(drops.count(), 1, "{path}");
        drop(token);
        assert_eq!(drops.count(), 1, "{path}");
    }
}

#[test]
fn closures_are_dropped_once_when_the_request_is_refused() {
    let downloader = Downloader::new().unwrap();
    let pumped = PumpedExecutor::new().unwrap();
    let gone = pumped.executor();
    drop(pumped);
    let make: [&dyn Fn(Request) -> Request; 4] =
        [&|request| request, &|request| request.header("A\0", ""), &|request| request.method("\n"), &|request| {
            request.executor(gone.clone())
        }];
    for (index, change) in make.iter().enumerate() {
        // The library refuses the first and the third, this crate the others.
        let drops = Drops::default();
        let guard = drops.guard();
        let url = if index == 0 { "nothing" } else { "http://127.0.0.1/" };
        let request = change(Request::new(url).on_event(Events::ALL, move |_, _| guard.is_here()));
        assert!(downloader.download(request).is_err(), "{index}");
        assert_eq!(drops.count(), 1, "{index}");
    }
    let drops = Drops::default();
    let guard = drops.guard();
    drop(Request::new("http://127.0.0.1/").on_event(Events::ALL, move |_, _| guard.is_here()));
    assert_eq!(drops.count(), 1);
}

#[test]
fn closures_are_dropped_when_nobody_dispatches_any_more() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let pumped = PumpedExecutor::new().unwrap();
    let (sender, receiver) = mpsc::channel::<()>();
    let request = Request::new(origin.url("/pictures/opaque.png"))
        .executor(&pumped)
        .on_event(Events::NONE, move |_, _| sender.send(()).unwrap());
    let token = downloader.download(request).unwrap();
    assert!(is_readable(&pumped, PATIENCE));
    drop(pumped);
    // The closure, and its sender with it, is gone without having been called.
    assert_eq!(receiver.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
    assert!(wait(&token).is_err());
}

#[test]
fn a_closure_may_use_everything() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let other = downloader.clone();
    let url = origin.url("/pictures/lossy.webp");
    // What has ended already is told everywhere.
    let endless = origin.url("/pictures/lossy.webp?first_byte=never");
    let (record, receiver) = recorder();
    let record = Arc::new(Mutex::new(Some(record)));
    let request = Request::new(origin.url("/pictures/opaque.png")).on_event(Events::NONE, move |token, event| {
        assert!(matches!(event, Event::Finished(Ok(_))));
        assert!(token.id() > 0);
        token.cancel().unwrap();
        assert_eq!(other.get(&endless).unwrap_err().code(), Code::WOULD_DEADLOCK);
        // A download begun in a callback outlives it.
        let record = record.lock().unwrap().take().unwrap();
        other.download(Request::new(&*url).on_event(Events::NONE, record)).unwrap();
    });
    wait(&downloader.download(request).unwrap()).unwrap();
    assert!(finished(&all(&receiver)).is_ok());
}

#[test]
fn a_downloader_may_be_closed_inside_a_callback() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let mine = Arc::new(Mutex::new(Some(downloader.clone())));
    let request = Request::new(origin.url("/pictures/opaque.png")).on_event(Events::NONE, move |_, _| {
        mine.lock().unwrap().take().unwrap().close().unwrap();
    });
    let token = downloader.download(request).unwrap();
    wait(&token).unwrap();
    assert_eq!(downloader.download(Request::new("http://127.0.0.1/")).unwrap_err().code(), Code::SHUT_DOWN);
}

#[test]
fn one_executor_may_be_dispatched_inside_anothers_callback() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let (outer, inner) = (PumpedExecutor::new().unwrap(), PumpedExecutor::new().unwrap());
    let (sender, receiver) = mpsc::channel();
    let (callback, done) = sets_at_the_end(sender);
    let url = origin.url("/pictures/opaque.png");
    let inner_executor = inner.executor();
    downloader.download(Request::new(&*url).executor(inner_executor).on_event(Events::NONE, callback)).unwrap();
    let request = Request::new(&*url).executor(&outer).on_event(Events::NONE, move |_, _| pump_until(&inner, &done));
    downloader.download(request).unwrap();
    assert!(is_readable(&outer, PATIENCE));
    outer.dispatch(0).unwrap();
    assert!(finished(&all(&receiver)).is_ok());
}
