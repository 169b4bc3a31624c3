//! The column `granted`, as far as a client knows.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::layout::schema::Grants;

/// What a client knows of the column. It may disappear, as when an old dump is restored, and come
/// back.
#[derive(Debug)]
pub(crate) struct Column(AtomicBool);

impl Column {
    pub(super) fn new(grants: Grants) -> Self {
        Self(AtomicBool::new(grants == Grants::Dated))
    }

    pub(super) fn grants(&self) -> Grants {
        if self.0.load(Relaxed) { Grants::Dated } else { Grants::Undated }
    }

    pub(super) fn set(&self, grants: Grants) {
        self.0.store(grants == Grants::Dated, Relaxed);
    }
}
