//! Waiting in line: which entry a waiter follows, and what wakes it.
//!
//! Each waiter follows one entry, so that a release wakes the waiters that can enter, and no
//! others. Only the first waiter for permits follows all holders of permits, by a watch on the
//! directory. An entry of the same session is followed in memory, without a request.

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::Arc,
};

use futures_util::{FutureExt, StreamExt, future::OptionFuture, stream::FuturesUnordered};
use lock_core::{Clock, Kind, Result};
use zookeeper_client::EventType;

use crate::{
    acquire::Acquire,
    error::vanished,
    layout::note::{Became, Note},
    queue::view::{Ahead, Duty, Next, UNKNOWN},
    session::attempt::News,
    wire::{
        requests::Exchange,
        watches::{Watch, Watched},
    },
};

impl Acquire {
    /// Waits as the duty says, or until it is time to look again.
    pub(crate) async fn wait(&self, ahead: &mut Ahead, duty: Duty) -> Result<Next> {
        let shared = (self.attempt.request.kind == Kind::Shared).then_some(Became::Shared);
        let step = async {
            match duty {
                Duty::Hold => Ok(Next::Judge),
                Duty::After(index) => self.follow(ahead, index, shared).await,
                Duty::AfterAdmission(index) => {
                    self.follow(ahead, index, Some(Became::Admitted)).await
                }
                Duty::AfterAny => Box::pin(self.follow_all(ahead)).await,
            }
        };
        tokio::select! {
            biased;
            _ = self.attempt.news(None) => Err(vanished()),
            next = step => next,
        }
    }

    /// Waits until an entry ends or becomes `wanted`.
    ///
    /// If the rest of the view then admits the own entry, that is the grant: lower sequences never
    /// appear later, and the news came over a live session. The own node must be there, too: behind
    /// another client's entry it is watched, or looked for.
    async fn follow(
        &self,
        ahead: &mut Ahead,
        index: usize,
        wanted: Option<Became>,
    ) -> Result<Next> {
        let name = ahead.names()[index].clone();
        if name == UNKNOWN {
            return Ok(Next::Look);
        }
        let path = format!("{}/{name}", self.directory);
        let local = self.session.own_attempt(&name);
        if local.is_none() {
            self.session.unwatched.hurry(&self.attempt);
        }
        let news = async {
            match &local {
                Some(attempt) => Ok(Some(attempt.news(wanted).await)),
                None => self.watch(&path, wanted).await,
            }
        };
        let news = tokio::select! {
            news = news => news?,
            looked = self.look_now_and_then(&path, wanted) => looked?,
        };
        let Some(news) = news else { return Ok(Next::Look) };
        ahead.learn(&name, news);
        let is_there = || self.attempt.is_known_to_be_there();
        Ok(ahead.next_after(news, local.is_some(), is_there))
    }

    /// Looks once per TTL: a lost wake-up must not stop a waiter for ever. Returns when there is
    /// news, or when it is time for a new list.
    async fn look_now_and_then(&self, path: &str, wanted: Option<Became>) -> Result<Option<News>> {
        loop {
            Clock::Boot.sleep(self.session.ttl()).await;
            // Whether the entry holds permits also depends on the other entries, so list them.
            if wanted == Some(Became::Admitted) {
                return Ok(None);
            }
            let news = Box::pin(self.read(path, wanted)).await?;
            if news.is_some() {
                return Ok(news);
            }
        }
    }

    /// Asks whether an entry is gone, or has become `wanted`.
    async fn read(&self, path: &str, wanted: Option<Became>) -> Result<Option<News>> {
        match self.session.data(path, self.lane()).await? {
            Some(data) => Ok(news_in(&data, wanted)),
            None => Ok(Some(News::Gone)),
        }
    }

    /// Waits until the node of another client's entry is gone, or its note says `wanted`. Other
    /// writes to the node do not end the wait.
    async fn watch(&self, path: &str, wanted: Option<Became>) -> Result<Option<News>> {
        // Not `exists`: that would leave a watch behind on a node that is gone already.
        let arm = |exchange: Arc<Exchange>| async move {
            match wanted {
                Some(_) => {
                    let ((data, _), watch) = exchange.watch_data(path, Watched::Ahead).await?;
                    Ok((data, watch))
                }
                None => Ok((Vec::new(), exchange.watch_end(path, Watched::Ahead).await?)),
            }
        };
        loop {
            let (data, watch) = match self.session.once("watch", self.lane(), arm).await? {
                Break(Some(armed)) => armed,
                Break(None) => return Ok(Some(News::Gone)),
                Continue(()) => return Ok(None),
            };
            if let Some(news) = news_in(&data, wanted) {
                return Ok(Some(news));
            }
            match watch.changed().await {
                EventType::NodeDeleted => return Ok(Some(News::Gone)),
                EventType::NodeDataChanged if wanted.is_some() => {
                    // Most likely it became `wanted`, and then no other watch is needed.
                    let news = Box::pin(self.read(path, wanted)).await?;
                    if news.is_some() {
                        return Ok(news);
                    }
                }
                EventType::NodeDataChanged => {}
                _ => return Ok(None),
            }
        }
    }

    /// Waits until any entry before the own one has ended.
    async fn follow_all(&self, ahead: &mut Ahead) -> Result<Next> {
        let mut watch = None;
        if ahead.names().iter().any(|name| self.session.own_attempt(name).is_none()) {
            let arm = |exchange: Arc<Exchange>| async move {
                exchange.watch_children(&self.directory, Watched::Ahead).await
            };
            let (children, armed) = match self.session.once("watch", self.lane(), arm).await? {
                Break(Some(armed)) => armed,
                Break(None) => return Err(vanished()),
                Continue(()) => return Ok(Next::Look),
            };
            let node = self.attempt.node();
            if !node.is_some_and(|node| ahead.see(children, node.name(), node.sequence)) {
                return Err(vanished());
            }
            watch = Some(armed);
        }
        let own = ahead.names().iter().filter_map(|name| {
            let (attempt, name) = (self.session.own_attempt(name)?, name.clone());
            Some(async move { (name, attempt.news(None).await) })
        });
        let mut endings: FuturesUnordered<_> = own.collect();
        // The list may be older than a release in this process.
        while let Some(Some((name, ending))) = endings.next().now_or_never() {
            ahead.learn(&name, ending);
        }
        if ahead.duty() != Duty::AfterAny {
            return Ok(Next::Judge);
        }
        tokio::select! {
            // A look shows which entry is gone, and the own one may be gone, too.
            biased;
            Some(_) = OptionFuture::from(watch.map(Watch::changed)) => Ok(Next::Look),
            Some((name, ending)) = endings.next() => {
                ahead.learn(&name, ending);
                Ok(Next::Judge)
            }
            () = Clock::Boot.sleep(self.session.ttl()) => Ok(Next::Look),
        }
    }
}

fn news_in(data: &[u8], wanted: Option<Became>) -> Option<News> {
    let wanted = wanted?;
    (Note::became(data) == Some(wanted)).then_some(News::Became(wanted))
}
