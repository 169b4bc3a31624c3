//! A vote: what stands in a node's key.

use uuid::Uuid;

/// The vote of a node for an attempt, as the lock's key has it: `ATTEMPT:BALLOT:DESCRIPTION`.
///
/// The ballot counts the tries of a client. Each try of an attempt has a ballot of its own, so a
/// late request that takes back the votes of an earlier try does not take back those of a later
/// one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Vote {
    pub(super) attempt: Uuid,
    pub(super) ballot: u64,
    pub(super) description: String,
}

/// The ballot of a request that takes back the votes of all ballots: the greatest number that a
/// script of Redis counts exactly.
pub(super) const EVERY_BALLOT: u64 = (1 << 53) - 1;

impl Vote {
    /// Returns the key's content.
    pub(super) fn text(&self) -> String {
        format!("{}:{}:{}", self.attempt.simple(), self.ballot, self.description)
    }

    /// Reads the key's content; `None` if a foreign client wrote it.
    pub(super) fn read(content: &[u8]) -> Option<Self> {
        let content = String::from_utf8_lossy(content);
        let mut parts = content.splitn(3, ':');
        let attempt = parts.next().filter(|text| text.len() == 32)?;
        Some(Self {
            attempt: Uuid::try_parse(attempt).ok()?,
            ballot: parts.next()?.parse().ok()?,
            description: parts.next()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vote_is_read_back_and_other_content_is_foreign() {
        // As clients of layout 1 have left it.
        let text = b"54c4cafc6f4e4d0b9a551c8d3f0d2c11:34:worker: 7 on h";
        let read = Vote::read(text).unwrap();
        assert_eq!((read.ballot, read.text().as_bytes()), (34, &text[..]));
        let description = "worker: 7 on h".to_owned();
        let vote = Vote { attempt: Uuid::new_v4(), ballot: 34, description };
        assert_eq!(Vote::read(vote.text().as_bytes()), Some(vote));
        for foreign in ["", "x", "a:1:b", "7f1c2e34-1d9b-4b64-9d4e-9a4ff1b3b2c1:1:x"] {
            assert_eq!(Vote::read(foreign.as_bytes()), None, "{foreign}");
        }
    }
}
