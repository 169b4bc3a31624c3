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

    /// Learns from the refusal of a transaction that made nodes after these directories, and from
    /// the look of the same flight: it did not find these directories of the nodes. Returns whether
    /// the transaction may succeed now.
    pub(crate) fn learn<'d>(
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
