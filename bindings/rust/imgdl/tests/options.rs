//! Options of downloaders and requests: each does what it says, and a bad one is an error (features B8, B17, B20,
//! C1–C10, K11, O4–O6).

mod support;

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use imgdl::*;
use support::*;

fn fails(downloader: &Downloader, request: Request) -> Error {
    get(downloader, request).expect_err("an error")
}

fn temporary(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

#[test]
fn what_may_pass_is_tried_again() {
    let origin = Origin::start();
    let retry = |count| Retry::times(count).first_wait(Duration::from_millis(1)).longest_wait(Duration::from_millis(2));
    let downloader = Downloader::builder().retry(retry(2)).build().unwrap();
    let flaky = |id: &str| Request::new(origin.url(&format!("/flaky?id={id}&fail=2&picture=opaque.png")));
    let metrics = get(&downloader, flaky("a")).unwrap().metrics.unwrap();
    assert_eq!((metrics.retry_count, origin.count("/flaky")), (2, 3));
    let error = fails(&downloader, flaky("b").retry(Retry::never()));
    assert_eq!((error.http_status(), error.metrics().unwrap().retry_count), (503, 0));
    assert_eq!(fails(&downloader, flaky("c").retry(retry(1))).http_status(), 503);
    assert_eq!(fails(&downloader, flaky("d").method("POST")).http_status(), 503);
    assert_eq!(Retry::times(0), Retry::never());
    // For ever, and not never.
    assert_ne!(Retry::times(u32::MAX), Retry::never());
    assert_eq!(get(&downloader, flaky("e").retry(retry(u32::MAX))).unwrap().metrics.unwrap().retry_count, 2);
}

#[test]
fn statuses_and_types_are_validated() {
    let origin = Origin::start();
    let downloader =
        Downloader::builder().accepted_statuses([200..=299, 418..=418]).accepted_types(["image/*"]).build().unwrap();
    assert!(get(&downloader, Request::new(origin.url("/pictures/opaque.png?status=418"))).is_ok());
    let error = fails(&downloader, Request::new(origin.url("/pictures/page.html")));
    assert_eq!(error.code(), Code::INVALID_CONTENT_TYPE);
    assert_eq!((error.content_type(), &error.preview()[..9]), ("text/html", &b"<!DOCTYPE"[..]));
    let any = Request::new(origin.url("/pictures/page.html")).body_only().accepted_types(["text/html", "image/*"]);
    assert_eq!(get(&downloader, any).unwrap().content_type, "text/html");
    let none = Request::new(origin.url("/pictures/opaque.png")).accepted_statuses([]);
    assert_eq!(fails(&downloader, none).code(), Code::INVALID_STATUS);
    let only = Request::new(origin.url("/pictures/page.html?status=500")).accepted_statuses([200..=200]);
    let error = fails(&downloader, only);
    assert_eq!((error.http_status(), error.preview().starts_with(b"<!DOCTYPE")), (500, true));
}

#[test]
fn credentials_are_for_one_origin() {
    let origin = Origin::start();
    let careful = Downloader::builder().credentials("me", "x").build().unwrap();
    let downloader = Downloader::builder().credentials("me", "x").basic_over_http().build().unwrap();
    let url = |scheme: &str| origin.url(&format!("/auth/{scheme}?user=me&password=x&picture=opaque.png"));
    assert_eq!(fails(&careful, Request::new(url("basic"))).http_status(), 401);
    assert!(get(&careful, Request::new(url("basic")).basic_over_http()).is_ok());
    for scheme in ["basic", "digest", "any"] {
        assert!(get(&downloader, Request::new(url(scheme))).is_ok(), "{scheme}");
        let error = fails(&downloader, Request::new(url(scheme)).credentials("me", "hidden"));
        assert!(error.http_status() == 401 && !error.message().contains("hidden"), "{error}");
    }
    let other = Origin::start();
    let target = other.url("/auth/basic%3Fuser%3Dme%26password%3Dx");
    assert_eq!(fails(&downloader, Request::new(origin.url(&format!("/redirect?to={target}")))).http_status(), 401);
    assert!(!other.log().contains("Authorization"));
}

#[test]
fn certificates_are_checked_as_they_were_told() {
    let origin = Origin::start_with(&["--tls", "valid", "--client-certificate", "required"]);
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/opaque.png");
    let whole = || {
        Request::new(&*url)
            .client_certificate(origin.value("client_certificate"))
            .client_key(origin.value("client_encrypted_key"))
            .client_key_password(origin.value("client_passphrase"))
            .pinned_public_key(origin.value("pin"))
    };
    let trusting = || whole().ca_file(origin.value("ca_file"));
    assert!(get(&downloader, trusting()).is_ok());
    assert_eq!(fails(&downloader, whole()).code(), Code::TLS_CERTIFICATE);
    assert!(get(&downloader, whole().allow_invalid_certificates()).is_ok());
    let other = format!("sha256//{}=", "A".repeat(43));
    assert_eq!(fails(&downloader, trusting().pinned_public_key(other)).code(), Code::TLS_PIN);
    let stranger = trusting().client_certificate(origin.value("stranger_certificate"));
    let stranger = stranger.client_key(origin.value("stranger_key"));
    assert_eq!(fails(&downloader, stranger).code(), Code::TLS_FAILED);
    let downloader = Downloader::builder()
        .ca_file(origin.value("ca_file"))
        .client_certificate(origin.value("client_certificate"))
        .client_key(origin.value("client_key"))
        .pinned_public_key(origin.value("pin"))
        .build()
        .unwrap();
    let metrics = get(&downloader, Request::new(&*url)).unwrap().metrics.unwrap();
    assert!(metrics.tls > Duration::ZERO, "{metrics:?}");
    let expired = Origin::start_with(&["--tls", "expired"]);
    let request = Request::new(expired.url("/pictures/opaque.png")).ca_file(expired.value("ca_file"));
    assert_eq!(fails(&Downloader::new().unwrap(), request).code(), Code::TLS_CERTIFICATE);
}

#[test]
fn cookies_are_kept_for_those_who_ask() {
    let origin = Origin::start();
    let jar = temporary("jar.txt");
    let downloader = Downloader::builder().cookie_file(&jar).build().unwrap();
    let url = |n: u32| origin.url(&format!("/echo?n={n}"));
    let cookie = |downloader: &Downloader, request: Request| {
        let body = get(downloader, request.body_only()).unwrap().body.unwrap();
        String::from_utf8_lossy(&body).contains("taste=sweet")
    };
    let set = Request::new(origin.url("/cookies/set?taste=sweet&path=/&max_age=600&picture=opaque.png"));
    get(&downloader, set.cookies()).unwrap();
    assert!(cookie(&downloader, Request::new(url(1)).cookies()));
    assert!(!cookie(&downloader, Request::new(url(2))));
    downloader.close().unwrap();
    assert!(fs::read_to_string(&jar).unwrap().contains("taste\tsweet"));
    let downloader = Downloader::builder().cookie_file(&jar).build().unwrap();
    assert!(cookie(&downloader, Request::new(url(3)).cookies()));
    downloader.close().unwrap();
}

#[test]
fn a_proxy_stands_between() {
    let origin = Origin::start();
    let proxy = Origin::start_with(&["--proxy", "--proxy-user", "me", "--proxy-password", "x"]);
    let address = proxy.value("proxy").rsplit('/').next().unwrap().to_string();
    let port = origin.address().rsplit(':').next().unwrap();
    let url = format!("http://pictures.example:{port}/pictures/opaque.png");
    let through = |login: &str| Downloader::builder().proxy(format!("http://{login}{address}"));
    assert!(!format!("{:?}", through("me:hidden@")).contains("hidden"));
    assert!(get(&through("me:x@").build().unwrap(), Request::new(&*url)).is_ok());
    let error = fails(&through("me:hidden@").build().unwrap(), Request::new(&*url));
    assert!(error.code() == Code::PROXY_FAILED && !error.message().contains("hidden"), "{error}");
    assert!(
        get(&Downloader::builder().no_proxy().build().unwrap(), Request::new(origin.url("/echo")).body_only()).is_ok()
    );
}

#[test]
fn private_addresses_can_be_denied_and_other_schemes_allowed() {
    let origin = Origin::start();
    let downloader = Downloader::builder().deny_private_addresses().no_proxy().build().unwrap();
    let error = fails(&downloader, Request::new(origin.url("/pictures/opaque.png")));
    assert_eq!(error.code(), Code::ADDRESS_REFUSED);
    let error = Downloader::builder().deny_private_addresses().proxy("http://127.0.0.1:1").build().unwrap_err();
    assert_eq!(error.code(), Code::INVALID_OPERATION);
    let downloader = Downloader::builder().allow_file_urls().allow_data_urls().build().unwrap();
    let file = format!("file://{}", pictures().join("opaque.png").canonicalize().unwrap().display());
    assert_eq!(downloader.get(&file).unwrap().width(), 900);
    assert_eq!(fails(&downloader, Request::new(format!("{file}.none"))).http_status(), 404);
    let data = get(&downloader, Request::new("data:text/plain,hello").body_only()).unwrap();
    assert_eq!((&data.body.unwrap()[..], &*data.content_type), (&b"hello"[..], "text/plain"));
}

#[test]
fn what_failed_for_good_fails_at_once() {
    let origin = Origin::start();
    let downloader = Downloader::builder().failure_ttl(Duration::from_secs(600)).build().unwrap();
    let url = origin.url("/pictures/page.html");
    assert_eq!(downloader.get(&url).unwrap_err().code(), Code::BAD_IMAGE_DATA);
    assert_eq!(downloader.get(&url).unwrap_err().code(), Code::BLACKLISTED);
    assert_eq!(origin.count("/pictures/page.html"), 1);
    assert_eq!(fails(&downloader, Request::new(&*url).retry_failed()).code(), Code::BAD_IMAGE_DATA);
    assert_eq!(origin.count("/pictures/page.html"), 2);
}

#[test]
fn the_scale_factor_is_told_or_in_the_name() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    assert_eq!(downloader.get(origin.url("/pictures/opaque@3x.png")).unwrap().scale_factor(), 3.0);
    let request = Request::new(origin.url("/pictures/opaque@3x.png")).scale_factor(1.5);
    assert_eq!(get(&downloader, request).unwrap().image.unwrap().scale_factor(), 1.5);
}

