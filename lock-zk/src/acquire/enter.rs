//! The way into the queue: from the request for a node to the node.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{
    FutureExt,
    future::{OptionFuture, join_all, try_join_all},
};
use lock_core::{Effect, Kind, Result, Wait, keep::errors::rejected};
use zookeeper_client::{CreateMode, Error as ZkError, MultiWriteError, MultiWriteResult, Stat};

use crate::{
    acquire::Acquire,
    error::{self, Meaning, STORE, vanished},
    layout::child,
    queue::view::Ahead,
    session::attempt::{Attempt, Node},
    wire::requests::{Answer, Lane},
};

/// The answers to one flight: the paths and stats of the nodes, or why there are none; and the
/// directories' children.
pub(crate) type Flight = (Result<Vec<(String, Stat)>, MultiWriteError>, Vec<Answer<Vec<String>>>);

impl Acquire {
    /// Creates the node and lists the queue in one flight, for `ahead`. The server keeps the order
    /// of a session's requests, so the list shows all entries before the node. Returns also whether
    /// it shows the node.
    ///
    /// Behind an exclusive attempt of this session there is no list, unless other entries may be
    /// between the two: then it follows.
    pub(crate) async fn enter(&self, ahead: &mut Ahead) -> Result<(&Node, bool)> {
        let (session, (stem, note)) = (&self.session, self.wanted());
        let options = CreateMode::EphemeralSequential.with_acls(session.config.access.acls());
        let exchange = session.begin_in(self.lane()).await?;
        // Not before it has its slot: a caller that leaves until then has nothing to clean up.
        self.attempt.ask();
        let (created, last) = (exchange.create(&stem, &note, &options), self.last());
        let list = last.is_none().then(|| exchange.list(&self.directory));
        let (created, listed) = tokio::join!(created, OptionFuture::from(list));
        let (node, children) = match created {
            Ok((stat, sequence)) => {
                let node = self.node_of(format!("{stem}{sequence}"), &stat)?;
                let node = node.ok_or_else(vanished)?;
                // By now it may be another one, whose creation was answered just before.
                let others = last.map(|last| [Some(last), self.last()]);
                let is_right_before = |other: &Arc<Attempt>| other.is_right_before(&node);
                let before = others.into_iter().flatten().flatten().find(is_right_before);
                let node = self.created(node);
                if let Some(before) = before {
                    see_only(ahead, &before);
                    return Ok((node, true));
                }
                // In the same slot, so that it does not wait behind all that came since.
                let listed = match listed {
                    Some(listed) => listed,
                    None => exchange.list(&self.directory).await,
                };
                drop(exchange);
                self.with_list(node, listed).await?
            }
            Err(source) => {
                drop(exchange);
                // Without a list the directory counts as missing, if its absence made the creation
                // fail.
                let listed = listed.unwrap_or(Err(ZkError::NoNode));
                let failed = Err(MultiWriteError::OperationFailed { index: 0, source });
                let flight = (failed, vec![listed]);
                // Boxed, since it is rare, and this future would have room for it.
                let entered = Box::pin(enter_all(&[self], self.lane(), Some(flight))).await?;
                entered.into_iter().next().ok_or_else(vanished)?
            }
        };
        Ok((node, ahead.see(children, node.name(), node.sequence)))
    }

    /// Returns the attempt of this session that is probably right before this one, if it may be the
    /// only one to know. Behind the first entry of a directory none is known to be right behind.
    fn last(&self) -> Option<Arc<Attempt>> {
        let request = &self.attempt.request;
        let may = request.kind == Kind::Exclusive && request.wait != Wait::Try;
        let last = may.then(|| self.session.last(&request.name)).flatten();
        last.filter(|last| last.node().is_some_and(|node| node.sequence > 0))
    }

    /// Finds the node that an unanswered creation may have left. Should there be two, the later one
    /// is deleted.
    async fn find(&self) -> Result<Option<Node>> {
        let (session, directory) = (&self.session, &self.directory);
        let mut own = session.nodes_of(directory, self.attempt.id).await?.into_iter();
        let Some(name) = own.next() else { return Ok(None) };
        for surplus in own {
            session.remove(&format!("{directory}/{surplus}")).await?;
        }
        let path = format!("{directory}/{name}");
        let Some(stat) = session.stat(&path).await? else { return Ok(None) };
        self.node_of(path, &stat)
    }

    /// Returns the attempt's node, if this session owns it. A node of an earlier session counts as
    /// gone. Fails if the session is over, such as by a raise of the token floor.
    fn node_of(&self, path: String, stat: &Stat) -> Result<Option<Node>> {
        let above = self.session.above("acquire")?;
        if stat.ephemeral_owner != self.session.id {
            return Ok(None);
        }
        let Some(sequence) = child::sequence(&path) else { return Ok(None) };
        self.check_sequence(sequence)?;
        Ok(Some(Node { path, sequence, token: above.token_of(stat.czxid) }))
    }

