//! Who observes a name, as the store knows it.

use lock_core::Leader;
use tokio::sync::mpsc;

/// Somebody who observes a name, as the store knows it.
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

    /// Tells who leads now, if that is new. Answers whether anybody listens.
    pub(crate) fn tell(&mut self, now: &Option<Leader>) -> bool {
        if self.told.as_ref() != Some(now) {
            self.told = Some(now.clone());
            // Nobody listens any more: found out below.
            let _ = self.tell.send(now.clone());
        }
        !self.tell.is_closed()
    }
}
