//! Paths where there can be no file.

use std::fs;

use lock_core::Error;

use crate::file::{connect, driver};

#[tokio::test]
async fn an_error_names_what_stands_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let below = format!("{} is no directory", file.display());
    for (path, why) in [
        (folder.path().to_owned(), "is a directory; name a file in it"),
        (folder.path().join("file/locks.db"), &below),
        (folder.path().join("file/deep/locks.db"), &below),
        (folder.path().join("no/locks.db"), "there is no directory"),
    ] {
        let refused = driver(&path).await.unwrap_err();
        assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
        let shown = refused.to_string();
        assert!(shown.contains(why) && shown.contains(&path.display().to_string()), "{shown}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// The URL of sqlx's database in memory would be a file of this name.
#[tokio::test]
async fn the_url_of_a_database_in_memory_is_refused() {
    let refused = connect("sqlite::memory:").await.unwrap_err();
    assert!(matches!(refused, Error::InvalidUrl { .. }), "{refused:?}");
    assert!(refused.to_string().contains("write `memory:`"), "{refused}");
}