    /// Refuses a node whose number is one of the last, and tells early that they come to an end.
    fn check_sequence(&self, sequence: i32) -> Result<()> {
        let directory = || format!("{}{}", self.session.config.chroot, self.directory);
        if child::is_used_up(sequence) {
            let why = format!(
                "{} has had 2^31 entries, nearly, and the server counts no further: leave \
                 the name alone until the server has deleted the empty directory, which takes a \
                 minute or two, or delete it",
                directory()
            );
            return Err(rejected(STORE, "acquire", Effect::None, why));
        }
        if let Some(left) = child::left_to_tell(sequence) {
            tracing::warn!(
                target: "distlock", directory = directory(), left,
                "after so many more entries this directory must be deleted: leave the name alone \
                 until the server does it, or do it yourself"
            );
        }
        Ok(())
    }

    /// The path of the node, without the sequence, and its data.
    pub(crate) fn wanted(&self) -> (String, Vec<u8>) {
        let stem = child::stem(self.caller.id(), self.attempt.request.kind);
        let note = self.attempt.note(None, self.attempt.request.value.as_deref());
        (format!("{}/{stem}", self.directory), note)
    }

    /// Records the node.
    fn created(&self, node: Node) -> &Node {
        let node = self.attempt.created(node);
        self.session.entered(&self.attempt);
        node
    }

    /// Returns the node with the list of the same flight, or with a new one if that does not show
    /// the node.
    async fn with_list<'n>(
        &self,
        node: &'n Node,
        listed: Answer<Vec<String>>,
    ) -> Result<(&'n Node, Vec<String>)> {
        match listed {
            Ok(children) if children.iter().any(|c| c == node.name()) => Ok((node, children)),
            _ => Ok((node, self.session.list(&self.directory, self.lane()).await?)),
        }
    }
}

/// Creates the nodes of all attempts of a session with one transaction, or none, and lists their
/// directories. Makes also the directories that are missing: containers, which the server deletes
/// when they have become empty. A first flight may have failed already.
pub(crate) async fn enter_all<'a>(
    all: &[&'a Acquire],
    lane: Lane,
    mut first: Option<Flight>,
) -> Result<Vec<(&'a Node, Vec<String>)>> {
    let (session, mut missing) = (&all[0].session, Missing::default());
    loop {
        let (created, lists) = match first.take() {
            Some(flight) => flight,
            None => create_all(all, lane, &missing).await?,
        };
        let not_found = all.iter().zip(&lists);
        let not_found = not_found.filter(|(_, list)| matches!(list, Err(ZkError::NoNode)));
        let not_found = not_found.map(|(acquire, _)| acquire.directory.as_str());
        let nodes = match created {
            Ok(created) => nodes_of_all(all, created).await?,
            Err(error) if missing.learn(&error, not_found) => continue,
            Err(error) => {
                let error = ZkError::from(error);
                if error::meaning(&error) == Meaning::Unanswered {
                    let doubt = |a: &&Acquire| session.doubt(&a.directory, a.attempt.id);
                    all.iter().for_each(doubt);
                }
                session.again("create", error).await?;
                let Some(nodes) = find_all(all).await? else { continue };
                nodes
            }
        };
        let entered = all.iter().zip(nodes).zip(lists).map(|((acquire, node), list)| {
            let node = acquire.created(node);
            acquire.with_list(node, list)
        });
        return try_join_all(entered).await;
    }
}

/// Takes in the attempt that is right before the own one, and how it has ended, if it has: once it
/// is forgotten, the server would be asked for it.
fn see_only(ahead: &mut Ahead, before: &Attempt) {
    let Some(node) = before.node() else { return };
    ahead.see_only(node.name());
    if let Some(news) = before.news(None).now_or_never() {
        ahead.learn(node.name(), news);
    }
}

/// Creates the directories and all nodes, and lists the nodes' directories in the same flight.
async fn create_all(all: &[&Acquire], lane: Lane, missing: &Missing) -> Result<Flight> {
    let session = &all[0].session;
    let acls = session.config.access.acls();
    let exchange = &session.begin_in(lane).await?;
    all.iter().for_each(|acquire| acquire.attempt.ask());
    let mut multi = exchange.transaction();
    let container = CreateMode::Container.with_acls(acls);
    let mut directories = missing.0.iter();
    let mut added = directories.try_for_each(|path| multi.add_create(path, b"", &container));
    let options = CreateMode::EphemeralSequential.with_acls(acls);
    for (stem, note) in all.iter().map(|acquire| acquire.wanted()) {
        added = added.and_then(|()| multi.add_create(&stem, &note, &options));
    }
    added.map_err(|error| error::write_failed("create", error))?;
    let node = |result| match result {
        MultiWriteResult::Create { path, stat } => Some((path, stat)),
        _ => None,
    };
    let nodes = |results: Vec<_>| {
        results.into_iter().skip(missing.0.len()).filter_map(node).collect::<Vec<_>>()
    };
    let created = exchange.commit(multi).map(|created| created.map(nodes));
    let lists = all.iter().map(|acquire| exchange.list(&acquire.directory));
    Ok(tokio::join!(created, join_all(lists)))
}

