//! Listens to the sentinels of a service: a failover is known before a request fails.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::StreamExt;
use lock_core::keep::backoff::Backoff;
use tokio::{sync::watch, time::timeout};

use super::{
    Session,
    node::{Link, Node},
};
use crate::{config::Address, error, wire::sentinel::Sentinels};

/// Pauses between attempts to connect to a sentinel.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
/// Time limit of connecting and subscribing, and of the question whether the sentinel still lives.
const LIMIT: Duration = Duration::from_secs(3);
/// A sentinel that says nothing is asked after this time whether it still lives.
const PERIOD: Duration = Duration::from_secs(10);
/// The first says that enough sentinels take the primary for dead; the second takes that back. The
/// third comes from the sentinel that has promoted a replica, which it names as the primary from
/// then on; the last one comes from each sentinel, when all replicas follow the new primary.
const CHANNELS: [&str; 4] = ["+odown", "-odown", "+promoted-slave", "+switch-master"];

/// What a sentinel says about the service.
#[derive(Debug, Eq, PartialEq)]
enum Sign {
    /// A failover may begin.
    Dead,
    /// No failover: the primary lives.
    Lives,
    /// This is the primary now.
    Primary(Address),
}

impl Session {
    /// Listens to each sentinel from now on, until the node is closed or the session is gone.
    pub(super) fn listen_to(self: &Arc<Self>, sentinels: &Arc<Sentinels>, node: &Arc<Node>) {
        for address in &sentinels.addresses {
            let listener = Listener {
                session: Arc::downgrade(self),
                sentinels: sentinels.clone(),
                node: node.clone(),
                address: address.clone(),
            };
            tokio::spawn(listener.run());
        }
    }
}

struct Listener {
    session: Weak<Session>,
    sentinels: Arc<Sentinels>,
    node: Arc<Node>,
    address: Address,
}

impl Listener {
    async fn run(self) {
        let (mut pause, mut link) = (BACKOFF, self.node.link());
        loop {
            tokio::select! {
                () = closed(&mut link) => return,
                heard = self.listen() => if heard { pause = BACKOFF },
            }
            tokio::select! {
                () = closed(&mut link) => return,
                () = pause.wait() => {}
            }
        }
    }

    /// Listens on one connection until it breaks. Returns whether it was made.
    async fn listen(&self) -> bool {
        let open = async {
            let mut opened = self.sentinels.dial.open_for_pushes(&self.address).await?;
            opened.subscribe(&CHANNELS[..]).await?;
            redis::RedisResult::Ok(opened.split())
        };
        let Ok(Ok((mut sentinel, mut pushes))) = timeout(LIMIT, open).await else { return false };
        // A message may have been missed meanwhile.
        if let Ok(primary) = self.sentinels.primary().await {
            // While a failover goes on, they still name the old one: that settles no doubt.
            self.leave_unless(&primary);
        }
        loop {
            match timeout(PERIOD, pushes.next()).await {
                Ok(Some(push)) => {
                    let (channel, message) = (push.get_channel_name(), push.get_payload_bytes());
                    if let Some(sign) = read(channel.as_bytes(), message, &self.sentinels.service) {
                        self.take_in(sign);
                    }
                }
                Ok(None) => return true,
                Err(_) => {
                    let answer = sentinel.ping::<redis::Value>();
                    if !matches!(timeout(LIMIT, answer).await, Ok(Ok(_))) {
                        return true;
                    }
                }
            }
        }
    }

    fn take_in(&self, sign: Sign) {
        let Some(session) = self.session.upgrade() else { return };
        match sign {
            Sign::Dead => session.doubt(&self.node),
            // A primary that was left is doubted for another reason.
            Sign::Lives if matches!(self.node.state(), Link::Up(_)) => session.settle(&self.node),
            Sign::Primary(primary) if self.leave_unless(&primary) => session.settle(&self.node),
            Sign::Lives | Sign::Primary(_) => {}
        }
    }

    /// Gives up the connection to any other primary. Returns whether it is the one to this primary.
    fn leave_unless(&self, primary: &Address) -> bool {
        let Some(session) = self.session.upgrade() else { return false };
        let Link::Up(connection) = self.node.state() else {
            self.node.hurry.notify_one();
            return false;
        };
        if connection.address == *primary {
            return true;
        }
        let why = format!("the sentinels name another primary, {primary}");
        // In this order: no answer of the old primary prolongs a hold after the sign.
        self.node.leave(connection.number, error::reset(&why));
        session.doubt(&self.node);
        false
    }
}

async fn closed(link: &mut watch::Receiver<Link>) {
    let _ = link.wait_for(|link| matches!(link, Link::Closed)).await;
}

/// `+odown` and `-odown`: `master SERVICE IP PORT ..`. `+switch-master`: `SERVICE OLDIP OLDPORT IP
/// PORT`. `+promoted-slave`: `slave NAME IP PORT @ SERVICE ..`.
fn read(channel: &[u8], message: &[u8], service: &str) -> Option<Sign> {
    let message = std::str::from_utf8(message).ok()?;
    let words: Vec<_> = message.split(' ').collect();
    match (channel, &words[..]) {
        (b"+odown", ["master", name, ..]) if *name == service => Some(Sign::Dead),
        (b"-odown", ["master", name, ..]) if *name == service => Some(Sign::Lives),
        (b"+switch-master", [name, _, _, host, port, ..]) if *name == service => {
            Some(Sign::Primary(Address::new(*host, port.parse().ok()?)))
        }
        (b"+promoted-slave", ["slave", _, host, port, "@", name, ..]) if *name == service => {
            Some(Sign::Primary(Address::new(*host, port.parse().ok()?)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_this_service_are_read() {
        let sign =
            |channel: &str, message: &str| read(channel.as_bytes(), message.as_bytes(), "lab");
        assert_eq!(sign("+odown", "master lab 10.0.0.1 7 #quorum 2/2"), Some(Sign::Dead));
        assert_eq!(sign("-odown", "master lab 10.0.0.1 7"), Some(Sign::Lives));
        let new = Sign::Primary(Address::new("10.0.0.2", 8));
        let promoted = "slave 10.0.0.2:8 10.0.0.2 8 @ lab 10.0.0.1 7";
        assert_eq!(sign("+promoted-slave", promoted).as_ref(), Some(&new));
        assert_eq!(sign("+switch-master", "lab 10.0.0.1 7 10.0.0.2 8"), Some(new));
        assert_eq!(sign("+switch-master", "other 10.0.0.1 7 10.0.0.2 8"), None);
        assert_eq!(sign("+odown", "slave lab 10.0.0.1 7 @ lab"), None);
    }
}
