//! How long connecting and requests may take.

use std::time::Duration;

use crate::wire::member::ANSWER_LIMIT;

/// How long connecting may take in all, for any number of members, if the caller sets nothing.
const CONNECT_LIMIT: Duration = Duration::from_secs(4);

/// The limits of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For a round of connecting, over all members.
    connect: Duration,
    /// For one request.
    pub(crate) request: Duration,
}

impl Limits {
    pub(crate) fn new(connect: Option<Duration>, request: Option<Duration>) -> Self {
        let request = request.unwrap_or(ANSWER_LIMIT);
        Self { connect: connect.unwrap_or(CONNECT_LIMIT), request }
    }

    /// Returns how long one member of several may take to connect and to check the login, so that
    /// all of them are tried in time. A login is no request: the check of a password takes a server
    /// long, and longer under load.
    pub(crate) fn of_each(&self, members: usize) -> Duration {
        let members = u32::try_from(members.max(1)).unwrap_or(u32::MAX);
        self.connect / members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_are_tried_in_time() {
        let seconds = Duration::from_secs;
        let limits = Limits::new(None, None);
        assert_eq!([1, 2, 4].map(|n| limits.of_each(n)), [seconds(4), seconds(2), seconds(1)]);
        let limits = Limits::new(Some(seconds(1)), Some(seconds(10)));
        assert_eq!(
            [0, 1, 2].map(|n| limits.of_each(n)),
            [1000, 1000, 500].map(Duration::from_millis)
        );
    }
}
