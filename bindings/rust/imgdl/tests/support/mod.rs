//! What the tests share: a scripted origin as a child process, pictures, waiting without sleeping.

// Each test program uses a part of this.
#![allow(dead_code)]

use std::collections::HashMap;
use std::env;
use std::fs;
use std::future::Future;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::io::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant, SystemTime};

use imgdl::{Code, Download, Downloader, Error, Event, Image, PumpedExecutor, Request, Token};

/// A bound on failure: what succeeds does not wait for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A program of the tests: where the environment says, where make puts it, or where swift build does.
fn program(variable: &str, name: &str) -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let places = match env::var_os(variable) {
        Some(path) => vec![PathBuf::from(path)],
        None => vec![repository.join("build/bin").join(name), repository.join(".build/debug").join(name)],
    };
    let found = places.into_iter().find(|place| place.exists());
    found.unwrap_or_else(|| panic!("{name} is missing: run make, or set {variable}"))
}

/// A folder with the test pictures, and a few files that are none. They are drawn once for all test programs, at the
/// same time too: the folder gets its name when it is complete.
pub fn pictures() -> PathBuf {
    static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut known = FOLDER.lock().unwrap();
    known.get_or_insert_with(|| draw(&program("IMGDL_PICTURES", "imgdl-pictures"))).clone()
}

fn draw(program: &Path) -> PathBuf {
    let metadata = fs::metadata(program).unwrap();
    let age = metadata.modified().unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Another program may draw others.
    let folder = target.join(format!("pictures-{age}-{}", metadata.len()));
    if folder.exists() {
        return folder;
    }
    let mine = target.join(format!("drawing-{}", std::process::id()));
    fs::create_dir_all(&mine).unwrap();
    let status = Command::new(program).arg(&mine).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    fs::write(mine.join("page.html"), "<!DOCTYPE html><title>Not a picture</title>").unwrap();
    fs::copy(mine.join("opaque.png"), mine.join("opaque@3x.png")).unwrap();
    if let Err(error) = fs::rename(&mine, &folder) {
        assert!(folder.exists(), "{error}");
        fs::remove_dir_all(&mine).unwrap();
    }
    folder
}

pub fn picture(name: &str) -> Vec<u8> {
    fs::read(pictures().join(name)).unwrap()
}

/// A JPEG of one gray, nearly; with a profile, and with a JPEG as the thumbnail in its EXIF.
pub fn jpeg(width: u16, height: u16, gray: u8, icc: Option<&[u8]>, thumbnail: Option<&[u8]>) -> Vec<u8> {
    fn segment(file: &mut Vec<u8>, marker: u8, parts: &[&[u8]]) {
        let content = parts.concat();
        file.extend([0xFF, marker]);
        file.extend((content.len() as u16 + 2).to_be_bytes());
        file.extend(content);
    }
    let mut file = vec![0xFF, 0xD8];
    if let Some(thumbnail) = thumbnail {
        let mut exif = b"II*\0\x08\0\0\0\0\0\x0E\0\0\0\x02\0".to_vec();
        for (tag, value) in [(0x201_u16, 44_u32), (0x202, thumbnail.len() as u32)] {
            exif.extend(tag.to_le_bytes());
            exif.extend(b"\x04\0\x01\0\0\0");
            exif.extend(value.to_le_bytes());
        }
        segment(&mut file, 0xE1, &[b"Exif\0\0", &exif, &[0; 4], thumbnail]);
    }
    if let Some(icc) = icc {
        segment(&mut file, 0xE2, &[b"ICC_PROFILE\0\x01\x01", icc]);
    }
    segment(&mut file, 0xDB, &[&[0], &[1; 64]]);
    segment(&mut file, 0xC0, &[&[8], &height.to_be_bytes(), &width.to_be_bytes(), &[1, 1, 0x11, 0]]);
    let difference = 8 * (i32::from(gray) - 128);
    let size = 32 - difference.unsigned_abs().leading_zeros();
    // Codes: 0 for no difference, 10 for one of that many bits; 0 for the end of a block.
    let none = [0; 14];
    segment(&mut file, 0xC4, &[&[0, 1, 1], &none, &[0, size.max(1) as u8]]);
    segment(&mut file, 0xC4, &[&[0x10, 1, 0], &none, &[0]]);
    segment(&mut file, 0xDA, &[&[1, 1, 0, 0, 63, 0]]);
    let mut bits = String::from("00");
    if difference != 0 {
        let number = if difference > 0 { difference } else { difference + (1 << size) - 1 };
        bits = format!("10{number:0width$b}0", width = size as usize);
    }
    let blocks = (usize::from(width) + 7) / 8 * ((usize::from(height) + 7) / 8);
    bits.push_str(&"00".repeat(blocks - 1));
    bits.push_str(&"1".repeat((8 - bits.len() % 8) % 8));
    for start in (0..bits.len()).step_by(8) {
        let byte = u8::from_str_radix(&bits[start..start + 8], 2).unwrap();
        file.push(byte);
        if byte == 0xFF {
            file.push(0);
        }
    }
    file.extend([0xFF, 0xD9]);
    file
}

