//! Messages for a process that may not be reading.

use std::{collections::VecDeque, fmt, io};

use tokio::net::unix::OwnedWriteHalf;

/// A message between the holder and the supervisor: a line of text.
pub(crate) trait Message: fmt::Display + PartialEq {
    /// Whether it makes an older one useless. A repeated message is sent once, in its last place.
    fn replaces(&self, _older: &Self) -> bool {
        false
    }
}

/// Keeps what a full socket does not take. Waiting for a stopped process would delay the end of the
/// command.
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

    /// Sends it now, or as soon as `flush` can.
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

    /// Waits until everything is sent, or the receiver is gone. If this is dropped, unsent messages
    /// stay.
    pub(crate) async fn flush(&mut self) {
        while !self.send() {
            // The next write returns the error.
            let _ = self.socket.writable().await;
        }
    }

    /// Sends what the socket takes. Returns whether that was everything.
    fn send(&mut self) -> bool {
        loop {
            if self.begun.is_empty() {
                let Some(next) = self.waiting.pop_front() else { return true };
                self.begun = format!("{next}\n").into_bytes();
            }
            match self.socket.try_write(&self.begun) {
                Ok(sent) => drop(self.begun.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // A receiver that is gone needs nothing. The end of its messages is noticed.
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
    async fn a_silent_receiver_delays_nothing_and_gets_the_last_messages() {
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
    async fn flush_returns_if_the_receiver_is_gone() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_unused, orders) = ours.into_split();
        drop(theirs);
        let mut outbox = Outbox::new(orders);
        outbox.post(until(1));
        outbox.flush().await;
        assert!(outbox.is_empty());
    }
}
