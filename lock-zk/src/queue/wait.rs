//! Waiting in line: for whom, and what wakes a waiter.
//!
//! Each waiter follows one entry, so that a release wakes those who can enter and nobody else; only
//! the first one who waits for permits follows all who hold some, by a watch on the directory. An
//! entry of the same session is followed in memory, at no request.

use futures_util::{FutureExt, StreamExt, future, stream::FuturesUnordered};
use lock_core::{Kind, Result};
use zookeeper_client::{Error as ZkError, EventType};

use crate::{
    acquire::Acquire,
    error::vanished,
    layout::note::{Became, Note},
    queue::view::{Ahead, Duty, Next},
    session::attempt::{Ending, News},
    wire::watches::Watch,
};

impl Acquire {
    /// Waits for what the duty says, or until it is time to look again.
    pub(crate) async fn wait(&self, ahead: &mut Ahead, duty: Duty) -> Result<Next> {
        let shared = (self.request.kind == Kind::Shared).then_some(Became::Shared);
        let turn = async {
            match duty {
                Duty::Hold => Ok(Next::Judge),
                Duty::After(index) => self.follow(ahead, index, shared).await,
                Duty::Turn(index) => self.follow(ahead, index, Some(Became::Admitted)).await,
                Duty::AfterAny => self.follow_all(ahead).await,
            }
        };
        tokio::select! {
            biased;
            _ = self.attempt.ended() => Err(vanished()),
            next = turn => next,
        }
    }

    /// Waits until an entry ends or becomes what is wanted.
    ///
    /// If what is left then admits the own entry, that is the grant: lower sequences never appear
    /// later, and the news came over a live session. The own node must be there, too: behind
    /// another client's entry it is watched, or looked for.
    async fn follow(
        &self,
        ahead: &mut Ahead,
        index: usize,
        wanted: Option<Became>,
    ) -> Result<Next> {
        let name = &ahead.names()[index];
        let path = format!("{}/{name}", self.directory);
        let local = self.session.own_attempt(name);
        if local.is_none() {
            self.session.unwatched.hurry(&self.attempt);
        }
        let news = async {
            match (&local, wanted) {
                (Some(attempt), _) => Ok(Some(attempt.news(wanted).await)),
                (None, None) => self.watch_end(&path).await,
                (None, Some(wanted)) => self.watch(&path, wanted).await,
            }
        };
        let news = tokio::select! {
            news = news => news?,
            looked = self.look_now_and_then(&path, wanted) => looked?,
        };
        match news {
            Some(News::Ended(ending)) => {
                ahead.ended(index, ending);
                // The view may be old; to walk back through it in memory costs nothing.
                let walks = local.is_some() && ahead.duty() != Duty::Hold;
                Ok(if walks { Next::Judge } else { self.enters(ahead, ending == Ending::Passed) })
            }
            Some(News::Became(became)) => {
                ahead.became(index, became);
                let waits = ahead.duty() != Duty::Hold;
                Ok(if waits { Next::Judge } else { self.enters(ahead, local.is_some()) })
            }
            None => Ok(Next::Look),
        }
    }

    /// Whether it may enter by what it knows. What this client itself has passed on is no sign that
    /// somebody removes nodes; else its own node may have been removed just before, and the task that
    /// hears of that may not have run yet.
    fn enters(&self, ahead: &Ahead, passed_on: bool) -> Next {
        let known = passed_on || self.attempt.is_known_to_be_there();
        if known && ahead.duty() == Duty::Hold { Next::Judge } else { Next::Look }
    }

    /// A wake-up that never comes must not stop a waiter for ever. Returns when there is something
    /// to look at.
    async fn look_now_and_then(&self, path: &str, wanted: Option<Became>) -> Result<Option<News>> {
        loop {
            tokio::time::sleep(self.session.ttl()).await;
            // Whether somebody holds permits is found out by who else is there, too.
            if wanted == Some(Became::Admitted) {
                return Ok(None);
            }
            let news = self.read(path, wanted).await?;
            if news.is_some() {
                return Ok(news);
            }
        }
    }

    /// Asks whether an entry is gone, or has become what is wanted.
    async fn read(&self, path: &str, wanted: Option<Became>) -> Result<Option<News>> {
        match self.session.data(path, self.turn()).await? {
            Some(data) => Ok(news_in(&data, wanted)),
            None => Ok(Some(News::Ended(Ending::Gone))),
        }
    }

