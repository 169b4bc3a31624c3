//! The observers of a name.

use lock_core::Leader;
use tokio::sync::mpsc;

/// The store's view of one observer of a name.
#[derive(Debug)]
pub(crate) struct Watching {
    tell: mpsc::UnboundedSender<Option<Leader>>,
    told: Option<Option<Leader>>,
}

impl Watching {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Option<Leader>>) {
        let (tell, changes) = mpsc::unbounded_channel();
        (Self { tell, told: None }, changes)
    }

    /// Sends the present leader, if it is new. Returns whether the observer still listens.
    pub(crate) fn tell(&mut self, now: &Option<Leader>) -> bool {
        if self.told.as_ref() != Some(now) {
            self.told = Some(now.clone());
            // A failure shows below: the observer is gone.
            let _ = self.tell.send(now.clone());
        }
        !self.tell.is_closed()
    }
}
