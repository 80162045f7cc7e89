//! Many downloads, few at a time, as an iterator.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::iter::{Enumerate, Fuse, FusedIterator};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::downloader::Downloader;
use crate::error::Result;
use crate::event::Download;
use crate::fetch::Fetch;
use crate::request::Request;

/// The results of many requests, in their order: see [`Downloader::map`]. Dropping it cancels what is under way.
#[must_use = "nothing is downloaded before the first result is asked for"]
pub struct Map<I: Iterator> {
    downloader: Downloader,
    requests: Fuse<I>,
    in_flight: usize,
    fetches: VecDeque<Fetch>,
}

impl<I: Iterator> Map<I>
where
    I::Item: Into<Request>,
{
    pub(crate) fn new(downloader: &Downloader, requests: I) -> Map<I> {
        let in_flight = 2 * downloader.max_concurrent().max(1) as usize;
        Map { downloader: downloader.clone(), requests: requests.fuse(), in_flight, fetches: VecDeque::new() }
    }

    /// How many are asked for ahead of the one that is given next: at least 1, and by default twice the downloader's
    /// [`max_concurrent`](crate::Builder::max_concurrent). So many results are in memory at most.
    pub fn in_flight(self, count: usize) -> Map<I> {
        Map { in_flight: count.max(1), ..self }
    }

    /// As they end, each with the number of its request, from 0: one that is slow holds up no other.
    pub fn unordered(self) -> Unordered<I> {
        Unordered {
            downloader: self.downloader,
            requests: self.requests.enumerate(),
            in_flight: self.in_flight,
            fetches: BTreeMap::new(),
            woken: Arc::new(Woken::default()),
        }
    }
}

impl<I: Iterator> Iterator for Map<I>
where
    I::Item: Into<Request>,
{
    type Item = Result<Download>;

    fn next(&mut self) -> Option<Result<Download>> {
        while self.fetches.len() < self.in_flight {
            match self.requests.next() {
                Some(request) => self.fetches.push_back(self.downloader.fetch(request)),
                None => break,
            }
        }
        self.fetches.pop_front().map(Fetch::wait)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        left(self.requests.size_hint(), self.fetches.len())
    }
}

impl<I: Iterator> FusedIterator for Map<I> where I::Item: Into<Request> {}

impl<I: Iterator> fmt::Debug for Map<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} in flight)", self.fetches.len())
    }
}

/// The results of many requests, as they end: see [`Map::unordered`]. Dropping it cancels what is under way.
#[must_use = "nothing is downloaded before the first result is asked for"]
pub struct Unordered<I: Iterator> {
    downloader: Downloader,
    requests: Enumerate<Fuse<I>>,
    in_flight: usize,
    fetches: BTreeMap<usize, Fetch>,
    woken: Arc<Woken>,
}

/// Numbers of fetches that are to be asked.
#[derive(Default)]
struct Woken {
    numbers: Mutex<VecDeque<usize>>,
    changed: Condvar,
}

impl Woken {
    fn lock(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) -> usize {
        let mut numbers = self.lock();
        loop {
            match numbers.pop_front() {
                Some(number) => return number,
                None => numbers = self.changed.wait(numbers).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

struct Waking {
    number: usize,
    woken: Arc<Woken>,
}

impl Wake for Waking {
    fn wake(self: Arc<Waking>) {
        self.woken.lock().push_back(self.number);
        self.woken.changed.notify_one();
    }
}

impl<I: Iterator> Unordered<I> {
    /// Its result if it has ended, else it wakes.
    fn ask(&mut self, number: usize) -> Option<Result<Download>> {
        let fetch = self.fetches.get_mut(&number)?;
        let waker = Waker::from(Arc::new(Waking { number, woken: self.woken.clone() }));
        match Pin::new(fetch).poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => None,
            Poll::Ready(result) => {
                self.fetches.remove(&number);
                Some(result)
            }
        }
    }

    /// The first, if this thread cannot wait for it: any other wakes this thread sooner or later.
    fn hopeless(&mut self) -> Option<(usize, Result<Download>)> {
        let (&number, fetch) = self.fetches.iter().next()?;
        let error = fetch.can_wait().err()?;
        self.fetches.remove(&number);
        Some((number, Err(error)))
    }
}

impl<I: Iterator> Iterator for Unordered<I>
where
    I::Item: Into<Request>,
{
    type Item = (usize, Result<Download>);

    fn next(&mut self) -> Option<(usize, Result<Download>)> {
        while self.fetches.len() < self.in_flight {
            match self.requests.next() {
                Some((number, request)) => {
                    self.fetches.insert(number, self.downloader.fetch(request));
                    if let Some(result) = self.ask(number) {
                        return Some((number, result));
                    }
                }
                None => break,
            }
        }
        if self.woken.lock().is_empty() {
            if let Some(found) = self.hopeless() {
                return Some(found);
            }
        }
        while !self.fetches.is_empty() {
            let number = self.woken.wait();
            if let Some(result) = self.ask(number) {
                return Some((number, result));
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        left(self.requests.size_hint(), self.fetches.len())
    }
}

impl<I: Iterator> FusedIterator for Unordered<I> where I::Item: Into<Request> {}

impl<I: Iterator> fmt::Debug for Unordered<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unordered({} in flight)", self.fetches.len())
    }
}

fn left((least, most): (usize, Option<usize>), under_way: usize) -> (usize, Option<usize>) {
    (least.saturating_add(under_way), most.and_then(|most| most.checked_add(under_way)))
}
