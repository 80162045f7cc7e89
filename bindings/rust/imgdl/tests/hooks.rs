//! Hooks: what they are asked, each answer, answers that come later or never, panics (features R1–R3, M7, M8, M16,
//! B23).

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::thread;

use imgdl::*;
use support::*;

fn echo(downloader: &Downloader, request: Request) -> String {
    let body = get(downloader, request.body_only()).unwrap().body.unwrap();
    String::from_utf8_lossy(&body).into_owned()
}

fn end_of(downloader: &Downloader, request: Request) -> Error {
    get(downloader, request).expect_err("an error")
}

#[test]
fn a_request_is_signed() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/echo?key=value");
    let expected = url.clone();
    let hooks = Hooks::builder().modify_request(move |request, next| {
        assert_eq!((request.url(), request.method(), request.body()), (&*expected, "POST", &b"sent"[..]));
        assert_eq!((request.header("x-own"), request.header("X-None")), (Some("1"), None));
        assert!(request.headers().any(|(name, _)| name == "Accept") && !format!("{request:?}").contains("value"));
        next.with_request(request.with_header("x-OWN", "2").method("PUT")).unwrap();
    });
    let hooks = hooks.build().unwrap();
    let request = Request::new(&*url).method("POST").send("sent").header("X-Own", "1").hooks(&hooks);
    let echo = echo(&downloader, request);
    for expected in ["\"PUT\"", "x-OWN", "\"2\"", "Accept", "sent"] {
        assert!(echo.contains(expected), "{expected} is not in {echo}");
    }
    assert!(!echo.contains("X-Own"), "{echo}");
}

#[test]
fn a_request_is_replaced_as_a_whole() {
    let origin = Origin::start();
    let target = origin.url("/echo");
    let hooks = Hooks::builder().modify_request(move |_, next| {
        let replacement = Replacement::new().url(&*target).method("PUT").headers([("X-Only", "a")]).body("other");
        next.with_request(replacement).unwrap();
    });
    // Of the downloader: for requests that name none.
    let downloader = Downloader::builder().hooks(&hooks.build().unwrap()).build().unwrap();
    let echo = echo(&downloader, Request::new(origin.url("/status/500")));
    assert!(echo.contains("X-Only") && echo.contains("other") && !echo.contains("image/*"), "{echo}");
    assert_eq!(origin.count("/status/500"), 0);
}

#[test]
fn each_hook_refuses_with_its_own_error_or_another() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let picture = origin.url("/pictures/opaque.png");
    let cases = [
        (Hooks::builder().modify_request(|_, next| next.refuse("not now").unwrap()), Code::INVALID_OPERATION, &picture),
        (Hooks::builder().modify_response(|_, next| next.refuse("not now").unwrap()), Code::INVALID_RESPONSE, &picture),
        (Hooks::builder().transform_body(|_, next| next.refuse("not now").unwrap()), Code::BAD_IMAGE_DATA, &picture),
        (
            Hooks::builder().redirect(|_, _, next| next.refuse("not now").unwrap()),
            Code::REDIRECT_REFUSED,
            &origin.url("/redirect?to=/pictures/opaque.png"),
        ),
        (
            Hooks::builder().authenticate(|_, next| next.refuse("not now").unwrap()),
            Code::INVALID_STATUS,
            &origin.url("/auth/basic?user=a&password=b"),
        ),
        (
            Hooks::builder().modify_request(|_, next| next.refuse_with(Code::INVALID_ARGUMENT, "not\0 now").unwrap()),
            Code::INVALID_ARGUMENT,
            &picture,
        ),
    ];
    for (hooks, code, url) in cases {
        let error = end_of(&downloader, Request::new(&**url).hooks(&hooks.build().unwrap()));
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().ends_with("not now"), "{error}");
    }
}

