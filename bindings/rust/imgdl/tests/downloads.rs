//! Downloads that succeed: every format, every executor, partial images, sharing, requests as the server sees them.

mod support;

use std::sync::mpsc;
use std::thread;

use imgdl::*;
use support::*;

#[test]
fn pictures_of_every_format_come_as_they_decode() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    for &(name, width, height, format) in PICTURES {
        let image = downloader.get(origin.url(&format!("/pictures/{name}"))).unwrap();
        assert_eq!((image.width(), image.height(), image.format()), (width, height, format), "{name}");
        assert_eq!(image.pixel_format(), PixelFormat::Rgba8);
        assert_eq!(image.stride(), 4 * width as usize);
        assert_eq!(image.pixels().len(), image.stride() * height as usize);
        assert_eq!(image.ready(), Rectangle { x: 0, y: 0, width, height });
        assert!(image.is_complete() && image.orientation() == 1 && image.frame_count() == 1);
        let decoded = decode(&picture(name), &DecodeOptions::new()).unwrap();
        assert!(image.pixels() == decoded.pixels(), "{name}: other pixels than those of the file");
    }
    downloader.close().unwrap();
}

#[test]
fn an_address_is_any_text() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let cache = Cache::builder().open().unwrap();
    let url = origin.url("/pictures/baseline.jpg");
    downloader.get(url.as_str()).unwrap();
    downloader.get(&url).unwrap();
    downloader.get(std::borrow::Cow::from(&url)).unwrap();
    assert!(cache.query(&url).unwrap().is_none() && cache.query(url.clone()).unwrap().is_none());
    cache.remove(url.clone()).unwrap();
    downloader.get(url).unwrap();
    downloader.close().unwrap();
}

#[test]
fn every_executor_tells_the_same_story() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let pumped = PumpedExecutor::new().unwrap();
    for &(name, width, height, _) in PICTURES {
        for executor in [Executor::default(), Executor::inline(), Executor::from(&pumped)] {
            let path = format!("/pictures/{name}");
            let is_pumped = format!("{executor:?}").contains("pumped");
            let (sender, receiver) = mpsc::channel();
            let (callback, done) = sets_at_the_end(sender);
            let request = Request::new(origin.url(&path)).executor(executor).on_event(Events::ALL, callback);
            let token = downloader.download(request).unwrap();
            if is_pumped {
                pump_until(&pumped, &done);
            }
            let seen = all(&receiver);
            assert!(matches!(seen[0], Seen::Started), "{seen:?}");
            assert!(matches!(seen[1], Seen::Response(200, Some(n)) if n == picture(name).len() as u64), "{seen:?}");
            assert!(seen.windows(2).all(|pair| pair[0].kind() <= pair[1].kind()), "out of order: {seen:?}");
            assert!(seen.iter().any(|event| matches!(event, Seen::Header(w, h) if (*w, *h) == (width, height))));
            let download = finished(&seen).as_ref().unwrap();
            let image = download.image.as_ref().unwrap();
            assert_eq!((image.width(), image.height(), download.http_status), (width, height, 200));
            // The callback had the image.
            let result = wait(&token).unwrap();
            assert!(result.image.is_none() && result.body.is_none());
        }
    }
    downloader.close().unwrap();
}

#[test]
fn the_token_knows_the_status_when_the_callback_had_the_rest() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let request = Request::new(origin.url("/pictures/opaque.png")).on_event(Events::NONE, |_, _| {});
    assert_eq!(get(&downloader, request).unwrap().http_status, 200);
}

#[test]
fn callbacks_run_where_they_were_asked_to() {
    let origin = Origin::start();
    let pumped = PumpedExecutor::new().unwrap();
    let downloader = Downloader::builder().executor(&pumped).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    let (mut record, done) = sets_at_the_end(sender);
    let here = thread::current().id();
    let request = Request::new(origin.url("/pictures/opaque.png")).on_event(Events::ALL, move |token, event| {
        assert_eq!(thread::current().id(), here);
        record(token, event)
    });
    let token = downloader.download(request).unwrap();
    // Waiting for oneself is refused, not endless.
    assert_eq!(token.wait().unwrap_err().code(), Code::WOULD_DEADLOCK);
    assert_eq!(downloader.wait_idle().unwrap_err().code(), Code::WOULD_DEADLOCK);
    pump_until(&pumped, &done);
    finished(&all(&receiver)).as_ref().unwrap();
    assert!(wait(&token).is_ok());
}

#[test]
fn a_pumped_executor_runs_no_more_than_it_is_told() {
    let origin = Origin::start();
    let pumped = PumpedExecutor::new().unwrap();
    let downloader = Downloader::new().unwrap();
    let (sender, receiver) = mpsc::channel();
    let mut receivers = Vec::new();
    for index in 0..3 {
        let sender = sender.clone();
        let url = origin.url(&format!("/pictures/lossy.webp?n={index}"));
        let (record, seen) = recorder();
        receivers.push(seen);
        let mut record = record;
        let request = Request::new(url).executor(&pumped).on_event(Events::NONE, move |token, event| {
            record(token, event);
            sender.send(index).unwrap();
        });
        downloader.download(request).unwrap();
    }
    for ran in 1..=3 {
        assert!(is_readable(&pumped, PATIENCE));
        assert_eq!(pumped.dispatch(1).unwrap(), 1);
        assert_eq!(receiver.try_iter().count(), 1, "after {ran}");
    }
    assert_eq!(pumped.dispatch(0).unwrap(), 0);
    assert!(!is_readable(&pumped, std::time::Duration::ZERO));
}

