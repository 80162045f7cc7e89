//! Handles: dropped in any order, used from any thread; what must be Send or Sync is, and what must not be is not.

mod support;

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::mpsc;
use std::thread;

use imgdl::*;
use support::*;

fn is_send<T: Send + 'static>() {}
fn is_sync<T: Sync>() {}
fn is_value<T: Clone + Debug + PartialEq + Eq + Hash>() {}
fn is_small_value<T: Copy + Debug + PartialEq + Eq + Hash>() {}

#[test]
fn the_compiler_knows_what_may_cross_threads() {
    is_send::<Downloader>();
    is_sync::<Downloader>();
    is_send::<Token>();
    is_sync::<Token>();
    is_send::<Image>();
    is_sync::<Image>();
    is_send::<Body>();
    is_sync::<Body>();
    is_send::<Executor>();
    is_sync::<Executor>();
    is_send::<Error>();
    is_sync::<Error>();
    is_send::<Builder>();
    is_send::<Request>();
    is_send::<Download>();
    is_send::<Decoder>();
    is_send::<PumpedExecutor>();
    is_sync::<Builder>();
    is_send::<DecodeOptions>();
    is_sync::<DecodeOptions>();
    is_send::<Hooks>();
    is_sync::<Hooks>();
    is_send::<Continuation<question::Request>>();
    is_send::<Replacement>();
    is_send::<Batch>();
    is_sync::<Batch>();
    is_send::<BatchOptions>();
    is_send::<Transfer>();
    is_send::<RegisteredCoder>();
    is_sync::<RegisteredCoder>();
    is_send::<Fetch>();
    is_sync::<Fetch>();
    is_send::<ImageStream>();
    is_sync::<ImageStream>();
    is_send::<NextImage<'static>>();
    is_send::<Map<std::vec::IntoIter<String>>>();
    is_send::<Unordered<std::vec::IntoIter<String>>>();
    is_send::<Cache>();
    is_sync::<Cache>();
    is_send::<CacheBuilder>();
    is_send::<Metrics>();
    is_sync::<Metrics>();
    is_send::<Stats>();
    is_sync::<Stats>();
}

#[test]
fn values_are_copied_compared_and_kept_in_sets() {
    is_small_value::<BatchProgress>();
    is_small_value::<CacheEvent<'static>>();
    is_small_value::<CacheMode>();
    is_small_value::<CacheOutcome>();
    is_small_value::<CanvasSize>();
    is_small_value::<Code>();
    is_small_value::<CoderOptions>();
    is_small_value::<Colour>();
    is_small_value::<ColourNotes>();
    is_small_value::<Events>();
    is_small_value::<Format>();
    is_small_value::<ImageInfo>();
    is_small_value::<Observed>();
    is_small_value::<Order>();
    is_small_value::<PixelFormat>();
    is_small_value::<Placed>();
    is_small_value::<Priority>();
    is_small_value::<Rectangle>();
    is_small_value::<Retry>();
    is_small_value::<Shutdown>();
    is_small_value::<TrimLevel>();
    is_value::<CacheEntry>();
    is_value::<CacheStatistics>();
    is_value::<Histogram>();
    is_value::<Hop>();
    is_value::<Metrics>();
    is_value::<Observation<'static>>();
    is_value::<Replacement>();
    is_value::<Response>();
    is_value::<Stats>();

    let downloader = Downloader::builder().allow_data_urls().build().unwrap();
    let before = downloader.stats().unwrap();
    assert_eq!(before, before.clone());
    downloader.get("data:,x").unwrap_err();
    assert_ne!(before, downloader.stats().unwrap());
    let (of_nothing, of_one) = (before.queue, downloader.stats().unwrap().queue);
    assert_eq!(HashSet::from([of_nothing.clone(), of_one, of_nothing]).len(), 2);
}

/// Ambiguous, and so not compiled, if the type is Sync.
trait NotSync<Proof> {
    fn holds() {}
}
impl<T: ?Sized> NotSync<()> for T {}
struct Sync_;
impl<T: ?Sized + Sync> NotSync<Sync_> for T {}

#[test]
fn one_at_a_time_is_not_sync() {
    <PumpedExecutor as NotSync<_>>::holds();
    <Decoder as NotSync<_>>::holds();
    <Transfer as NotSync<_>>::holds();
}

