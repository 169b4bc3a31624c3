//! Two clients of the library. The second one waits.

use std::time::Duration;

use tokio::time::timeout;

use super::until_line;
use crate::{Failure, Stage};

/// Limit for expected events on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The first client holds the first name, the second one asks for the second name. Returns whether
/// the second one gets its lock only after the first one has left.
pub(crate) async fn two_clients(stage: &Stage, names: &[String; 2]) -> Result<bool, Failure> {
    let (one, two) = (stage.connect().await?, stage.connect().await?);
    let first = one.lock(&names[0])?.acquire().await?;
    let mut asking = tokio::spawn(two.lock(&names[1])?.acquire());
    let waits = tokio::select! {
        early = &mut asking => {
            early??.release().await?;
            false
        }
        line = until_line(&one, &names[0], |line| line.len() > 1) => line.map(|_| true)?,
    };
    first.release().await?;
    if waits {
        timeout(PATIENCE, asking).await???.release().await?;
    }
    Ok(waits)
}
