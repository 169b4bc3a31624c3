//! Sends a request again until the database answers, or it is too late.

use std::time::Duration;

use lock_core::{
    Attempt, Clock, Effect, Result,
    keep::{backoff::Backoff, errors::unavailable},
};

use super::Session;
use crate::{
    error::{self, is_final, worded},
    wire::{
        database::{Call, Reply},
        failure::Failure,
        script::Script,
    },
};

/// Pause between sendings of the same script.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(250));

impl Session {
    /// Sends a script until the database answers. Waits for its turn as long as the database answers
    /// other requests. Fails with [`Error::Unavailable`](lock_core::Error::Unavailable) at the
    /// deadline, or when the attempt is cancelled; its effect says whether the script may have been
    /// executed. Fails with the database's error if it refuses the script for good.
    pub(crate) async fn insist(
        &self,
        call: Call<'_>,
        script: impl Fn(Script) -> String,
    ) -> Result<Reply> {
        let Call { op, rank, patience, mut deadline, caller } = call;
        let (dialect, mut earlier, mut pause) = (self.dialect(), Effect::None, BACKOFF);
        let too_late =
            |earlier, why| unavailable(dialect.store(), op, earlier, worded(dialect, why));
        let is_closed = || caller.is_some() && self.book().attempts.is_closed();
        loop {
            let asked = Clock::Boot.now();
            let turn = self.database.turn(rank, deadline.since(asked), caller).await;
            let turn = turn.map_err(|failure| match failure {
                Failure::Down(why) => too_late(earlier, why),
                _ => error::closed(dialect),
            })?;
            deadline = deadline + Clock::Boot.now().since(asked);
            if is_closed() {
                return Err(error::closed(dialect));
            }
            // Written anew each time: it may name the time of day.
            let script = script(self.script());
            let failure = match self.database.run_in(turn, &script, patience).await {
                Ok((sent, rows)) => return Ok(Reply { sent, rows, earlier }),
                Err(failure) => failure,
            };
            let why = match failure {
                Failure::Refused(why) if is_final(dialect, &why) => {
                    return Err(error::after(earlier, error::convert(dialect, op, why)));
                }
                Failure::Lost(why) => {
                    earlier = Effect::Unknown;
                    why
                }
                Failure::Refused(why) => {
                    if let Some(caller) = caller {
                        caller.put_off(&why);
                    }
                    why
                }
                Failure::Down(why) => why,
                failure => return Err(error::after(earlier, failure.unsent(dialect, op))),
            };
            if is_closed() {
                return Err(error::closed(dialect));
            }
            if Clock::Boot.now() >= deadline || caller.is_some_and(Attempt::is_cancelled) {
                return Err(too_late(earlier, why));
            }
            pause.wait().await;
        }
    }
}