#[test]
fn dropping_the_question_refuses_and_so_does_a_panic() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/opaque.png");
    let careless = Hooks::builder().modify_request(|_, _| {}).build().unwrap();
    let error = end_of(&downloader, Request::new(&*url).hooks(&careless));
    assert_eq!(error.code(), Code::INVALID_OPERATION);
    assert!(error.message().contains("gave no answer"), "{error}");
    let panics = Hooks::builder().transform_body(|_, _| panic!("in a hook")).build().unwrap();
    let error = end_of(&downloader, Request::new(&*url).hooks(&panics));
    assert_eq!(error.code(), Code::BAD_IMAGE_DATA);
    assert!(error.message().contains("panicked") && !error.is_panic(), "{error}");
    // Not if the question is somewhere else.
    let (sender, questions) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let gives_away = Hooks::builder().modify_request(move |_, next| {
        sender.lock().unwrap().send(next).unwrap();
        panic!("afterwards");
    });
    let token = downloader.download(Request::new(&*url).hooks(&gives_away.build().unwrap())).unwrap();
    questions.recv_timeout(PATIENCE).unwrap().unchanged().unwrap();
    assert!(wait(&token).is_ok());
}

#[test]
fn an_answer_may_come_later_on_another_thread_and_too_late() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let (sender, questions) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let hooks = Hooks::builder().modify_request(move |_, next| sender.lock().unwrap().send(next).unwrap());
    let hooks = hooks.build().unwrap();
    let start = |n: u32| {
        let url = origin.url(&format!("/pictures/opaque.png?n={n}"));
        downloader.download(Request::new(url).hooks(&hooks)).unwrap()
    };
    let first = start(1);
    let question = questions.recv_timeout(PATIENCE).unwrap();
    assert_eq!(origin.count("/pictures/opaque.png"), 0);
    thread::spawn(move || question.unchanged().unwrap()).join().unwrap();
    assert!(wait(&first).is_ok());
    let second = start(2);
    let question = questions.recv_timeout(PATIENCE).unwrap();
    second.cancel().unwrap();
    assert_eq!(wait(&second).unwrap_err().code(), Code::CANCELLED);
    question.with_request(Replacement::new().method("HEAD")).unwrap();
    assert_eq!(origin.count("/pictures/opaque.png"), 1);
}

#[test]
fn an_answer_that_is_not_valid_refuses_and_says_why() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let answers: [(fn() -> Replacement, Code); 4] = [
        (|| Replacement::new().url("http://"), Code::INVALID_URL),
        (|| Replacement::new().url("http://a\0b/"), Code::INVALID_URL),
        (|| Replacement::new().method("A B"), Code::INVALID_HEADER),
        (|| Replacement::new().headers([("A\r\nB", "c")]), Code::INVALID_HEADER),
    ];
    for (answer, code) in answers {
        let (sender, answered) = mpsc::channel();
        let sender = std::sync::Mutex::new(sender);
        let hooks = Hooks::builder().modify_request(move |_, next| {
            sender.lock().unwrap().send(next.with_request(answer()).unwrap_err().code()).unwrap();
        });
        let request = Request::new(origin.url("/pictures/opaque.png")).hooks(&hooks.build().unwrap());
        assert_eq!(end_of(&downloader, request).code(), code);
        assert_eq!(answered.recv_timeout(PATIENCE).unwrap(), code);
    }
}

#[test]
fn responses_and_bodies_are_changed() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/page.html?status=418");
    let hooks = Hooks::builder()
        .modify_response(|response, next| {
            assert_eq!((response.status, response.content_type.as_str()), (418, "text/html"));
            next.with_response(200, [("X-Seen", "yes"), ("Content-Type", "image/png")]).unwrap();
        })
        .transform_body(|body, next| {
            assert!(body.starts_with(b"<!DOCTYPE"));
            next.with_body(&picture("opaque.png")).unwrap();
        });
    let request = Request::new(url).accepted_types(["image/png"]).keep_body().hooks(&hooks.build().unwrap());
    let download = get(&downloader, request).unwrap();
    assert_eq!(download.image.unwrap().width(), 900);
    assert!(download.body.unwrap()[..] == picture("opaque.png")[..]);
    assert_eq!(download.response.unwrap().header("x-seen"), Some("yes"));
    assert_eq!((download.http_status, &*download.content_type), (200, "image/png"));
}

