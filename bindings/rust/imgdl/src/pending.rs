//! A download that somebody waits for, with a thread or with a task: what `Fetch` and `ImageStream` have in common.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::downloader::Downloader;
use crate::error::{Code, Error, Result};
use crate::event::{Download, Event, Events, Response};
use crate::executor::Executor;
use crate::guard::contained;
use crate::image::Image;
use crate::request::Request;
use crate::sink::Callback;
use crate::token::Token;

/// An accepted download, or the error that it was refused with. Dropping it cancels.
pub(crate) struct Pending {
    token: Result<Token>,
    shared: Arc<Shared>,
}

/// What whoever waits and the callback have in common. The lock is never held while somebody else's code runs.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    /// The newest, until it is taken.
    partial: Option<Image>,
    response: Option<Response>,
    /// Stays None when the callback is dropped without having been told the end.
    outcome: Option<Result<Download>>,
    has_ended: bool,
    /// Of whoever polled last.
    waker: Option<Waker>,
}

impl State {
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub(crate) fn has_news(&self) -> bool {
        self.has_ended || self.partial.is_some()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something that somebody may wait for.
    fn tell<T>(&self, change: impl FnOnce(&mut State) -> T) {
        let mut state = self.lock();
        let replaced = change(&mut state);
        let waker = state.waker.take();
        drop(state);
        self.changed.notify_all();
        drop(replaced);
        // Its panic is no business of the download's.
        contained(|| waker.map(Waker::wake));
    }
}

/// The callback of a pending download.
struct Watcher {
    /// The request's own, and what that asked for.
    callback: Option<Callback>,
    events: Events,
    wants_partial: bool,
    shared: Arc<Shared>,
}

impl Watcher {
    fn see(&mut self, token: &Token, event: Event<'_>) {
        let kind = event.kind();
        let (mut response, mut partial, mut outcome) = (None, None, None);
        match &event {
            Event::Response(seen) => response = Some((*seen).clone()),
            Event::Partial(image) if self.wants_partial => partial = Some((*image).clone()),
            Event::Finished(result) => outcome = Some(result.cloned().map_err(Clone::clone)),
            _ => {}
        }
        if let Some(callback) = self.callback.as_mut().filter(|_| self.events.contains(kind)) {
            callback(token, event);
        }
        if let Some(response) = response {
            self.shared.lock().response = Some(response);
        }
        if let Some(partial) = partial {
            self.shared.tell(|state| state.partial.replace(partial));
        }
        if let Some(outcome) = outcome {
            self.shared.tell(|state| {
                let response = state.response.take();
                state.outcome = Some(outcome.map(|download| Download { response, ..download }));
                state.has_ended = true;
            });
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.tell(|state| state.has_ended = true);
    }
}

impl Pending {
    /// Begins it. `wants` are the events that this side needs.
    pub(crate) fn begin(downloader: &Downloader, request: Request, wants: Events) -> Pending {
        let shared = Arc::new(Shared::default());
        let begin = || {
            // Without a callback of the request's own only wakers run in there: that needs no other thread, and no
            // event loop of a pumped executor that might be the thread that waits.
            let (request, callback, events) = request.take_callback(Executor::inline());
            let wants_partial = wants.contains(Events::PARTIAL);
            let mut watcher = Watcher { callback, events, wants_partial, shared: shared.clone() };
            let events = events | wants | Events::RESPONSE;
            downloader.download(request.on_event(events, move |token, event| watcher.see(token, event)))
        };
        let token = begin();
        if let Err(error) = &token {
            shared.tell(|state| {
                state.outcome = Some(Err(error.clone()));
                state.has_ended = true;
            });
        }
        Pending { token, shared }
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.token.as_ref().ok()
    }

    /// Lets it go on.
    pub(crate) fn detach(mut self) -> Result<Token> {
        self.forget_waker();
        // What is left does not cancel.
        mem::replace(&mut self.token, Err(Error::new(Code::INVALID_HANDLE, "it was detached".into())))
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.shared.lock().has_ended
    }

    /// How it ended, when it has.
    pub(crate) fn outcome(&self) -> Result<Download> {
        let outcome = self.shared.lock().outcome.clone();
        let token = match &self.token {
            Ok(token) => token,
            Err(error) => return Err(error.clone()),
        };
        token.panicked()?;
        let untold = || Error::new(Code::CANCELLED, "its executor was dropped before it could tell the end".into());
        outcome.unwrap_or_else(|| Err(token.result().and_then(Result::err).unwrap_or_else(untold)))
    }

    pub(crate) fn take_partial(&self) -> Option<Image> {
        self.shared.lock().partial.take()
    }

    /// Whether this thread may wait for it.
    pub(crate) fn can_wait(&self) -> Result<()> {
        self.token().map_or(Ok(()), Token::can_wait)
    }

    /// Until there is what is waited for, or an error that says why this thread cannot wait: WOULD_DEADLOCK, FORKED,
    /// WAIT_TIMEOUT.
    pub(crate) fn wait(&self, deadline: Option<Instant>, is_there: impl Fn(&State) -> bool) -> Result<()> {
        if is_there(&self.shared.lock()) {
            return Ok(());
        }
        self.can_wait()?;
        let mut state = self.shared.lock();
        while !is_there(&state) {
            let changed = &self.shared.changed;
            state = match deadline {
                None => changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(Error::new(Code::WAIT_TIMEOUT, "the download has not ended yet".into()));
                    }
                    changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        Ok(())
    }

    /// The same for a task, which is woken when this is to be asked again.
    pub(crate) fn poll(&self, context: &mut Context<'_>, is_there: impl Fn(&State) -> bool) -> Poll<()> {
        let state = self.shared.lock();
        if is_there(&state) {
            return Poll::Ready(());
        }
        if state.waker.as_ref().map_or(false, |waker| waker.will_wake(context.waker())) {
            return Poll::Pending;
        }
        drop(state);
        // Cloning and dropping one may run anything.
        let waker = context.waker().clone();
        let mut state = self.shared.lock();
        if is_there(&state) {
            return Poll::Ready(());
        }
        let replaced = state.waker.replace(waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }

    fn forget_waker(&self) {
        let waker = self.shared.lock().waker.take();
        contained(|| drop(waker));
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.forget_waker();
        if let Ok(token) = &self.token {
            // What cancelling might fail with has ended it already.
            let _ = token.cancel();
        }
    }
}