#[test]
fn an_image_outlives_everything_and_is_read_on_another_thread() {
    let origin = Origin::start();
    let expected = decode(&picture("opaque.png"), &DecodeOptions::new()).unwrap();
    let image = {
        let downloader = Downloader::new().unwrap();
        let image = downloader.get(origin.url("/pictures/opaque.png")).unwrap();
        downloader.close().unwrap();
        drop(origin);
        image
    };
    let copy = image.clone();
    let first = thread::spawn(move || image.pixels().to_vec()).join().unwrap();
    assert!(first == expected.pixels() && copy.pixels() == expected.pixels());
}

#[test]
fn a_body_outlives_its_token() {
    let origin = Origin::start();
    let body = {
        let downloader = Downloader::new().unwrap();
        get(&downloader, Request::new(origin.url("/pictures/opaque.png")).body_only()).unwrap().body.unwrap()
    };
    let clone = body.clone();
    drop(body);
    assert!(thread::spawn(move || clone[..] == picture("opaque.png")[..]).join().unwrap());
}

#[test]
fn handles_are_dropped_in_any_order() {
    let origin = Origin::start();
    const ORDERS: [[usize; 4]; 24] = orders();
    for (index, order) in ORDERS.iter().enumerate() {
        let gate = format!("order{index}");
        let pumped = PumpedExecutor::new().unwrap();
        let downloader = Downloader::new().unwrap();
        let drops = Drops::default();
        let guard = drops.guard();
        let (sender, receiver) = mpsc::channel();
        let url = origin.url(&format!("/pictures/lossy.webp?hold_after=100&gate={gate}"));
        let request = Request::new(&*url).executor(&pumped).on_event(Events::ALL, move |_, event| {
            guard.is_here();
            drop(sender.send(Seen::of(event)));
        });
        let watched = downloader.download(request).unwrap();
        let quiet = downloader.download(Request::new(&*url)).unwrap();
        origin.await_gate(&gate, 1);
        let (mut pumped, mut downloader) = (Some(pumped), Some(downloader));
        let (mut watched, mut quiet) = (Some(watched), Some(quiet));
        for step in order {
            match step {
                0 => drop(pumped.take()),
                1 => drop(downloader.take()),
                2 => drop(watched.take()),
                _ => drop(quiet.take()),
            }
        }
        // What was accepted runs to its end, and the closure is dropped.
        origin.open(&gate);
        while receiver.recv_timeout(PATIENCE).is_ok() {}
        assert_eq!(drops.count(), 1, "{order:?}");
    }
}

/// All orders of four things.
const fn orders() -> [[usize; 4]; 24] {
    let mut all = [[0; 4]; 24];
    let (mut count, mut code) = (0, 0);
    while code < 256 {
        let order = [code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6];
        if 1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3] == 15 {
            all[count] = order;
            count += 1;
        }
        code += 1;
    }
    all
}

#[test]
fn dropping_the_downloader_lets_downloads_finish() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let url = origin.url("/pictures/opaque.png?hold_after=100&gate=late");
    let token = downloader.download(Request::new(url)).unwrap();
    origin.await_gate("late", 1);
    drop(downloader);
    origin.open("late");
    assert_eq!(wait(&token).unwrap().image.unwrap().width(), 900);
}

#[test]
fn one_downloader_serves_many_threads() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    thread::scope(|scope| {
        for number in 0..6 {
            let (downloader, origin) = (&downloader, &origin);
            scope.spawn(move || {
                for turn in 0..4 {
                    let url = origin.url(&format!("/pictures/lossy.webp?n={}", (number + turn) % 3));
                    assert_eq!(downloader.get(&url).unwrap().width(), 1200);
                }
            });
        }
    });
    downloader.wait_idle_timeout(PATIENCE).unwrap();
    assert_eq!(downloader.current_count(), 0);
}

#[test]
fn a_pumped_executor_may_move_to_another_thread() {
    let origin = Origin::start();
    let downloader = Downloader::new().unwrap();
    let pumped = PumpedExecutor::new().unwrap();
    let (sender, receiver) = mpsc::channel();
    let (callback, done) = sets_at_the_end(sender);
    let executor = pumped.executor();
    let dispatcher = thread::spawn(move || pump_until(&pumped, &done));
    // Named here, run there.
    let request = Request::new(origin.url("/pictures/opaque.png")).executor(executor).on_event(Events::ALL, callback);
    downloader.download(request).unwrap();
    assert!(finished(&all(&receiver)).is_ok());
    dispatcher.join().unwrap();
}