#[test]
fn partial_images_show_what_has_come() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    for (name, after) in [("baseline.jpg", 60_000), ("opaque.png", 200_000), ("progressive.jpg", 60_000)] {
        let url = origin.url(&format!("/pictures/{name}?hold_after={after}&gate={name}"));
        let (record, receiver) = recorder();
        let events = Events::HEADER | Events::PARTIAL | Events::PROGRESS;
        let token = downloader.download(Request::new(url).on_event(events, record)).unwrap();
        let partial = until(&receiver, |event| match event {
            Seen::Partial(image) => Some(image.clone()),
            _ => None,
        });
        let whole = decode(&picture(name), &DecodeOptions::new()).unwrap();
        let ready = partial.ready();
        assert!(!partial.is_complete() && ready.height > 0, "{name}: {partial:?}");
        assert_eq!((partial.width(), partial.height()), (whole.width(), whole.height()));
        assert_eq!(partial.rows().len(), ready.height as usize);
        assert!(partial.rows().all(|row| row.len() == 4 * ready.width as usize));
        assert_eq!(partial.pixels().len(), ready.height as usize * partial.stride());
        if name != "progressive.jpg" {
            assert!(ready.height < whole.height(), "{name}: {ready:?}");
            let same = partial.rows().zip(whole.rows()).all(|(partial, whole)| partial == whole);
            assert!(same, "{name}: rows that are ready are final");
            let canvas = partial.to_vec();
            assert_eq!(canvas.len(), whole.pixels().len());
            assert!(canvas[partial.pixels().len()..].iter().all(|&byte| byte == 0));
        }
        origin.open(name);
        wait(&token).unwrap();
        let seen = all(&receiver);
        let image = finished(&seen).as_ref().unwrap().image.clone().unwrap();
        assert!(image.pixels() == whole.pixels(), "{name}");
    }
}

#[test]
fn requests_for_the_same_bytes_share_a_transfer() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/baseline.jpg?hold_head=1&gate=same");
    let bgra = DecodeOptions::new().pixel_format(PixelFormat::Bgra8);
    let tokens: Vec<Token> = (0..8)
        .map(|index| {
            let request = Request::new(&*url);
            let request = if index % 2 == 0 { request } else { request.decode_options(bgra) };
            downloader.download(request).unwrap()
        })
        .collect();
    assert_eq!(downloader.current_count(), 8);
    origin.await_gate("same", 1);
    origin.open("same");
    for (index, token) in tokens.iter().enumerate() {
        let image = wait(token).unwrap().image.unwrap();
        let expected = if index % 2 == 0 { PixelFormat::Rgba8 } else { PixelFormat::Bgra8 };
        assert_eq!(image.pixel_format(), expected);
    }
    assert_eq!(origin.count("/pictures/baseline.jpg"), 1);
    let ids: std::collections::BTreeSet<u64> = tokens.iter().map(Token::id).collect();
    assert_eq!(ids.len(), 8);
}

#[test]
fn bodies_and_responses_come_as_they_were_sent() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/lossy.webp?header=X-Test:yes&gzip=1");
    let both = get(&downloader, Request::new(&*url).keep_body()).unwrap();
    let response = both.response.unwrap();
    assert_eq!((response.status, response.http_version, response.redirect_count), (200, 11, 0));
    assert_eq!(response.header("x-test"), Some("yes"));
    assert_eq!(
        (response.url.ends_with("/pictures/lossy.webp?header=…&gzip=…"), &*response.content_type),
        (true, "image/webp")
    );
    let whole = get(&downloader, Request::new(&*url).full_urls()).unwrap();
    assert_eq!(whole.response.unwrap().url, url);
    assert!(both.body.unwrap()[..] == picture("lossy.webp")[..]);
    assert_eq!(both.image.unwrap().width(), 1200);
    let body = get(&downloader, Request::new(origin.url("/pictures/page.html")).body_only()).unwrap();
    assert!(body.image.is_none() && body.body.unwrap().starts_with(b"<!DOCTYPE"));
    let redirected = origin.url("/redirect?to=/pictures/opaque.png");
    let response = get(&downloader, Request::new(&*redirected).full_urls()).unwrap().response.unwrap();
    assert_eq!((response.redirect_count, response.hops.len()), (1, 1));
    assert_eq!((&*response.hops[0].url, response.hops[0].status), (&*redirected, 302));
    let refused = get(&downloader, Request::new(&*redirected).no_redirects().any_status().body_only()).unwrap();
    assert_eq!(refused.http_status, 302);
    let missing = get(&downloader, Request::new(origin.url("/status/404")).any_status().body_only()).unwrap();
    assert_eq!(missing.http_status, 404);
}

#[test]
fn the_server_sees_the_request_that_was_made() {
    let origin = Origin::start();
    let downloader = Downloader::builder().user_agent("tests/7").build().unwrap();
    downloader.set_header("X-All", Some("every")).unwrap();
    let request = Request::new(origin.url("/echo"))
        .method("POST")
        .header("X-One", "single")
        .without_header("Accept")
        .send("payload")
        .priority(Priority::High)
        .body_only();
    let body = get(&downloader, request).unwrap().body.unwrap();
    let echo = String::from_utf8_lossy(&body);
    for expected in ["\"POST\"", "tests/7", "X-All", "every", "X-One", "single", "payload"] {
        assert!(echo.contains(expected), "{expected} is not in {echo}");
    }
    assert!(!echo.contains("\"Accept\""), "{echo}");
}

#[test]
fn the_loaded_library_tells_its_version() {
    assert_eq!(version(), env!("CARGO_PKG_VERSION"));
}
