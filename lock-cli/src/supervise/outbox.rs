//! What is still to be said to a process that may not be listening.

use std::{collections::VecDeque, fmt, io};

use tokio::net::unix::OwnedWriteHalf;

/// What the holder and the supervisor tell each other: a line of text.
pub(crate) trait Message: fmt::Display + PartialEq {
    /// Whether nobody needs the older one any more. What is said twice is said once, as the last word.
    fn replaces(&self, _older: &Self) -> bool {
        false
    }
}

/// Keeps what a full socket does not take. Whoever waited for a process that is stopped could not end the
/// command meanwhile.
pub(crate) struct Outbox<M> {
    socket: OwnedWriteHalf,
    /// The rest of a line.
    begun: Vec<u8>,
    /// No longer than there are kinds of messages.
    waiting: VecDeque<M>,
}

impl<M: Message> Outbox<M> {
    pub(crate) fn new(socket: OwnedWriteHalf) -> Self {
        Self { socket, begun: Vec::new(), waiting: VecDeque::new() }
    }

    /// Says it now, or as soon as `flush` can.
    pub(crate) fn post(&mut self, message: M) {
        match self.waiting.iter_mut().find(|older| message.replaces(older)) {
            Some(older) => *older = message,
            None => {
                self.waiting.retain(|older| *older != message);
                self.waiting.push_back(message);
            }
        }
        self.send();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.waiting.is_empty()
    }

    /// Waits until everything is said, or nobody is there to hear it.
    ///
    /// # Cancel safety
    ///
    /// What is not said stays.
    pub(crate) async fn flush(&mut self) {
        while !self.send() {
            // An error shows when it is written.
            let _ = self.socket.writable().await;
        }
    }

    /// Says what the socket takes. Answers whether that was everything.
    fn send(&mut self) -> bool {
        loop {
            if self.begun.is_empty() {
                let Some(next) = self.waiting.pop_front() else { return true };
                self.begun = format!("{next}\n").into_bytes();
            }
            match self.socket.try_write(&self.begun) {
                Ok(sent) => drop(self.begun.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // Whoever is gone needs nothing; its silence is noticed.
                Err(_) => {
                    self.begun.clear();
                    self.waiting.clear();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_core::Instant;
    use rustix::process::Signal;
    use tokio::{
        io::{AsyncBufReadExt, BufReader},
        net::UnixStream,
    };

    use super::*;
    use crate::supervise::message::Order;

    fn until(second: u64) -> Order {
        Order::Until(Instant::default() + Duration::from_secs(second))
    }

    #[tokio::test]
    async fn who_does_not_listen_keeps_nobody_waiting_and_hears_the_last_word() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_unused, orders) = ours.into_split();
        let mut outbox = Outbox::new(orders);
        let mut second = 0;
        while outbox.waiting.is_empty() {
            second += 1;
            outbox.post(until(second));
        }
        let (one, other) = (Order::Signal(Signal::USR1), Order::Signal(Signal::TERM));
        for order in [one, until(7), other, Order::Signal(Signal::USR1), until(8)] {
            outbox.post(order);
        }
        let rest = [until(8), Order::Signal(Signal::TERM), Order::Signal(Signal::USR1)];
        assert_eq!(outbox.waiting, rest);
        let mut heard = BufReader::new(theirs).lines();
        let mut last = Vec::new();
        let hear = async {
            while let Some(line) = heard.next_line().await.unwrap() {
                last.push(Order::parse(&line).unwrap());
            }
        };
        let say = async {
            outbox.flush().await;
            assert!(outbox.is_empty());
            drop(outbox);
        };
        tokio::join!(hear, say);
        assert!(last.ends_with(&rest), "{last:?}");
    }

    #[tokio::test]
    async fn who_is_gone_keeps_nobody_waiting() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_unused, orders) = ours.into_split();
        drop(theirs);
        let mut outbox = Outbox::new(orders);
        outbox.post(until(1));
        outbox.flush().await;
        assert!(outbox.is_empty());
    }
}