#[test]
fn progress_may_come_in_steps() {
    let origin = Origin::start();
    let count = |downloader: &Downloader, n: u32| {
        let (record, receiver) = recorder();
        let url = origin.url(&format!("/pictures/opaque.png?chunk=2000&n={n}"));
        let request = Request::new(url).executor(Executor::inline()).on_event(Events::PROGRESS, record);
        downloader.download(request).unwrap();
        all(&receiver).iter().filter(|event| matches!(event, Seen::Progress(..))).count()
    };
    let downloader = Downloader::builder().progress_interval(0.5).memory_budget(1 << 30).build().unwrap();
    assert!((2..=3).contains(&count(&downloader, 1)));
}

#[test]
fn a_downloader_is_changed_while_it_lives() {
    let origin = Origin::start();
    let downloader = Downloader::builder().user_agent("tests/7").max_concurrent(4).max_per_host(1).build().unwrap();
    assert_eq!(downloader.header("user-agent").unwrap().as_deref(), Some("tests/7"));
    let long = "x".repeat(1000);
    downloader.set_header("X-Long", Some(&long)).unwrap();
    assert_eq!(downloader.header("X-Long").unwrap(), Some(long));
    downloader.set_header("X-Long", None).unwrap();
    assert_eq!(downloader.header("X-Long").unwrap(), None);
    assert_eq!(downloader.header("a\0").unwrap_err().code(), Code::INVALID_HEADER);
    assert_eq!((downloader.max_concurrent(), downloader.is_suspended()), (4, false));
    downloader.set_suspended(true).unwrap();
    downloader.set_max_concurrent(5).unwrap();
    downloader.set_max_per_host(2).unwrap();
    assert_eq!((downloader.max_concurrent(), downloader.is_suspended()), (5, true));
    assert_eq!(downloader.set_max_per_host(10_001).unwrap_err().code(), Code::INVALID_ARGUMENT);
    downloader.set_suspended(false).unwrap();
    let url = |n: u32| origin.url(&format!("/pictures/opaque.png?hold_after=10&gate=host&n={n}"));
    let tokens: Vec<Token> = (0..4).map(|n| downloader.download(Request::new(url(n))).unwrap()).collect();
    origin.await_gate("host", 2);
    // The last ones may have been accepted and not looked at yet.
    let end = Instant::now() + PATIENCE;
    while downloader.stats().unwrap().waiting < 2 && Instant::now() < end {
        thread::yield_now();
    }
    assert_eq!((origin.count("/pictures/opaque.png"), downloader.stats().unwrap().waiting), (2, 2));
    origin.open("host");
    for token in &tokens {
        wait(token).unwrap();
    }
}

