//! Many downloads, few at a time, as an iterator (features B13, B20).

mod support;

use std::cell::Cell;
use std::sync::mpsc;

use imgdl::*;
use support::*;

#[test]
fn results_come_in_order_and_requests_are_taken_as_they_are_needed() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let taken = Cell::new(0);
    let requests = (0..10).map(|n| {
        taken.set(taken.get() + 1);
        Request::new(origin.url(&format!("/pictures/opaque.png?n={n}&header=X-Number:{n}"))).body_only()
    });
    let mut results = downloader.map(requests).in_flight(3);
    assert_eq!((taken.get(), results.size_hint()), (0, (10, Some(10))));
    for number in 0..10 {
        let download = results.next().unwrap().unwrap();
        assert_eq!(download.response.unwrap().header("x-number"), Some(&*number.to_string()));
        assert_eq!(taken.get(), 10.min(number + 3));
        assert_eq!(results.size_hint(), (9 - number, Some(9 - number)));
    }
    assert!(results.next().is_none() && results.next().is_none());
    assert!(downloader.map([""; 0]).next().is_none());
    assert_eq!(downloader.map(vec![origin.url("/pictures/opaque.png")]).count(), 1);
}

#[test]
fn one_that_is_slow_holds_up_no_other_when_there_is_no_order() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let slow = origin.url("/pictures/opaque.png?hold_after=100&gate=slow");
    let quick = (1..20).map(|n| origin.url(&format!("/pictures/opaque.png?n={n}")));
    let requests = std::iter::once(slow).chain(quick).map(|url| Request::new(url).body_only());
    let mut results = downloader.map(requests).in_flight(4).unordered();
    let mut numbers: Vec<usize> = results
        .by_ref()
        .take(19)
        .map(|(number, result)| {
            assert!(result.is_ok());
            number
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..20).collect::<Vec<_>>());
    origin.open("slow");
    let (number, result) = results.next().unwrap();
    assert_eq!((number, result.unwrap().http_status), (0, 200));
    assert!(results.next().is_none() && results.next().is_none());
}

#[test]
fn one_that_fails_stops_no_other() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let good = origin.url("/pictures/opaque.png");
    let urls = [&*good, "nothing", &*origin.url("/status/404"), &*good].map(String::from);
    let codes = |result: Result<Download>| result.map(|_| ()).map_err(|error| error.code());
    let expected = [Ok(()), Err(Code::INVALID_URL), Err(Code::INVALID_STATUS), Ok(())];
    assert_eq!(downloader.map(urls.clone()).map(codes).collect::<Vec<_>>(), expected);
    let mut results: Vec<_> = downloader.map(urls).unordered().map(|(n, result)| (n, codes(result))).collect();
    results.sort_by_key(|result| result.0);
    assert_eq!(results, expected.into_iter().enumerate().collect::<Vec<_>>());
}

#[test]
fn dropping_it_cancels_what_is_under_way() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let urls = || {
        let stalled = (0..).map(|n| origin.url(&format!("/pictures/lossy.webp?n={n}&stall_after=100")));
        std::iter::once(origin.url("/pictures/opaque.png")).chain(stalled)
    };
    let mut results = downloader.map(urls()).in_flight(3);
    assert!(results.next().unwrap().is_ok());
    drop(results);
    downloader.wait_idle_timeout(PATIENCE).unwrap();
    let mut results = downloader.map(urls()).in_flight(3).unordered();
    assert!(results.next().unwrap().1.is_ok());
    drop(results);
    downloader.wait_idle_timeout(PATIENCE).unwrap();
}

#[test]
fn waiting_for_oneself_is_refused_for_each() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/opaque.png?hold_head=1&gate=never");
    let (sender, receiver) = mpsc::channel();
    let inner = downloader.clone();
    let request = Request::new(origin.url("/pictures/opaque.png")).on_event(Events::NONE, move |_, _| {
        let urls = || (0..5).map(|n| format!("{url}&n={n}"));
        let ordered = inner.map(urls()).in_flight(2);
        let unordered = inner.map(urls()).in_flight(2).unordered().map(|(_, result)| result);
        let code = |result: Result<Download>| result.map(|_| ()).unwrap_err().code();
        sender.send(ordered.chain(unordered).map(code).collect::<Vec<_>>()).unwrap();
    });
    downloader.fetch(request).wait().unwrap();
    assert_eq!(receiver.recv().unwrap(), [Code::WOULD_DEADLOCK; 10]);
}

#[test]
fn one_that_this_thread_cannot_wait_for_stops_no_other() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let pumped = PumpedExecutor::new().unwrap();
    let requests = || {
        (0..6).map(|n| {
            let request = Request::new(origin.url(&format!("/pictures/opaque.png?n={n}"))).body_only();
            if n % 3 == 1 {
                request.executor(&pumped)
            } else {
                request
            }
        })
    };
    let code = |result: Result<Download>| result.map_or_else(|error| Some(error.code()), |_| None);
    let refused = Some(Code::WOULD_DEADLOCK);
    let expected = [None, refused, None, None, refused, None];
    assert_eq!(downloader.map(requests()).map(code).collect::<Vec<_>>(), expected);
    let mut results: Vec<_> = downloader.map(requests()).unordered().map(|(n, result)| (n, code(result))).collect();
    results.sort_by_key(|result| result.0);
    assert_eq!(results.into_iter().map(|result| result.1).collect::<Vec<_>>(), expected);
}
