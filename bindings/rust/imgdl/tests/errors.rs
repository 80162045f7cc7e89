//! Every error has a code, a name, and a sentence that says what was meant.

mod support;

use std::net::TcpListener;

use imgdl::*;
use support::*;

fn check(result: Result<Download>, code: Code, name: &str) -> Error {
    let error = result.expect_err(name);
    assert_eq!(error.code(), code, "{error}");
    assert_eq!(error.name(), name);
    assert!(!error.message().is_empty() && error.to_string() == error.message());
    assert!(!code.description().is_empty() && format!("{error:?}").contains(name));
    error
}

#[test]
fn what_servers_do_wrong_has_a_code() {
    let origin = Origin::start();
    let downloader = Downloader::builder().max_redirects(3).build().unwrap();
    let cases = [
        ("/status/404", Code::INVALID_STATUS, "IMGDL_ERROR_INVALID_STATUS"),
        ("/pictures/page.html", Code::BAD_IMAGE_DATA, "IMGDL_ERROR_BAD_IMAGE_DATA"),
        ("/pictures/opaque.png?empty=1", Code::BAD_IMAGE_DATA, "IMGDL_ERROR_BAD_IMAGE_DATA"),
        ("/pictures/opaque.png?short_by=9000", Code::TRUNCATED, "IMGDL_ERROR_TRUNCATED"),
        ("/pictures/opaque.png?cut_chunked=1", Code::TRUNCATED, "IMGDL_ERROR_TRUNCATED"),
        ("/pictures/opaque.png?reset_after=100", Code::CONNECTION_LOST, "IMGDL_ERROR_CONNECTION_LOST"),
        ("/garbage", Code::PROTOCOL, "IMGDL_ERROR_PROTOCOL"),
        ("/redirect-loop", Code::TOO_MANY_REDIRECTS, "IMGDL_ERROR_TOO_MANY_REDIRECTS"),
        ("/redirect/4?to=/pictures/opaque.png", Code::TOO_MANY_REDIRECTS, "IMGDL_ERROR_TOO_MANY_REDIRECTS"),
        ("/redirect?to=ftp://127.0.0.1/a", Code::REDIRECT_REFUSED, "IMGDL_ERROR_REDIRECT_REFUSED"),
        ("/pictures/opaque.png?headers=300", Code::HEADER_LIMIT, "IMGDL_ERROR_HEADER_LIMIT"),
        ("/pictures/opaque.png?length=huge", Code::BODY_LIMIT, "IMGDL_ERROR_BODY_LIMIT"),
    ];
    for (path, code, name) in cases {
        let error = check(get(&downloader, Request::new(origin.url(path))), code, name);
        let path = path.split('?').next().unwrap();
        assert!(error.message().contains("127.0.0.1"), "{path}: the message names no URL: {error}");
    }
    let error = downloader.get(origin.url("/status/503")).unwrap_err();
    assert_eq!((error.code(), error.http_status()), (Code::INVALID_STATUS, 503));
}

#[test]
fn limits_of_a_request_have_codes() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/opaque.png");
    let small = Request::new(&*url).max_body_bytes(1000);
    check(get(&downloader, small), Code::BODY_LIMIT, "IMGDL_ERROR_BODY_LIMIT");
    let few = Request::new(&*url).decode_options(DecodeOptions::new().max_pixels(1000));
    check(get(&downloader, few), Code::PIXEL_LIMIT, "IMGDL_ERROR_PIXEL_LIMIT");
}

#[test]
fn what_cannot_be_asked_is_refused_at_once() {
    let downloader = Downloader::new().unwrap();
    let refused = |request: Request| downloader.download(request).map(|token| panic!("accepted: {token:?}"));
    let good = "http://127.0.0.1/";
    let cases = [
        (Request::new(""), Code::INVALID_URL),
        (Request::new("http://"), Code::INVALID_URL),
        (Request::new("http://exa\nmple.org/"), Code::INVALID_URL),
        (Request::new("http://127.0.0.1/a\0b"), Code::INVALID_URL),
        (Request::new("ftp://127.0.0.1/"), Code::UNSUPPORTED_SCHEME),
        (Request::new("file:///etc/passwd"), Code::UNSUPPORTED_SCHEME),
        (Request::new(good).header("X", "a\r\nY: b"), Code::INVALID_HEADER),
        (Request::new(good).header("X", "a\0b"), Code::INVALID_HEADER),
        (Request::new(good).header("X y", "a"), Code::INVALID_HEADER),
        (Request::new(good).method("GE T"), Code::INVALID_HEADER),
        (Request::new(good).method("GET\0"), Code::INVALID_HEADER),
    ];
    for (request, code) in cases {
        let error = check(refused(request), code, code.name());
        assert!(error.image().is_none() && error.http_status() == 0);
    }
    assert_eq!(downloader.set_header("A\n", None).unwrap_err().code(), Code::INVALID_HEADER);
    assert_eq!(downloader.current_count(), 0);
}

#[test]
fn what_a_downloader_cannot_be_is_refused() {
    let error = Downloader::builder().ca_file("/no/such/file.pem").build().unwrap_err();
    assert_eq!(error.code(), Code::INVALID_OPERATION, "{error}");
    assert_eq!(Downloader::builder().user_agent("a\nb").build().unwrap_err().code(), Code::INVALID_HEADER);
    assert_eq!(Downloader::builder().user_agent("a\0b").build().unwrap_err().code(), Code::INVALID_HEADER);
    assert_eq!(Downloader::builder().max_concurrent(10_001).build().unwrap_err().code(), Code::INVALID_ARGUMENT);
    assert_eq!(Downloader::builder().max_redirects(101).build().unwrap_err().code(), Code::INVALID_ARGUMENT);
}

#[test]
fn a_refused_connection_has_a_code() {
    let downloader = Downloader::new().unwrap();
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let result = get(&downloader, Request::new(format!("http://{address}/a.png")));
    check(result, Code::CONNECT_FAILED, "IMGDL_ERROR_CONNECT_FAILED");
}

#[test]
fn salvaged_pixels_come_with_the_error() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/baseline.jpg?short_by=40000");
    let salvage = DecodeOptions::new().salvage();
    let error =
        check(get(&downloader, Request::new(&*url).decode_options(salvage)), Code::TRUNCATED, "IMGDL_ERROR_TRUNCATED");
    let image = error.into_image().expect("pixels");
    assert!(!image.is_complete() && image.width() == 1200);
    assert_eq!(image.to_vec().len(), 1200 * 800 * 4);
    assert!(get(&downloader, Request::new(&*url)).unwrap_err().image().is_none());
}

#[test]
fn requests_for_a_dropped_executor_are_refused() {
    let pumped = PumpedExecutor::new().unwrap();
    let executor = pumped.executor();
    drop(pumped);
    let downloader = Downloader::new().unwrap();
    let error = downloader.download(Request::new("http://127.0.0.1/").executor(executor)).unwrap_err();
    assert_eq!((error.code(), error.code().number()), (Code::INVALID_HANDLE, 2101));
}
