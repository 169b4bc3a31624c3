//! Directories that are made by the request that makes the nodes in them.
//!
//! The server deletes an empty container only if it has had a child. An attempt that made the
//! directory alone, and left before it made its node, would leave the directory for ever.

use std::collections::BTreeSet;

use zookeeper_client::{CreateOptions, Error as ZkError, MultiWriteError, MultiWriter};

/// The directories that the next request has to make. One above another comes first.
#[derive(Debug, Default)]
pub(crate) struct Missing(BTreeSet<String>);

impl Missing {
    /// One directory.
    pub(crate) fn one(directory: &str) -> Self {
        Self(BTreeSet::from([directory.to_owned()]))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds their creations to an empty transaction.
    pub(crate) fn add_to(
        &self,
        multi: &mut MultiWriter<'_>,
        options: &CreateOptions<'_>,
    ) -> Result<(), ZkError> {
        self.0.iter().try_for_each(|directory| multi.add_create(directory, b"", options))
    }

    /// Learns from the refusal of a transaction that made a node in each of `wanted` after these
    /// directories. Returns whether it may succeed now.
    pub(crate) fn learn(&mut self, error: &MultiWriteError, wanted: &[&str]) -> bool {
        let MultiWriteError::OperationFailed { index, source } = error else { return false };
        let directory = self.0.iter().nth(*index).cloned();
        match (directory, source) {
            (Some(directory), ZkError::NodeExists) => self.0.remove(&directory),
            (Some(directory), ZkError::NoNode) => match directory.rsplit_once('/') {
                // Without the root there is no chroot.
                None | Some(("", _)) => false,
                Some((above, _)) => self.0.insert(above.to_owned()),
            },
            (None, ZkError::NoNode) => {
                let directory = wanted.get(index.saturating_sub(self.len()));
                directory.is_some_and(|directory| self.0.insert((*directory).to_owned()))
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
        let (mut missing, wanted) = (Missing::default(), ["/l/a/b", "/l/c"]);
        let mut learn = |index, source| {
            let goes_on = missing.learn(&failed(index, source), &wanted);
            (goes_on, missing.0.iter().cloned().collect::<Vec<_>>().join(" "))
        };
        let all = |text: &str| (true, text.to_owned());
        assert_eq!(learn(0, ZkError::NoNode), all("/l/a/b"));
        assert_eq!(learn(0, ZkError::NoNode), all("/l/a /l/a/b"));
        assert_eq!(learn(0, ZkError::NoNode), all("/l /l/a /l/a/b"));
        // Another client makes one meanwhile.
        assert_eq!(learn(0, ZkError::NodeExists), all("/l/a /l/a/b"));
        assert_eq!(learn(3, ZkError::NoNode), all("/l/a /l/a/b /l/c"));
        assert_eq!(learn(2, ZkError::NodeExists), all("/l/a /l/a/b"));
        assert!(!learn(0, ZkError::NoAuth).0);
    }

    #[test]
    fn a_missing_chroot_ends_it() {
        let mut missing = Missing::one("/l");
        assert!(!missing.learn(&failed(0, ZkError::NoNode), &["/l"]));
        assert!(!missing.learn(&ZkError::ConnectionLoss.into(), &["/l"]));
    }
}