#[test]
fn the_background_is_for_those_who_continue() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = |n: u32| origin.url(&format!("/pictures/opaque.png?hold_after=10&gate=back&n={n}"));
    let stays = downloader.download(Request::new(url(1))).unwrap();
    origin.await_gate("back", 1);
    downloader.enter_background(Duration::ZERO).unwrap();
    let goes_on = downloader.download(Request::new(url(2)).continue_in_background()).unwrap();
    let waits = downloader.download(Request::new(url(3))).unwrap();
    origin.await_gate("back", 2);
    origin.open("back");
    wait(&goes_on).unwrap();
    assert!(stays.result().is_none() && waits.result().is_none());
    downloader.enter_foreground().unwrap();
    wait(&stays).unwrap();
    wait(&waits).unwrap();
    let late =
        downloader.download(Request::new(origin.url("/pictures/opaque.png?stall_after=10")).continue_in_background());
    origin.await_log("requests=4");
    downloader.enter_background(Duration::from_millis(1)).unwrap();
    assert_eq!(wait(&late.unwrap()).unwrap_err().code(), Code::BACKGROUND_EXPIRED);
}

#[test]
fn after_a_change_of_the_network_there_are_new_connections() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    for n in 0..4 {
        if n == 2 {
            downloader.network_changed().unwrap();
        }
        downloader.get(origin.url(&format!("/pictures/opaque.png?n={n}"))).unwrap();
    }
    assert_eq!(downloader.stats().unwrap().connections, 2);
}

