//! The ticket of a detached lock, for another process to adopt it.

use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::{Error, FencingToken, LockName, Result, Term, keep::errors::invalid};

/// The first part of every ticket: its type, and the version of its form.
const FORM: &str = "distlock1";

/// A detached lock, which has no holder until [`Locks::adopt`](crate::Locks::adopt) takes it up,
/// once. [`LockGuard::detach`](crate::LockGuard::detach) makes it.
///
/// It is a short text that fits into an environment variable, a file or a message: letters, digits,
/// `:`, `%`, `-`, `_` and `.`. [`Display`](fmt::Display) writes it and [`FromStr`] reads it. Other
/// versions of this library read it, or refuse it by the version that it begins with.
///
/// It has no password, and no other part of the store's URL. But with it any client that may write
/// to the store can adopt the lock: give it only to the next holder.
///
/// ```no_run
/// # async fn example(here: lock_core::Locks, there: lock_core::Locks) -> lock_core::Result<()> {
/// let text = here.lock("deploy")?.acquire().await?.detach().await?.to_string();
///
/// // In another process, within one TTL:
/// let guard = there.adopt(&text.parse()?).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Ticket {
    pub(crate) store: Cow<'static, str>,
    pub(crate) name: LockName,
    pub(crate) token: FencingToken,
    pub(crate) ttl: Duration,
    pub(crate) term: Term,
    pub(crate) hold_left: Option<Duration>,
    /// The driver's key to the lock's entry.
    pub(crate) place: String,
}

impl Ticket {
    /// The name of the store that granted the lock, as in
    /// [`Guarantees::store`](crate::Guarantees::store).
    pub fn store(&self) -> &str {
        &self.store
    }

    /// The lock's name.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// The fencing token of the grant. The adopter has the same one.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// How long the lock outlives the request that detached it, and each renewal after the
    /// adoption.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Whether it is renewed after the adoption.
    pub fn term(&self) -> Term {
        self.term
    }

    /// The rest of the [maximum hold time](crate::Lock::max_hold) when the lock was detached. It
    /// goes on with the adoption.
    pub fn hold_left(&self) -> Option<Duration> {
        self.hold_left
    }

    /// For drivers: the text that [`Lease::detach`](crate::Lease::detach) returned.
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, name, token, ttl, term, hold_left, place } = self;
        let term = if *term == Term::Fixed { "fixed" } else { "renewed" };
        let place = utf8_percent_encode(place, NON_ALPHANUMERIC);
        let (name, ttl) = (name.escaped(), ttl.as_micros());
        write!(f, "{FORM}:{store}:{name}:{token}:{ttl}:{term}:")?;
        match hold_left {
            Some(left) => write!(f, "{}:{place}", left.as_micros()),
            None => write!(f, "-:{place}"),
        }
    }
}

impl FromStr for Ticket {
    type Err = Error;

    /// # Errors
    ///
    /// [`Error::InvalidOption`] for a text that is not a ticket, or a ticket of another version.
    fn from_str(text: &str) -> Result<Self> {
        let start: String = text.chars().take(24).collect();
        let refused = |why: String| invalid("ticket", &start, why);
        let (form, rest) = text.split_once(':').unwrap_or((text, ""));
        if form != FORM {
            return Err(refused(format!(
                "a ticket that this version reads begins with {FORM}: (only its start is shown here)"
            )));
        }
        parse(rest).ok_or_else(|| {
            refused(format!(
                "a ticket is {FORM}:STORE:NAME:TOKEN:TTL:TERM:HOLD:PLACE, as it was written; this one \
                 was cut or changed (only its start is shown here)"
            ))
        })
    }
}

/// Reads the part after the version.
fn parse(rest: &str) -> Option<Ticket> {
    let mut parts = rest.split(':');
    let mut part = || parts.next().filter(|part| !part.is_empty());
    let store = part().filter(|store| store.bytes().all(|b| b.is_ascii_lowercase()))?.to_owned();
    let name = LockName::from_escaped(part()?)?;
    let token = FencingToken::new(number(part()?)?);
    let ttl = Duration::from_micros(number(part()?)?);
    let term = match part()? {
        "renewed" => Term::Renewed,
        "fixed" => Term::Fixed,
        _ => return None,
    };
    let hold_left = match part()? {
        "-" => None,
        micros => Some(Duration::from_micros(number(micros)?)),
    };
    let place = percent_decode_str(part()?).decode_utf8().ok()?.into_owned();
    let ticket = Ticket { store: store.into(), name, token, ttl, term, hold_left, place };
    parts.next().is_none().then_some(ticket)
}

/// Digits only: `parse` alone would accept a sign.
fn number(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ticket_is_read_as_it_is_written(
            name in ".{1,40}", token: u64, micros: u64, fixed: bool, left: Option<u64>, place in ".{1,40}",
        ) {
            let term = if fixed { Term::Fixed } else { Term::Renewed };
            let (name, token) = (LockName::new(name).unwrap(), FencingToken::new(token));
            let (ttl, left) = (Duration::from_micros(micros), left.map(Duration::from_micros));
            let store = "etcd".into();
            let ticket = Ticket { store, name, token, ttl, term, hold_left: left, place };
            let text = ticket.to_string();
            let plain = |b: u8| b.is_ascii_alphanumeric() || b":%-_.".contains(&b);
            prop_assert!(text.bytes().all(plain), "{}", text);
            prop_assert_eq!(text.parse::<Ticket>().unwrap(), ticket);
        }

        #[test]
        fn other_texts_are_refused(text in ".{0,80}", rest in "[a-z0-9:%.-]{0,80}") {
            prop_assert!(text.parse::<Ticket>().is_err());
            if let Ok(ticket) = format!("{FORM}:{rest}").parse::<Ticket>() {
                prop_assert_eq!(ticket.to_string().parse::<Ticket>().unwrap(), ticket);
            }
        }
    }

    #[test]
    fn a_ticket_of_form_1_is_read() {
        let text = "distlock1:etcd:orders%2F42:17:15000000:fixed:2000000:a%2F1f%2E0";
        let ticket: Ticket = text.parse().unwrap();
        assert_eq!((ticket.name().as_str(), ticket.token().value()), ("orders/42", 17));
        assert_eq!((ticket.ttl(), ticket.term()), (Duration::from_secs(15), Term::Fixed));
        assert_eq!((ticket.hold_left(), ticket.place()), (Some(Duration::from_secs(2)), "a/1f.0"));
        assert_eq!(ticket.to_string(), text);
    }

    #[test]
    fn an_error_names_the_cause_and_shows_the_start_only() {
        let said = |text: &str| text.parse::<Ticket>().unwrap_err().to_string();
        let other = said("distlock2:etcd:orders:17:15000000:renewed:-:secretplace");
        assert!(other.contains("begins with distlock1:") && !other.contains("secret"), "{other}");
        for cut in ["distlock1", "distlock1:etcd:orders", "distlock1:etcd:orders:17:1:renewed:-:"] {
            assert!(said(cut).contains("STORE:NAME:TOKEN"), "{cut}");
        }
        for odd in ["distlock1:etcd:o:+1:1:renewed:-:x", "distlock1:etcd:o:1:1:renewed:-:x:y"] {
            assert!(odd.parse::<Ticket>().is_err(), "{odd}");
        }
    }
}
