//! Paths where there can be no file.

use std::{fs, path::Path};

use lock_core::Error;

use crate::file::{child, connect, driver};

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
        assert!(matches!(refused, Error::Misconfigured { .. }), "{refused:?}");
        let shown = refused.to_string();
        assert!(shown.contains(why) && shown.contains(&path.display().to_string()), "{shown}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Under each name SQLite would have another log, and locks of its own.
#[tokio::test]
async fn a_file_with_another_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("locks.db"), folder.path().join("link.db"));
    driver(&file).await.unwrap();
    fs::hard_link(&file, &link).unwrap();
    for name in [&file, &link] {
        let refused = driver(name).await.unwrap_err();
        assert!(matches!(refused, Error::Rejected { .. }), "{refused:?}");
        assert!(refused.to_string().contains("has 2 names"), "{refused}");
    }
    fs::remove_file(&link).unwrap();
    driver(&file).await.unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    driver(&link).await.unwrap();
}

/// As a container has it that mounts the file alone.
#[test]
fn a_file_that_is_a_mount_is_refused_and_a_folder_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    fs::create_dir(&here).unwrap();
    fs::create_dir(&there).unwrap();
    let (file, mounted) = (here.join("locks.db"), there.join("locks.db"));
    fs::write(&file, "").unwrap();
    fs::write(&mounted, "").unwrap();
    let url = format!("sqlite:{}", mounted.display());
    let bind = |from: &Path, to: &Path| format!("mount --bind {} {}", from.display(), to.display());
    let mut holder = child::start("hold", &format!("sqlite:{}", file.display()), |_| {});
    holder.says();
    let mut alone = child::start_behind(&bind(&file, &mounted), "open", &url);
    let said = alone.says();
    assert!(said.contains("sqlite rejected") && said.contains("is a mount of its own"), "{said}");
    let mut whole = child::start_behind(&bind(&here, &there), "try", &url);
    assert_eq!(whole.says(), "busy");
    for other in [holder, alone, whole] {
        other.ends();
    }
}

/// The URL of sqlx's database in memory would be a file of this name.
#[tokio::test]
async fn the_url_of_a_database_in_memory_is_refused() {
    let refused = connect("sqlite::memory:").await.unwrap_err();
    assert!(matches!(refused, Error::InvalidUrl { .. }), "{refused:?}");
    assert!(refused.to_string().contains("write `memory:`"), "{refused}");
}