/// Returns the nodes that one transaction has created. The stat of one holds for all. Servers
/// before 3.9 send none in their answer (ZOOKEEPER-4026), so it is read then.
async fn nodes_of_all(all: &[&Acquire], created: Vec<(String, Stat)>) -> Result<Vec<Node>> {
    let session = &all[0].session;
    let (path, stat) = created.first().ok_or_else(vanished)?;
    let stat = match stat.is_invalid() {
        true => session.stat(path).await?.ok_or_else(vanished)?,
        false => *stat,
    };
    let nodes = all.iter().zip(created);
    nodes.map(|(acquire, (path, _))| acquire.node_of(path, &stat)?.ok_or_else(vanished)).collect()
}

/// Finds the nodes that an unanswered creation may have left: all or none, unless one was deleted
/// since.
async fn find_all(all: &[&Acquire]) -> Result<Option<Vec<Node>>> {
    let mut found = try_join_all(all.iter().map(|acquire| acquire.find())).await?;
    if all.len() > 1 && found.iter().any(Option::is_none) {
        // The transaction may have come between the looks.
        found = try_join_all(all.iter().map(|acquire| acquire.find())).await?;
    }
    if found.iter().all(Option::is_none) {
        return Ok(None);
    }
    found.into_iter().collect::<Option<_>>().map(Some).ok_or_else(vanished)
}

/// The directories that the next request has to make, before the nodes in them. One above another
/// comes first.
///
/// The server deletes an empty container only if it has had a child. An attempt that made the
/// directory alone, and left before it made its node, would leave the directory for ever.
#[derive(Debug, Default)]
struct Missing(BTreeSet<String>);

impl Missing {
    /// Learns from the refusal of a transaction that made nodes after these directories, and from
    /// the look of the same flight: it did not find these directories of the nodes. Returns whether
    /// the transaction may succeed now.
    fn learn<'d>(
        &mut self,
        error: &MultiWriteError,
        not_found: impl Iterator<Item = &'d str>,
    ) -> bool {
        let MultiWriteError::OperationFailed { index, source } = error else { return false };
        let directory = self.0.iter().nth(*index).cloned();
        match (directory, source) {
            (Some(directory), ZkError::NodeExists) => self.0.remove(&directory),
            (Some(directory), ZkError::NoNode) => match directory.rsplit_once('/') {
                // Without the root there is no chroot.
                None | Some(("", _)) => false,
                Some((above, _)) => self.0.insert(above.to_owned()),
            },
            // If all were found, another client has made them meanwhile.
            (None, ZkError::NoNode) => {
                self.0.extend(not_found.map(str::to_owned));
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(index: usize, source: ZkError) -> MultiWriteError {
        MultiWriteError::OperationFailed { index, source }
    }

    #[test]
    fn what_is_missing_is_found_step_by_step() {
        let mut missing = Missing::default();
        let mut learn = |index, source, not_found: &[&'static str]| {
            let goes_on = missing.learn(&failed(index, source), not_found.iter().copied());
            (goes_on, missing.0.iter().cloned().collect::<Vec<_>>().join(" "))
        };
        let all = |text: &str| (true, text.to_owned());
        assert_eq!(learn(0, ZkError::NoNode, &["/l/a/b", "/l/c"]), all("/l/a/b /l/c"));
        assert_eq!(learn(0, ZkError::NoNode, &[]), all("/l/a /l/a/b /l/c"));
        assert_eq!(learn(0, ZkError::NoNode, &[]), all("/l /l/a /l/a/b /l/c"));
        // Another client makes one meanwhile, and the server deletes another one.
        assert_eq!(learn(0, ZkError::NodeExists, &[]), all("/l/a /l/a/b /l/c"));
        assert_eq!(learn(4, ZkError::NoNode, &["/l/d"]), all("/l/a /l/a/b /l/c /l/d"));
        assert!(!learn(0, ZkError::NoAuth, &[]).0);
    }

    #[test]
    fn a_missing_chroot_ends_it() {
        let mut missing = Missing(BTreeSet::from(["/l".to_owned()]));
        assert!(!missing.learn(&failed(0, ZkError::NoNode), std::iter::empty()));
        assert!(!missing.learn(&ZkError::ConnectionLoss.into(), std::iter::empty()));
    }
}