/// An ICC profile (ICC.1:2010) that says that pixels are proportional to light.
pub fn linear_gray() -> Vec<u8> {
    let white: Vec<u8> = [0xF6D6_u32, 0x10000, 0xD32D].iter().flat_map(|part| part.to_be_bytes()).collect();
    let mut profile = b"\0\0\0\xC8lcms\x02\x40\0\0mntrGRAYXYZ ".to_vec();
    profile.extend([0; 12]);
    profile.extend(b"acsp");
    profile.extend([0; 28]);
    profile.extend(&white);
    profile.extend([0; 48]);
    for number in [2, u32::from_be_bytes(*b"wtpt"), 156, 20, u32::from_be_bytes(*b"kTRC"), 176, 12] {
        profile.extend(number.to_be_bytes());
    }
    profile.extend(b"XYZ \0\0\0\0");
    profile.extend(&white);
    profile.extend(b"curv");
    profile.extend([0; 8]);
    let length = profile.len() as u32;
    profile[..4].copy_from_slice(&length.to_be_bytes());
    profile
}

/// Width and height, from the pictures' program.
pub const PICTURES: &[(&str, u32, u32, imgdl::Format)] = &[
    ("baseline.jpg", 1200, 800, imgdl::Format::Jpeg),
    ("progressive.jpg", 1280, 853, imgdl::Format::Jpeg),
    ("opaque.png", 900, 600, imgdl::Format::Png),
    ("adam7.png", 720, 480, imgdl::Format::Png),
    ("lossy.webp", 1200, 800, imgdl::Format::WebP),
    ("lossless.webp", 900, 600, imgdl::Format::WebP),
];

/// A server that does what the URL says; ends with this value, or with this process.
pub struct Origin {
    child: Child,
    base: String,
    address: String,
    /// What it has said, and what it says further.
    values: Mutex<(HashMap<String, String>, BufReader<ChildStdout>)>,
}

impl Origin {
    pub fn start() -> Origin {
        Origin::start_with(&[])
    }

    /// Such as "--tls", "valid". The methods for gates and the log speak no TLS.
    pub fn start_with(options: &[&str]) -> Origin {
        let mut child = Command::new(program("IMGDL_ORIGIN", "imgdl-origin"))
            .args(["--until-eof", "--root"])
            .arg(pictures())
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let base = line.trim().rsplit("listening on ").next().unwrap().to_string();
        let address = base.split("://").nth(1).unwrap().to_string();
        assert!(address.starts_with("127.0.0.1:"), "the origin says {line:?}");
        Origin { child, base, address, values: Mutex::new((HashMap::new(), lines)) }
    }

    /// What it says of itself, such as "ca_file".
    pub fn value(&self, name: &str) -> String {
        let (values, lines) = &mut *self.values.lock().unwrap();
        while !values.contains_key(name) {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the origin says no {name}");
            let (known, value) = line.trim_end().split_once('=').unwrap();
            values.insert(known.to_string(), value.to_string());
        }
        values[name].clone()
    }