#[test]
fn redirects_go_elsewhere() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let target = origin.url("/pictures/opaque.png");
    let hooks = Hooks::builder().redirect(move |response, url, next| {
        assert!(response.status == 302 && url.ends_with("/status/404"), "{response} {url}");
        next.with_url(&target).unwrap();
    });
    let request = Request::new(origin.url("/redirect?to=/status/404")).hooks(&hooks.build().unwrap());
    assert_eq!(get(&downloader, request).unwrap().image.unwrap().width(), 900);
    let bad = Hooks::builder().redirect(|_, _, next| assert!(next.with_url("http://a\0b/").is_err()));
    let request = Request::new(origin.url("/redirect?to=/status/404")).hooks(&bad.build().unwrap());
    assert_eq!(end_of(&downloader, request).code(), Code::INVALID_URL);
}

#[test]
fn credentials_are_found() {
    let origin = Origin::start();
    let downloader = Downloader::builder().basic_over_http().build().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let hooks = Hooks::builder().authenticate(move |challenge, next| {
        assert!(challenge.status == 401 && challenge.header("www-authenticate").is_some());
        counted.fetch_add(1, Ordering::SeqCst);
        next.with_credentials("me", "x").unwrap();
    });
    let hooks = hooks.build().unwrap();
    let url = |scheme: &str| origin.url(&format!("/auth/{scheme}?user=me&password=x&picture=opaque.png"));
    for scheme in ["basic", "digest"] {
        assert!(get(&downloader, Request::new(url(scheme)).hooks(&hooks)).is_ok(), "{scheme}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    let unchanged = Hooks::builder().authenticate(|_, next| next.unchanged().unwrap()).build().unwrap();
    assert_eq!(end_of(&downloader, Request::new(url("basic")).hooks(&unchanged)).http_status(), 401);
    let invalid = Hooks::builder().authenticate(|_, next| assert!(next.with_credentials("a\0", "").is_err()));
    let error = end_of(&downloader, Request::new(url("basic")).hooks(&invalid.build().unwrap()));
    assert_eq!(error.code(), Code::INVALID_HEADER);
}

#[test]
fn closures_live_as_long_as_somebody_may_ask_them() {
    let origin = Origin::start();
    let drops = Drops::default();
    let guard = drops.guard();
    let hooks = Hooks::builder().modify_request(move |_, next| {
        guard.is_here();
        next.unchanged().unwrap();
    });
    let hooks = hooks.build().unwrap();
    let downloader = Downloader::builder().hooks(&hooks).build().unwrap();
    drop((hooks.clone(), hooks));
    assert!(downloader.get(origin.url("/pictures/opaque.png")).is_ok());
    assert_eq!(drops.count(), 0);
    downloader.close().unwrap();
    assert_eq!(drops.count(), 1);
    // Never used at all.
    let guard = drops.guard();
    drop(Hooks::builder().redirect(move |_, _, _| guard.is_here()).build().unwrap());
    assert_eq!(drops.count(), 2);
    assert_eq!(Hooks::builder().build().unwrap_err().code(), Code::INVALID_ARGUMENT);
}

#[test]
fn whatever_code_a_download_ends_with_its_token_tells_it() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    for code in [Code::NOT_READY, Code::WAIT_TIMEOUT, Code::WOULD_DEADLOCK, Code::INTERNAL, Code::CANCELLED] {
        let hooks = Hooks::builder()
            .modify_request(move |_, next| drop(next.refuse_with(code, "for this reason")))
            .build()
            .unwrap();
        let request = Request::new(origin.url("/pictures/opaque.png")).hooks(&hooks);
        let token = downloader.download(request).unwrap();
        let _ = token.wait();
        assert_eq!(token.result().expect("it has ended").unwrap_err().code(), code);
    }
}
