//! Metrics, observers and statistics (features B24, K1, M15, N1–N4).

mod support;

use std::sync::mpsc;
use std::time::Duration;

use imgdl::*;
use support::*;

fn fits(metrics: &Metrics) {
    let parts = metrics.resolve + metrics.connect + metrics.tls + metrics.first_byte + metrics.body;
    assert!(parts <= metrics.transfer && metrics.transfer > Duration::ZERO, "{metrics:?}");
    assert!(metrics.queue + metrics.transfer <= metrics.total || metrics.is_shared, "{metrics:?}");
}

#[test]
fn a_download_tells_where_its_time_went() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    downloader.set_suspended(true).unwrap();
    let token = downloader.download(Request::new(origin.url("/redirect?to=/pictures/opaque.png"))).unwrap();
    assert_eq!(token.metrics().unwrap(), None);
    downloader.set_suspended(false).unwrap();
    let metrics = wait(&token).unwrap().metrics.unwrap();
    fits(&metrics);
    assert_eq!((metrics.http_version, metrics.redirect_count, metrics.retry_count), (11, 1, 0));
    assert_eq!((&*metrics.address, metrics.body_bytes), ("127.0.0.1", picture("opaque.png").len() as u64));
    assert!(metrics.bytes_received > metrics.body_bytes && metrics.bytes_sent > 0 && metrics.decode > Duration::ZERO);
    assert_eq!(token.metrics().unwrap(), Some(metrics));
    let (record, receiver) = recorder();
    let request = Request::new(origin.url("/pictures/opaque.png?n=2")).on_event(Events::NONE, record);
    let token = downloader.download(request).unwrap();
    let seen = all(&receiver);
    let told = finished(&seen).as_ref().unwrap().metrics.clone().unwrap();
    assert!(told.is_connection_reused);
    assert_eq!(wait(&token).unwrap().metrics, Some(told), "the result has them, too");
    let error = downloader.get(origin.url("/status/404")).unwrap_err();
    fits(error.metrics().unwrap());
    assert!(downloader.get("no URL").unwrap_err().metrics().is_none());
}

#[test]
fn an_observer_is_told_of_every_transfer() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let (sender, receiver) = mpsc::channel();
    let drops = Drops::default();
    let guard = drops.guard();
    downloader
        .set_observer(move |seen| {
            guard.is_here();
            assert_eq!(seen.metrics.is_some(), matches!(seen.kind, Observed::Stopped | Observed::Finished));
            sender.send((seen.kind, seen.transfer, seen.url.to_string(), seen.error, seen.http_status)).unwrap();
        })
        .unwrap();
    downloader.get(origin.url("/pictures/opaque.png?n=secret")).unwrap();
    downloader.get(origin.url("/status/404")).unwrap_err();
    let first: Vec<_> = receiver.iter().take(4).collect();
    let kinds: Vec<Observed> = first.iter().map(|seen| seen.0).collect();
    assert_eq!(kinds, [Observed::Started, Observed::Response, Observed::Stopped, Observed::Finished]);
    assert!(first.iter().all(|seen| seen.1 == first[0].1 && !seen.2.contains("secret")), "{first:?}");
    assert!(first.iter().all(|seen| seen.3.is_none()) && first[3].4 == 200, "{first:?}");
    let second: Vec<_> = receiver.iter().take(3).collect();
    assert_eq!((second[2].0, second[2].3, second[2].4), (Observed::Stopped, Some(Code::INVALID_STATUS), 404));
    downloader.remove_observer().unwrap();
    assert!(receiver.recv_timeout(PATIENCE).is_err(), "the closure is dropped");
    assert_eq!(drops.count(), 1);
}

#[test]
fn an_observer_that_panics_is_not_called_again() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let drops = Drops::default();
    let guard = drops.guard();
    downloader
        .set_observer(move |_| {
            guard.is_here();
            panic!("in an observer")
        })
        .unwrap();
    assert!(downloader.get(origin.url("/pictures/opaque.png")).is_ok());
    assert!(downloader.get(origin.url("/pictures/opaque.png?n=2")).is_ok());
    assert_eq!(drops.count(), 1);
    let (sender, receiver) = mpsc::channel();
    downloader.set_observer(move |seen| sender.send(seen.kind).unwrap()).unwrap();
    assert!(downloader.get(origin.url("/pictures/opaque.png?n=3")).is_ok());
    downloader.close().unwrap();
    assert_eq!(receiver.iter().count(), 4);
}

#[test]
fn statistics_count_and_measure() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let before = downloader.stats().unwrap();
    assert_eq!((before.submitted, before.total.count(), before.total.quantile(0.5)), (0, 0, Duration::ZERO));
    let url = origin.url("/pictures/opaque.png?hold_after=10&gate=stats");
    let tokens: Vec<Token> = (0..2).map(|_| downloader.download(Request::new(&*url)).unwrap()).collect();
    origin.await_gate("stats", 1);
    assert_eq!(downloader.stats().unwrap().running, 1);
    origin.open("stats");
    for token in &tokens {
        wait(token).unwrap();
    }
    downloader.get(origin.url("/status/404")).unwrap_err();
    downloader.wait_idle_timeout(PATIENCE).unwrap();
    let stats = downloader.stats().unwrap();
    assert_eq!((stats.submitted, stats.succeeded, stats.failed, stats.cancelled), (3, 2, 1, 0));
    assert_eq!((stats.shared, stats.transfers, stats.running), (1, 2, 0));
    assert!(stats.pixels >= 900 * 600 && stats.memory_peak > 0 && stats.bytes_received > 0);
    assert_eq!(stats.total.count(), 3);
    assert_eq!(stats.total.buckets().iter().sum::<u64>(), 3);
    let (median, most) = (stats.total.quantile(0.5), stats.total.quantile(1.0));
    assert!(Duration::ZERO < median && median <= most && stats.total.sum() > Duration::ZERO, "{stats:?}");
}
