//! Work that moves from its caller's task to one of its own.

use std::{
    mem,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use futures_util::FutureExt;
use tracing::{Instrument, Span};

use super::{
    alarm::{Slot, Watched},
    runtime::HomeRuntime,
};
use crate::{BoxFuture, Instant, keep::poison::lock};

/// How long work may stay in its caller's task. Longer than a request takes, so that an uncontended
/// acquire stays there. Far shorter than any TTL, as a caller that does not poll delays the work
/// for this time.
pub(super) const STAY: Duration = Duration::from_millis(50);

/// How long an output waits for its caller, and what then becomes of it.
pub(super) type Collect<T> = (Duration, fn(T) -> T);

/// Work that can move from its caller's task to one of its own.
pub(super) struct Moving<T> {
    state: Mutex<State<T>>,
    slot: Slot,
    home: Arc<HomeRuntime>,
    collect: Option<Collect<T>>,
    /// The caller's span, for events of the work in its own task.
    span: Span,
}

enum State<T> {
    /// In the caller's task, with the caller's waker.
    Here(BoxFuture<'static, T>, Waker),
    /// The caller polls it at this moment.
    Polled,
    /// In a task of its own, with the caller's waker.
    There(Waker),
    /// Not collected yet.
    Done(thread::Result<T>),
    /// Gone with its runtime.
    Gone,
    /// The caller has the output, or has left.
    Over,
}

impl<T: Send + 'static> Moving<T> {
    /// Work that its caller has polled, in the caller's task.
    pub(super) fn here(
        work: BoxFuture<'static, T>,
        caller: &Waker,
        home: &Arc<HomeRuntime>,
        collect: Option<Collect<T>>,
    ) -> Arc<Self> {
        let state = Mutex::new(State::Here(work, caller.clone()));
        let (slot, home, span) = (Slot::default(), home.clone(), Span::current());
        Arc::new(Self { state, slot, home, collect, span })
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }

    pub(super) fn wake_at(self: &Arc<Self>, at: Instant) {
        let watched: Arc<dyn Watched> = self.clone();
        self.home.alarm.add(&watched, |_| Some(at));
    }

    /// Polls the work for the caller; `None` if the runtime has ended and there is no output.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.state();
        match mem::replace(&mut *state, State::Polled) {
            State::Here(work, _) => {
                // Unlocked: the alarm must not wait for the work.
                drop(state);
                return self.poll_here(work, cx);
            }
            State::There(_) => *state = State::There(cx.waker().clone()),
            State::Done(done) => {
                *state = State::Over;
                drop(state);
                self.home.alarm.remove(self);
                match done {
                    Ok(done) => return Poll::Ready(Some(done)),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            State::Gone => {
                *state = State::Over;
                return Poll::Ready(None);
            }
            State::Polled | State::Over => {}
        }
        Poll::Pending
    }

    fn poll_here(&self, mut work: BoxFuture<'static, T>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let has_ended = || self.home.check().is_err();
        // After the end of the runtime the work's timers would panic.
        let polled = match has_ended() {
            true => Poll::Ready(None),
            false => work.as_mut().poll(cx).map(Some),
        };
        if polled.is_ready() {
            *self.state() = State::Over;
            self.home.alarm.remove(self);
            return polled;
        }
        *self.state() = State::Here(work, cx.waker().clone());
        if has_ended() {
            // The runtime ended during the poll, when `end` had no waker to call.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// The runtime has ended: wakes the caller, which sees that in its next poll.
    fn end(&self) {
        let mut state = self.state();
        let caller = match &*state {
            State::Here(_, caller) => caller.clone(),
            State::There(caller) => {
                let caller = caller.clone();
                *state = State::Gone;
                caller
            }
            State::Polled | State::Done(_) | State::Gone | State::Over => return,
        };
        drop(state);
        caller.wake();
    }

    /// The caller drops the work.
    pub(super) fn leave(self: Arc<Self>) {
        let state = mem::replace(&mut *self.state(), State::Over);
        self.home.alarm.remove(&*self);
        if let State::Here(work, _) = state {
            self.home.spawn(Box::pin(work.map(drop).instrument(self.span.clone())));
        }
    }
}

/// The handle of the work in its own task. A runtime drops it with its tasks when it ends.
struct OwnTask<T: Send + 'static>(Arc<Moving<T>>);

impl<T: Send + 'static> OwnTask<T> {
    async fn finish(self, work: BoxFuture<'static, T>) {
        let done = AssertUnwindSafe(work).catch_unwind().await;
        let moving = &self.0;
        let mut state = moving.state();
        // If the caller has left, the output is dropped with the task: a guard is released.
        let State::There(caller) = mem::replace(&mut *state, State::Over) else { return };
        *state = State::Done(done);
        drop(state);
        if let Some((within, _)) = moving.collect {
            moving.wake_at(moving.home.clock.now() + within);
        }
        caller.wake();
    }
}

impl<T: Send + 'static> Drop for OwnTask<T> {
    /// Has no effect if the work is done.
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<T: Send + 'static> Watched for Moving<T> {
    fn ring(self: Arc<Self>, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        match (mem::replace(&mut *state, State::Polled), self.collect) {
            (State::Here(work, caller), _) => {
                *state = State::There(caller);
                drop(state);
                let finish = OwnTask(self.clone()).finish(work).instrument(self.span.clone());
                self.home.spawn(Box::pin(finish));
            }
            (State::Polled, _) => return Some(now + STAY),
            (State::Done(Ok(done)), Some((_, discard))) => {
                *state = State::Done(Ok(discard(done)));
            }
            (other, _) => *state = other,
        }
        None
    }

    fn silenced(self: Arc<Self>) {
        self.end();
    }

    fn slot(&self) -> &Slot {
        &self.slot
    }
}
