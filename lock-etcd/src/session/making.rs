//! The attempt to get a session that all callers who need it share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::{error::Failure, session::Session};

/// What has become of the attempt so far.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// etcd has not answered yet; why the last sending failed, if one did.
    NotYet(Option<Failure>),
    Session(Arc<Session>),
    /// etcd grants so many seconds and no less.
    OtherTtl(u64),
    /// etcd refused.
    Failed(Failure),
}

impl Made {
    /// Whether it is over.
    pub(crate) fn is_done(&self) -> bool {
        !matches!(self, Self::NotYet(_))
    }
}

/// The attempts under way, by the TTL in seconds.
#[derive(Debug, Default)]
pub(crate) struct Making(Mutex<HashMap<u64, watch::Sender<Made>>>);

/// The right to make an attempt. Dropped before it is [done](Maker::done), by a panic or the end of
/// its runtime, it ends the attempt, and whoever waits may begin another one.
#[derive(Debug)]
pub(crate) struct Maker {
    making: Arc<Making>,
    seconds: u64,
    pub(crate) tell: watch::Sender<Made>,
}

impl Making {
    fn under_way(&self) -> MutexGuard<'_, HashMap<u64, watch::Sender<Made>>> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the attempt, or begins one: then the second is for whoever makes it.
    pub(crate) fn join(self: &Arc<Self>, seconds: u64) -> (watch::Receiver<Made>, Option<Maker>) {
        let mut under_way = self.under_way();
        if let Some(tell) = under_way.get(&seconds) {
            return (tell.subscribe(), None);
        }
        let (tell, told) = watch::channel(Made::NotYet(None));
        under_way.insert(seconds, tell.clone());
        (told, Some(Maker { making: self.clone(), seconds, tell }))
    }
}

impl Maker {
    /// Ends the attempt, unless somebody has joined it since everybody had left.
    pub(crate) fn is_deserted(&self) -> bool {
        let mut under_way = self.making.under_way();
        let deserted = self.tell.receiver_count() == 0;
        if deserted {
            self.leave(&mut under_way);
        }
        deserted
    }

    /// Ends the attempt with what it came to.
    pub(crate) fn done(&self, made: Made) {
        self.leave(&mut self.making.under_way());
        self.tell.send_replace(made);
    }

    fn leave(&self, under_way: &mut HashMap<u64, watch::Sender<Made>>) {
        // It may be another one's by now.
        if under_way.get(&self.seconds).is_some_and(|tell| tell.same_channel(&self.tell)) {
            under_way.remove(&self.seconds);
        }
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        self.leave(&mut self.making.under_way());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_for_a_maker_that_is_gone_is_told_and_may_make_it() {
        let making = Arc::new(Making::default());
        let (_, maker) = making.join(3);
        let (mut told, other) = making.join(3);
        assert!(other.is_none());
        let panicked = tokio::spawn(async move {
            let _maker = maker;
            panic!("on purpose");
        });
        panicked.await.unwrap_err();
        told.wait_for(Made::is_done).await.unwrap_err();
        let (mut told, maker) = making.join(3);
        maker.unwrap().done(Made::OtherTtl(5));
        assert!(matches!(*told.wait_for(Made::is_done).await.unwrap(), Made::OtherTtl(5)));
        assert!(making.under_way().is_empty());
    }

    #[test]
    fn a_deserted_attempt_ends_and_does_not_end_the_next_one() {
        let making = Arc::new(Making::default());
        let (told, maker) = making.join(3);
        let maker = maker.unwrap();
        assert!(!maker.is_deserted());
        drop(told);
        assert!(maker.is_deserted());
        let (told, next) = making.join(3);
        drop(maker);
        assert!(making.join(3).1.is_none(), "{told:?} {next:?}");
    }
}
