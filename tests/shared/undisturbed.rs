//! Scenes with locks so short that a machine ends them when it stands still.

use std::time::Duration;

use super::beat::Beat;

const SCENES: usize = 5;

/// Plays a scene, and plays it again if it fails while tasks were late by this much: then it proves
/// nothing. It may not fail otherwise.
pub async fn undisturbed<T>(
    late: Duration,
    mut scene: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    for _ in 0..SCENES {
        let beat = Beat::start();
        match scene().await {
            Ok(done) => return done,
            Err(why) => {
                let measured = beat.late();
                assert!(measured >= late, "{why}, and tasks are late by {measured:?}");
                println!("again, tasks are late by {measured:?}: {why}");
            }
        }
    }
    panic!("tasks were late by {late:?} in each of {SCENES} scenes");
}