#[test]
fn a_session_ends_and_another_begins() {
    let origin = Origin::start();
    let downloader = Downloader::builder().user_agent("tests/1").build().unwrap();
    let url = origin.url("/pictures/opaque.png?stall_after=10");
    let running = downloader.download(Request::new(&*url)).unwrap();
    origin.await_log("requests=1");
    downloader.invalidate(Shutdown::Cancel).unwrap();
    assert_eq!(wait(&running).unwrap_err().code(), Code::CANCELLED);
    assert_eq!(downloader.get(&url).unwrap_err().code(), Code::INVALID_OPERATION);
    let error = downloader.reconfigure(Downloader::builder().max_concurrent(10_001)).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    assert_eq!(downloader.get(&url).unwrap_err().code(), Code::INVALID_OPERATION, "nothing has changed");
    downloader.reconfigure(Downloader::builder().user_agent("tests/2").max_concurrent(3)).unwrap();
    let body = get(&downloader, Request::new(origin.url("/echo")).body_only()).unwrap().body.unwrap();
    assert!(String::from_utf8_lossy(&body).contains("tests/2"));
    assert_eq!(downloader.max_concurrent(), 3);
    let shared = Downloader::shared().unwrap();
    assert_eq!(shared.invalidate(Shutdown::Finish).unwrap_err().code(), Code::INVALID_OPERATION);
    assert_eq!(shared.reconfigure(Downloader::builder()).unwrap_err().code(), Code::INVALID_OPERATION);
}

#[test]
fn bad_options_are_refused() {
    let downloader = Downloader::new().unwrap();
    let good = || Request::new("http://127.0.0.1:1/");
    let requests = [
        (good().credentials("a:b", "c"), Code::INVALID_HEADER),
        (good().credentials("a", "c\0"), Code::INVALID_HEADER),
        (good().credentials("a", "c\r\nd"), Code::INVALID_HEADER),
        (good().accepted_statuses([RangeInclusive::new(300, 200)]), Code::INVALID_ARGUMENT),
        (good().accepted_statuses([0..=99]), Code::INVALID_ARGUMENT),
        (good().accepted_types(["image"]), Code::INVALID_ARGUMENT),
        (good().accepted_types(["image/png\0"]), Code::INVALID_ARGUMENT),
        (good().pinned_public_key("md5//abc"), Code::INVALID_ARGUMENT),
        (good().pinned_public_key("\0"), Code::INVALID_ARGUMENT),
        (good().client_key("/no/such/key.pem"), Code::INVALID_ARGUMENT),
        (good().scale_factor(-1.0), Code::INVALID_ARGUMENT),
        (good().scale_factor(f64::NAN), Code::INVALID_ARGUMENT),
        (good().decode_options(DecodeOptions::new().fit(1_048_577, 1)), Code::INVALID_ARGUMENT),
    ];
    for (index, (request, code)) in requests.into_iter().enumerate() {
        let error = downloader.download(request).map(|_| panic!("number {index} is taken")).unwrap_err();
        assert_eq!(error.code(), code, "number {index}: {error}");
    }
    let builder = Downloader::builder;
    let builders = [
        (builder().client_certificate("/no/such/file.pem"), Code::INVALID_OPERATION),
        (builder().client_certificate("a\0b"), Code::INVALID_OPERATION),
        (builder().cookie_file("a\0b"), Code::INVALID_OPERATION),
        (builder().client_key_password("x"), Code::INVALID_ARGUMENT),
        (builder().proxy("no proxy"), Code::INVALID_URL),
        (builder().proxy("http://a\0b"), Code::INVALID_URL),
        (builder().dns_servers("dns.example"), Code::INVALID_ARGUMENT),
        (builder().dns_servers("192.0.2.1\0"), Code::INVALID_ARGUMENT),
        (builder().nat64_prefixes("192.0.2.0/24"), Code::INVALID_ARGUMENT),
        (builder().crl_file("/no/such/file.pem"), Code::INVALID_OPERATION),
        (builder().progress_interval(1.5), Code::INVALID_ARGUMENT),
        (builder().progress_interval(f64::NAN), Code::INVALID_ARGUMENT),
        (builder().max_per_host(10_001), Code::INVALID_ARGUMENT),
        (builder().decode_threads(257), Code::INVALID_ARGUMENT),
        (builder().accepted_types(["*"]), Code::INVALID_ARGUMENT),
    ];
    for (index, (builder, code)) in builders.into_iter().enumerate() {
        let error = builder.build().expect_err("refused");
        assert_eq!(error.code(), code, "number {index}: {error}");
    }
}
