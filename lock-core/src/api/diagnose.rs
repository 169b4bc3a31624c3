//! Waits that time out: one request for all that end together.

use std::{collections::hash_map::Entry, sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::timeout};
use uuid::Uuid;

use crate::{
    Diagnosis, LockName,
    api::client::Client,
    machine::ended_waits::{Ended, Found},
};

/// How long a wait that has ended waits for the store to name the holder.
pub(crate) const DIAGNOSIS_LIMIT: Duration = Duration::from_secs(1);
/// When a request counts as lost, and the next one may be sent.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

impl Client {
    /// The holder and the place of an attempt with an ended wait; `None` if the store does not
    /// report them within [`DIAGNOSIS_LIMIT`].
    pub(crate) async fn in_the_way(
        self: &Arc<Self>,
        name: &LockName,
        attempt: Uuid,
    ) -> Option<Found> {
        let (tell, told) = oneshot::channel();
        let ended = Ended { attempt, tell };
        match self.ended_waits.by_name().entry(name.clone()) {
            Entry::Occupied(mut look) => look.get_mut().push(ended),
            Entry::Vacant(none) => {
                none.insert(vec![ended]);
                self.home.runtime.spawn(look_for_all(self.clone(), name.clone()));
            }
        }
        timeout(DIAGNOSIS_LIMIT, told).await.ok()?.ok()
    }
}

/// Asks the store until no wait has ended meanwhile.
async fn look_for_all(client: Arc<Client>, name: LockName) {
    while let Some(waits) = client.ended_waits.next(&name) {
        let attempts: Vec<_> = waits.iter().map(|wait| wait.attempt).collect();
        let look = timeout(LOOK_LIMIT, client.driver.diagnose(&name, &attempts)).await;
        // Without an answer the waits end all the same: their channels close.
        let Ok(Ok(Diagnosis { holder, places })) = look else { continue };
        client.heard.hear();
        let places = places.into_iter().chain(std::iter::repeat(None));
        for (wait, place) in waits.into_iter().zip(places) {
            // The wait may have given up already.
            let _ = wait.tell.send(Found { holder: holder.clone(), place });
        }
    }
}