    /// Waits until the node of another client's entry is gone, whatever is written to it meanwhile.
    async fn watch_end(&self, path: &str) -> Result<Option<News>> {
        loop {
            let exchange = self.session.begin_in_turn(self.turn()).await?;
            let armed = self.session.watches.watch_end(&exchange, path).await;
            drop(exchange);
            match armed {
                Ok(watch) => match watch.changed().await {
                    EventType::NodeDeleted => return Ok(Some(News::Ended(Ending::Gone))),
                    EventType::NodeDataChanged => {}
                    _ => return Ok(None),
                },
                Err(ZkError::NoNode) => return Ok(Some(News::Ended(Ending::Gone))),
                Err(error) => return self.session.again("watch", error).await.map(|()| None),
            }
        }
    }

    /// Waits until the node of another client's entry is gone or says what is wanted.
    async fn watch(&self, path: &str, wanted: Became) -> Result<Option<News>> {
        loop {
            let exchange = self.session.begin_in_turn(self.turn()).await?;
            // Not `exists`: that would leave a watch behind on a node that is gone already.
            let armed = self.session.watches.watch_data(&exchange, path).await;
            // The client ends its session when nobody has a copy of it.
            drop(exchange);
            let (data, watch) = match armed {
                Ok(((data, _), watch)) => (data, watch),
                Err(ZkError::NoNode) => return Ok(Some(News::Ended(Ending::Gone))),
                Err(error) => return self.session.again("watch", error).await.map(|()| None),
            };
            if let Some(news) = news_in(&data, Some(wanted)) {
                return Ok(Some(news));
            }
            match watch.changed().await {
                EventType::NodeDeleted => return Ok(Some(News::Ended(Ending::Gone))),
                EventType::NodeDataChanged => {
                    // Most likely it is what is wanted, and then no other watch is.
                    let news = self.read(path, Some(wanted)).await?;
                    if news.is_some() {
                        return Ok(news);
                    }
                }
                _ => return Ok(None),
            }
        }
    }

    /// Waits until any of those before the own entry has ended.
    async fn follow_all(&self, ahead: &mut Ahead) -> Result<Next> {
        let watch = match ahead.names().iter().all(|name| self.session.own_attempt(name).is_some())
        {
            true => None,
            false => match self.watch_directory(ahead).await? {
                Some(watch) => Some(watch),
                None => return Ok(Next::Look),
            },
        };
        let own = ahead.names().iter().filter_map(|name| self.ending_of(name));
        let mut endings: FuturesUnordered<_> = own.collect();
        // The list may be older than what has been released here.
        while let Some(Some((name, ending))) = endings.next().now_or_never() {
            end(ahead, &name, ending);
        }
        if ahead.duty() != Duty::AfterAny {
            return Ok(Next::Judge);
        }
        let changed = async {
            match watch {
                Some(watch) => drop(watch.changed().await),
                None => future::pending().await,
            }
        };
        tokio::select! {
            // Who is gone is seen by a look, and one's own entry may be gone, too.
            biased;
            () = changed => Ok(Next::Look),
            Some((name, ending)) = endings.next() => {
                end(ahead, &name, ending);
                Ok(Next::Judge)
            }
            () = tokio::time::sleep(self.session.ttl()) => Ok(Next::Look),
        }
    }

    /// Sets a watch on the directory and takes in who is there.
    async fn watch_directory(&self, ahead: &mut Ahead) -> Result<Option<Watch>> {
        let exchange = self.session.begin_in_turn(self.turn()).await?;
        let armed = self.session.watches.watch_children(&exchange, &self.directory).await;
        drop(exchange);
        match armed {
            Ok((children, watch)) => {
                let node = self.attempt.node();
                let found = node.is_some_and(|n| ahead.see(children, n.name(), n.sequence));
                if found { Ok(Some(watch)) } else { Err(vanished()) }
            }
            Err(ZkError::NoNode) => Err(vanished()),
            Err(error) => self.session.again("watch", error).await.map(|()| None),
        }
    }

    /// The end of an entry of this session, with its name.
    fn ending_of(&self, name: &str) -> Option<impl Future<Output = (String, Ending)> + use<>> {
        let (attempt, name) = (self.session.own_attempt(name)?, name.to_owned());
        Some(async move {
            let ending = attempt.ended().await;
            (name, ending)
        })
    }
}

fn news_in(data: &[u8], wanted: Option<Became>) -> Option<News> {
    let wanted = wanted?;
    (Note::became(data) == Some(wanted)).then_some(News::Became(wanted))
}

fn end(ahead: &mut Ahead, name: &str, ending: Ending) {
    if let Some(index) = ahead.names().iter().position(|other| other == name) {
        ahead.ended(index, ending);
    }
}