    /// The host and the port.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Status and body, by a bare socket.
    pub fn ask(&self, path: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(socket, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_string())
    }

    /// What it was asked, as JSON.
    pub fn log(&self) -> String {
        self.expect("/_log")
    }

    fn expect(&self, path: &str) -> String {
        let (status, body) = self.ask(path);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub fn open(&self, gate: &str) {
        self.expect(&format!("/_gate/{gate}/open"));
    }

    /// Until so many answers have come to the gate.
    pub fn await_gate(&self, gate: &str, count: u32) {
        self.expect(&format!("/_gate/{gate}/reached?count={count}"));
    }

    /// Until the log says what the query does, such as "requests=2".
    pub fn await_log(&self, query: &str) {
        self.expect(&format!("/_wait?{query}"));
    }

    /// How many requests came for a path.
    pub fn count(&self, path: &str) -> u32 {
        let log = self.log();
        let counts = log.split("\"counts\":{").nth(1).unwrap().split('}').next().unwrap();
        let entry = counts.split(',').find_map(|entry| entry.strip_prefix(&format!("\"{path}\":")));
        entry.map_or(0, |count| count.parse().unwrap())
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // The end of its standard input is the end of it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// An event, to keep.
#[derive(Clone, Debug)]
pub enum Seen {
    Started,
    Response(i32, Option<u64>),
    Header(u32, u32),
    Progress(u64, Option<u64>),
    Partial(Image),
    Finished(Box<Result<Download, Error>>),
}

impl Seen {
    pub fn of(event: Event<'_>) -> Seen {
        match event {
            Event::Started => Seen::Started,
            Event::Response(response) => Seen::Response(response.status, response.content_length),
            Event::Header(info) => Seen::Header(info.width, info.height),
            Event::Progress { received, expected } => Seen::Progress(received, expected),
            Event::Partial(image) => Seen::Partial(image.clone()),
            Event::Finished(result) => Seen::Finished(Box::new(result.cloned().map_err(Clone::clone))),
            other => panic!("an event of an unknown kind: {other:?}"),
        }
    }

    pub fn kind(&self) -> u32 {
        match self {
            Seen::Started => 0,
            Seen::Response(..) => 1,
            Seen::Header(..) => 2,
            Seen::Progress(..) | Seen::Partial(_) => 3,
            Seen::Finished(_) => 4,
        }
    }
}

/// A callback that sends what it sees, and its other end.
pub fn recorder() -> (impl FnMut(&Token, Event<'_>) + Send + 'static, Receiver<Seen>) {
    let (sender, receiver) = mpsc::channel();
    // The test may have gone, having seen enough.
    (move |_: &Token, event: Event<'_>| drop(sender.send(Seen::of(event))), receiver)
}

/// Everything that comes until the closure is dropped.
pub fn all(receiver: &Receiver<Seen>) -> Vec<Seen> {
    let mut seen = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    loop {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(event) => seen.push(event),
            Err(mpsc::RecvTimeoutError::Disconnected) => return seen,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the closure lives on after {seen:?}"),
        }
    }
}

/// The first that fits.
pub fn until<T>(receiver: &Receiver<Seen>, fits: impl Fn(&Seen) -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let event = receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).expect("another event");
        if let Some(found) = fits(&event) {
            return found;
        }
    }
}

pub fn finished(seen: &[Seen]) -> &Result<Download, Error> {
    match seen.last() {
        Some(Seen::Finished(result)) => result,
        other => panic!("the last event is {other:?}"),
    }
}

pub fn wait(token: &Token) -> Result<Download, Error> {
    let result = token.wait_timeout(PATIENCE);
    assert!(!matches!(&result, Err(error) if error.code() == Code::WAIT_TIMEOUT), "it does not end");
    result
}

/// Downloads without a callback.
pub fn get(downloader: &Downloader, request: Request) -> Result<Download, Error> {
    wait(&downloader.download(request)?)
}

/// Counts how often closures that hold one are dropped.
#[derive(Clone, Default)]
pub struct Drops(Arc<AtomicUsize>);

pub struct CountsItsDrop(Drops);

impl Drops {
    pub fn guard(&self) -> CountsItsDrop {
        CountsItsDrop(self.clone())
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Until so many were dropped; more are a failure.
    pub fn wait_for(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.count() < count {
            assert!(Instant::now() < deadline, "{} of {count} were dropped", self.count());
            std::thread::yield_now();
        }
        assert_eq!(self.count(), count);
    }
}

impl CountsItsDrop {
    /// Closures capture only what they name.
    pub fn is_here(&self) {}
}

impl Drop for CountsItsDrop {
    fn drop(&mut self) {
        (self.0).0.fetch_add(1, Ordering::SeqCst);
    }
}

#[repr(C)]
struct PollDescriptor {
    descriptor: i32,
    events: i16,
    returned: i16,
}

extern "C" {
    fn poll(descriptors: *mut PollDescriptor, count: std::os::raw::c_ulong, timeout: i32) -> i32;
}

/// Whether callbacks wait there, within the time.
pub fn is_readable(executor: &PumpedExecutor, timeout: Duration) -> bool {
    let mut descriptor = PollDescriptor { descriptor: executor.as_raw_fd(), events: 1, returned: 0 };
    // SAFETY: one descriptor, alive during the call.
    unsafe { poll(&mut descriptor, 1, timeout.as_millis() as i32) == 1 }
}

/// Runs an executor on this thread until the flag is set.
pub fn pump_until(executor: &PumpedExecutor, done: &AtomicBool) {
    let deadline = Instant::now() + PATIENCE;
    while !done.load(Ordering::SeqCst) {
        assert!(is_readable(executor, deadline.saturating_duration_since(Instant::now())), "nothing more to dispatch");
        executor.dispatch(0).unwrap();
    }
}

/// A flag that is set when a download has finished: for `pump_until`.
pub fn sets_at_the_end(sender: Sender<Seen>) -> (impl FnMut(&Token, Event<'_>) + Send + 'static, Arc<AtomicBool>) {
    let flag = Arc::new(AtomicBool::new(false));
    let done = flag.clone();
    let callback = move |_: &Token, event: Event<'_>| {
        let seen = Seen::of(event);
        let is_last = matches!(seen, Seen::Finished(_));
        drop(sender.send(seen));
        if is_last {
            done.store(true, Ordering::SeqCst);
        }
    };
    (callback, flag)
}

/// A waker's other end: counts how often it is woken.
#[derive(Default)]
pub struct Alarm {
    count: Mutex<usize>,
    rings: Condvar,
}

impl Wake for Alarm {
    fn wake(self: Arc<Alarm>) {
        *self.count.lock().unwrap() += 1;
        self.rings.notify_all();
    }
}

impl Alarm {
    pub fn new() -> Arc<Alarm> {
        Arc::default()
    }

    pub fn count(&self) -> usize {
        *self.count.lock().unwrap()
    }

    /// Until it has been woken more often than that.
    pub fn wait_beyond(&self, count: usize) -> usize {
        let now = self.count.lock().unwrap();
        let (now, timeout) = self.rings.wait_timeout_while(now, PATIENCE, |now| *now <= count).unwrap();
        assert!(!timeout.timed_out(), "nothing wakes it");
        *now
    }
}

/// Polls once.
pub fn poll_once<F: Future + Unpin>(future: &mut F, alarm: &Arc<Alarm>) -> Poll<F::Output> {
    let waker = Waker::from(alarm.clone());
    std::pin::Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// The smallest runtime: polls only when woken.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let (alarm, mut future, mut seen) = (Alarm::new(), Box::pin(future), 0);
    loop {
        match poll_once(&mut future, &alarm) {
            Poll::Ready(output) => return output,
            Poll::Pending => seen = alarm.wait_beyond(seen),
        }
    }
}
