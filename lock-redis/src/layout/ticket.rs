//! The ticket: the text in a lock's key that names the holder.

use uuid::Uuid;

/// The text that an attempt writes into the lock's key.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) attempt: Uuid,
    text: String,
}

impl Ticket {
    /// The length of a client's id: 16 hex digits.
    pub(crate) const CLIENT: usize = 16;

    /// Makes a ticket with a client, to which the server can announce a grant.
    pub(crate) fn queued(client: &str, attempt: Uuid) -> Self {
        Self { attempt, text: format!("{client}:{}", attempt.simple()) }
    }

    /// Makes a ticket without a client. It looks foreign to clients that queue: its owner gets no
    /// push, and its release sends none.
    pub(crate) fn simple(attempt: Uuid) -> Self {
        Self::queued("", attempt)
    }

    pub(crate) fn text(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Reads a ticket's text: the client, which is empty in a simple ticket, and the attempt.
    pub(crate) fn parse(text: &[u8]) -> Option<(&str, Uuid)> {
        let (client, attempt) = std::str::from_utf8(text).ok()?.split_once(':')?;
        let ours = [0, Self::CLIENT].contains(&client.len()) && attempt.len() == 32;
        ours.then_some((client, Uuid::try_parse(attempt).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As clients have left them in stores.
    #[test]
    fn tickets_of_layout_1_are_read() {
        const QUEUED: &str = "0123456789abcdef:54c4cafc6f4e4d0b9a551c8d3f0d2c11";
        let attempt = Uuid::from_u128(0x54c4_cafc_6f4e_4d0b_9a55_1c8d_3f0d_2c11);
        let (client, simple) = (&QUEUED[..Ticket::CLIENT], &QUEUED[Ticket::CLIENT..]);
        for (text, client, written) in [
            (QUEUED, client, Ticket::queued(client, attempt)),
            (simple, "", Ticket::simple(attempt)),
        ] {
            assert_eq!(Ticket::parse(text.as_bytes()), Some((client, attempt)));
            assert_eq!(written.text(), text.as_bytes());
        }
    }

    #[test]
    fn tickets_are_read_as_they_are_written() {
        let (client, attempt) = ("0123456789abcdef", Uuid::new_v4());
        let queued = Ticket::queued(client, attempt);
        assert_eq!(Ticket::parse(queued.text()), Some((client, attempt)));
        assert_eq!(Ticket::parse(Ticket::simple(attempt).text()), Some(("", attempt)));
        for odd in [attempt.simple().to_string(), format!(":{attempt}"), format!("x:{attempt}")] {
            assert_eq!(Ticket::parse(odd.as_bytes()), None, "{odd}");
        }
    }
}
