//! The course of one attempt.

use std::{collections::HashMap, fmt, sync::Arc};

use crate::{Event, Kind, Loss, What, line::seconds};

/// An attempt to get a lock, from its request to its end. Times are nanoseconds.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Attempt {
    /// The client that made the attempt.
    pub client: Arc<str>,
    /// Its number among the client's attempts.
    pub number: u64,
    /// The lock's name.
    pub name: Arc<str>,
    /// The kind of lock.
    pub kind: Kind,
    /// When the client asked.
    pub asked: u64,
    /// When the client had the lock.
    pub granted: Option<u64>,
    /// The fencing token.
    pub token: Option<u64>,
    /// When the client last believed that it held the lock.
    pub last_valid: Option<u64>,
    /// When the client first believed that it did not hold the lock any more.
    pub first_invalid: Option<u64>,
    /// When and how the client was told of the loss.
    pub lost: Option<Lost>,
    /// When the release began.
    pub releasing: Option<u64>,
    /// When the release was confirmed.
    pub released: Option<u64>,
    /// When and how it ended otherwise.
    pub ended: Option<(u64, Arc<str>)>,
    /// When an operator took the lock away.
    pub revoked: Option<u64>,
    /// The writes to the protected resource.
    pub writes: Vec<Write>,
    /// The time of its last event.
    pub last: u64,
}

/// A loss as reported to the client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lost {
    /// When the client was told.
    pub at: u64,
    /// The source of the report.
    pub loss: Loss,
    /// The reason, for people.
    pub reason: Arc<str>,
}

/// A write to the protected resource.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Write {
    /// When the resource decided.
    pub at: u64,
    /// The token of the write.
    pub token: u64,
    /// Whether the resource took it.
    pub accepted: bool,
}

/// An event that cannot follow the earlier events.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{} #{} at {}: {what:?} cannot come here", event.client, event.attempt, seconds(event.at), what = event.what)]
pub struct Misfit {
    /// The event.
    pub event: Box<Event>,
}

impl Attempt {
    /// Until when the client certainly held the lock: until it began the release, was told of the
    /// loss, or last believed in it, whichever was first. A client without checks of its belief
    /// counts as believing. `None` if it never held the lock for certain.
    pub fn sure_until(&self) -> Option<u64> {
        let granted = self.granted?;
        let told = [self.releasing, self.lost.as_ref().map(|lost| lost.at)];
        let told = told.into_iter().flatten().min();
        let believed = match (self.last_valid, self.first_invalid) {
            (None, None) => Some(told.unwrap_or(granted)),
            (None, Some(_)) => None,
            (Some(valid), _) => Some(told.map_or(valid, |told| told.min(valid))),
        };
        believed.map(|until| until.max(granted))
    }

    /// When the client knew of the loss, if it lost the lock before it began the release.
    pub fn told(&self) -> Option<u64> {
        let doubt = self.first_invalid.filter(|at| self.last_valid.is_none_or(|yes| yes <= *at));
        let told = [doubt, self.lost.as_ref().map(|lost| lost.at)].into_iter().flatten().min()?;
        self.releasing.is_none_or(|releasing| told <= releasing).then_some(told)
    }

    /// When the attempt was over for the client: `None` if its last event was not an end.
    pub fn over(&self) -> Option<u64> {
        let ended = self.ended.as_ref().map(|(at, _)| *at);
        let lost = self.lost.as_ref().map(|lost| lost.at);
        [self.released, ended, lost].into_iter().flatten().max()
    }

    /// The known times between the grant and the end, with their words.
    fn times(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let times = [
            ("last valid", self.last_valid),
            ("invalid", self.first_invalid),
            ("releasing", self.releasing),
            ("released", self.released),
            ("revoked", self.revoked),
        ];
        times.into_iter().filter_map(|(what, at)| Some((what, at?)))
    }

    fn begin(event: &Event, name: &Arc<str>, kind: Kind) -> Self {
        Self {
            client: event.client.clone(),
            number: event.attempt,
            name: name.clone(),
            kind,
            asked: event.at,
            granted: None,
            token: None,
            last_valid: None,
            first_invalid: None,
            lost: None,
            releasing: None,
            released: None,
            ended: None,
            revoked: None,
            writes: Vec::new(),
            last: event.at,
        }
    }

    /// Takes the next event; `None` if it cannot belong to this attempt.
    fn take(&mut self, event: &Event) -> Option<()> {
        let at = event.at;
        if at < self.asked {
            return None;
        }
        self.last = self.last.max(at);
        match &event.what {
            What::Asked { .. } => return None,
            What::Granted { token } => {
                if self.ended.is_some() {
                    return None;
                }
                once(&mut self.granted, at)?;
                self.token = *token;
            }
            What::Ended { why } => once(&mut self.ended, (at, why.clone()))?,
            What::Wrote { token } => self.write(at, *token, true),
            What::Rejected { token } => self.write(at, *token, false),
            of_holder => {
                self.granted?;
                return self.hold(at, of_holder);
            }
        }
        Some(())
    }

    fn hold(&mut self, at: u64, what: &What) -> Option<()> {
        match what {
            What::Valid => self.last_valid = Some(at),
            What::Invalid => self.first_invalid = self.first_invalid.or(Some(at)),
            What::Lost { loss, reason } => {
                once(&mut self.lost, Lost { at, loss: *loss, reason: reason.clone() })?;
            }
            What::Releasing => once(&mut self.releasing, at)?,
            What::Released => {
                self.releasing?;
                once(&mut self.released, at)?;
            }
            What::Revoked => self.revoked = self.revoked.or(Some(at)),
            _ => return None,
        }
        Some(())
    }

    fn write(&mut self, at: u64, token: u64, accepted: bool) {
        self.writes.push(Write { at, token, accepted });
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.is_none().then(|| *place = Some(value))
}

/// Folds events into attempts, in the order of their requests.
pub(crate) fn of(events: &[Event]) -> Result<Vec<Attempt>, Misfit> {
    let mut places: HashMap<(&str, u64), usize> = HashMap::new();
    let mut attempts: Vec<Attempt> = Vec::new();
    for event in events {
        let misfit = || Misfit { event: Box::new(event.clone()) };
        let place = places.get(&(&*event.client, event.attempt));
        match (&event.what, place) {
            (What::Asked { name, kind }, None) => {
                places.insert((&event.client, event.attempt), attempts.len());
                attempts.push(Attempt::begin(event, name, *kind));
            }
            (_, Some(place)) => attempts[*place].take(event).ok_or_else(misfit)?,
            (_, None) => return Err(misfit()),
        }
    }
    attempts.sort_by_key(|attempt| attempt.asked);
    Ok(attempts)
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, number, kind, .. } = self;
        write!(f, "{client} #{number} ({kind}) asked {}", seconds(self.asked))?;
        if let Some(granted) = self.granted {
            write!(f, ", granted {}", seconds(granted))?;
        }
        if let Some(token) = self.token {
            write!(f, " with token {token}")?;
        }
        for (what, at) in self.times() {
            write!(f, ", {what} {}", seconds(at))?;
        }
        if let Some(Lost { at, reason, .. }) = &self.lost {
            write!(f, ", lost {} ({reason})", seconds(*at))?;
        }
        match &self.ended {
            Some((at, why)) => write!(f, ", ended {} ({why})", seconds(*at)),
            None => Ok(()),
        }
    }
}
