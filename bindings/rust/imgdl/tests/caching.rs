//! The HTTP cache: modes, outcomes, queries, statistics, events (features O2, O3, X15, B11).

mod support;

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use imgdl::*;
use support::*;

const FRESH: &str = "header=Cache-Control:max-age=600";

/// An empty folder, which goes with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn outcome(downloader: &Downloader, request: Request) -> CacheOutcome {
    let token = downloader.download(request.body_only()).unwrap();
    wait(&token).unwrap().response.unwrap().cache_outcome
}

fn code(downloader: &Downloader, request: Request) -> Code {
    wait(&downloader.download(request).unwrap()).unwrap_err().code()
}

fn modes(cache: &Cache) {
    let origin = Origin::start();
    let downloader = Downloader::builder().cache(cache).build().unwrap();
    let url = origin.url(&format!("/pictures/opaque.png?etag=v1&{FRESH}"));
    let request = || Request::new(&url);
    assert_eq!(code(&downloader, request().cache(CacheMode::Only)), Code::NOT_CACHED);
    assert_eq!(outcome(&downloader, request().cache(CacheMode::Off)), CacheOutcome::Network);
    assert_eq!(cache.query(&url).unwrap(), None);
    assert_eq!(outcome(&downloader, request()), CacheOutcome::Network);
    assert_eq!(outcome(&downloader, request()), CacheOutcome::Hit);
    assert_eq!(outcome(&downloader, request().cache(CacheMode::Refresh)), CacheOutcome::Validated);
    assert_eq!(outcome(&downloader, request().cache(CacheMode::Reload)), CacheOutcome::Network);
    assert_eq!(code(&downloader, request().ignore_cached()), Code::NOT_MODIFIED);
    assert_eq!(downloader.get(&url).unwrap().width(), 900);

    let entry = cache.query(&url).unwrap().unwrap();
    assert_eq!((entry.status, entry.body_bytes, entry.is_complete), (200, picture("opaque.png").len() as u64, true));
    assert!(entry.fresh_seconds > 500 && entry.used >= entry.stored);
    assert!(entry.stored > SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    cache.flush().unwrap();
    let seen = cache.statistics().unwrap();
    assert_eq!((seen.validated, seen.damaged), (1, 0));
    assert!(seen.misses >= 1 && seen.hits + seen.memory_hits >= 2 && seen.entries + seen.memory_entries >= 1);

    cache.remove_older(Duration::from_secs(3600)).unwrap();
    assert!(cache.query(&url).unwrap().is_some());
    cache.remove(&url).unwrap();
    assert_eq!(cache.query(&url).unwrap(), None);
    assert_eq!(outcome(&downloader, request()), CacheOutcome::Network);
    cache.clear().unwrap();
    assert_eq!(cache.query(&url).unwrap(), None);
    cache.flush().unwrap();
}

#[test]
fn modes_and_outcomes_in_memory() {
    modes(&Cache::builder().max_memory_bytes(8 << 20).open().unwrap());
}

#[test]
fn modes_and_outcomes_on_disk() {
    let folder = Folder::new("modes");
    modes(&Cache::open(&folder.0).unwrap());
}

#[test]
fn how_stale_an_answer_may_be() {
    let origin = Origin::start();
    let cache = Cache::builder().open().unwrap();
    let url = origin.url("/pictures/opaque.png?header=Age:3660&header=Cache-Control:max-age=60");
    let stored = Downloader::builder().cache(&cache).build().unwrap();
    assert_eq!(outcome(&stored, Request::new(&url)), CacheOutcome::Network);
    let hour = Duration::from_secs(3600);
    let limits = [Duration::ZERO, Duration::from_nanos(1), hour - Duration::from_secs(1), 2 * hour, Duration::MAX];
    for limit in limits {
        let bounded = Downloader::builder().cache(&cache).max_stale(limit).build().unwrap();
        let only = || Request::new(&url).cache(CacheMode::Only);
        if limit > hour {
            assert_eq!(outcome(&bounded, only()), CacheOutcome::Stale);
        } else {
            assert_eq!(code(&bounded, only()), Code::NOT_CACHED);
        }
        assert_eq!(outcome(&bounded, only().max_stale(Duration::MAX)), CacheOutcome::Stale);
        assert_eq!(code(&bounded, only().max_stale(Duration::ZERO)), Code::NOT_CACHED);
    }
}

#[test]
fn downloaders_share_a_cache_that_closes_with_the_last_of_them() {
    let origin = Origin::start();
    let folder = Folder::new("sharing");
    let url = origin.url(&format!("/pictures/opaque.png?{FRESH}"));
    let drops = Drops::default();
    let guard = drops.guard();
    let cache = Cache::builder()
        .directory(&folder.0)
        .max_bytes(64 << 20)
        .max_image_bytes(8 << 20)
        .max_partial_bytes(1 << 20)
        .max_age(Duration::from_secs(3600))
        .on_event(move |_| {
            let _ = &guard;
        })
        .open()
        .unwrap();
    let first = Downloader::builder().cache(&cache).cache_mode(CacheMode::Use).finish_nearly_done().build().unwrap();
    let clone = cache.clone();
    drop(cache);
    let second = Downloader::builder().cache(&clone).build().unwrap();
    drop(clone);
    assert_eq!(outcome(&first, Request::new(&url)), CacheOutcome::Network);
    assert_eq!(outcome(&second, Request::new(&url)), CacheOutcome::Hit);
    first.close().unwrap();
    assert_eq!(outcome(&second, Request::new(&url).cache(CacheMode::Only)), CacheOutcome::Hit);
    assert_eq!(drops.count(), 0);
    second.close().unwrap();
    assert_eq!(drops.count(), 1);
    // What was stored is there for the next one.
    let cache = Cache::open(&folder.0).unwrap();
    assert!(cache.query(&url).unwrap().unwrap().is_complete);
}

#[test]
fn a_cancelled_download_is_continued() {
    let origin = Origin::start();
    let cache = Cache::builder().open().unwrap();
    let downloader = Downloader::builder().cache(&cache).build().unwrap();
    let url = origin.url(&format!("/pictures/baseline.jpg?etag=v1&hold_after=3000&gate=half&{FRESH}"));
    let (sender, receiver) = mpsc::channel();
    let request = Request::new(&url).on_event(Events::PROGRESS, move |token, event| match event {
        Event::Progress { received, .. } if received >= 3000 => token.cancel().unwrap(),
        Event::Finished(result) => sender.send(result.is_err()).unwrap(),
        _ => {}
    });
    downloader.download(request).unwrap();
    assert!(receiver.recv_timeout(PATIENCE).unwrap());
    // What a cancelled download leaves comes after its end.
    let deadline = Instant::now() + PATIENCE;
    while cache.query(&url).unwrap().is_none() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert!(!cache.query(&url).unwrap().unwrap().is_complete);
    origin.open("half");
    let token = downloader.download(Request::new(&url).body_only()).unwrap();
    let download = wait(&token).unwrap();
    assert_eq!(download.response.unwrap().cache_outcome, CacheOutcome::Resumed);
    assert_eq!(&*download.body.unwrap(), &*picture("baseline.jpg"));
    assert_eq!(cache.statistics().unwrap().resumed, 1);
}

#[test]
fn a_directory_that_cannot_be_used_is_an_event() {
    let folder = Folder::new("events");
    let path = folder.0.join("file");
    fs::write(&path, "").unwrap();
    let (sender, receiver) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let cache = Cache::builder()
        .directory(&path)
        .on_event(move |event| {
            if let CacheEvent::Unwritable(message) = event {
                sender.lock().unwrap().send(message.to_string()).unwrap();
            }
            panic!("which goes no further");
        })
        .open()
        .unwrap();
    assert!(receiver.recv_timeout(PATIENCE).unwrap().contains(path.to_str().unwrap()));
    assert!(!cache.statistics().unwrap().is_writable);
    let origin = Origin::start();
    let downloader = Downloader::builder().cache(&cache).build().unwrap();
    assert_eq!(downloader.get(origin.url("/pictures/opaque.png")).unwrap().width(), 900);
}

#[test]
fn what_cannot_be() {
    let drops = Drops::default();
    let guard = drops.guard();
    let listening = Cache::builder().on_event(move |_| {
        let _ = &guard;
    });
    assert_eq!(listening.directory("").open().unwrap_err().code(), Code::INVALID_ARGUMENT);
    assert_eq!(drops.count(), 1);
    assert_eq!(Cache::open("a\0b").unwrap_err().code(), Code::INVALID_ARGUMENT);
    assert_eq!(Cache::builder().max_bytes(u64::MAX).open().unwrap_err().code(), Code::INVALID_ARGUMENT);
    let cache = Cache::builder().open().unwrap();
    assert_eq!(cache.query("no URL").unwrap_err().code(), Code::INVALID_URL);
    assert_eq!(cache.query("http://a\0b").unwrap_err().code(), Code::INVALID_URL);
    assert_eq!(cache.remove("file:///etc/passwd").unwrap_err().code(), Code::UNSUPPORTED_SCHEME);
    let downloader = Downloader::new().unwrap();
    assert_eq!(code(&downloader, Request::new("http://127.0.0.1:9/").cache(CacheMode::Only)), Code::NOT_CACHED);
}

#[test]
fn a_cache_crosses_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<Cache>();
}
