//! When a worker asks.

use std::time::Duration;

use crate::{
    Workload,
    clock::{SECOND, nanos, now, until},
};

/// The times at which one worker asks in one round.
pub(crate) enum Pace {
    /// Again as soon as it has released (closed loop).
    Again { end: u64 },
    /// By a schedule that does not wait for answers (open loop). Who is late asks at once.
    Schedule { next: u64, step: u64, end: u64, patience: u64 },
    /// Once.
    Once(Option<u64>),
}

impl Pace {
    pub(crate) fn of(workload: &Workload, worker: u32, start: u64, time: Duration) -> Self {
        let time = nanos(time);
        let end = start + time;
        match workload.rate {
            _ if workload.herd => Self::Once(Some(start)),
            None => Self::Again { end },
            Some(rate) => {
                // A rate so low that a step does not fit has one start per worker.
                let gap = (SECOND as f64 / rate) as u64;
                let next = start.saturating_add(gap.saturating_mul(u64::from(worker)));
                let step = gap.saturating_mul(u64::from(workload.workers)).max(1);
                Self::Schedule { next, step, end, patience: end + time }
            }
        }
    }

    /// Waits for the next time to ask: when it was scheduled, and when it is. `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<(u64, u64)> {
        match self {
            Self::Again { end } => {
                let now = now();
                (now < *end).then_some((now, now))
            }
            Self::Schedule { next, step, end, patience } => {
                let scheduled = *next;
                if scheduled >= *end {
                    return None;
                }
                *next = scheduled.saturating_add(*step);
                until(scheduled).await;
                let now = now();
                // The store does not keep up: the figures show it already.
                (now < *patience).then_some((scheduled, now))
            }
            Self::Once(start) => start.take().map(|start| (start, now())),
        }
    }
}
