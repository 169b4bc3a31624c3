//! Long texts.

use crate::{file::locks, support::sizes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_of_long_texts_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    sizes::a_set_of_long_texts_is_taken(locks(&folder.path().join("db")).await).await;
}
