//! Directories in which nearly 2^31 entries have been made.

use std::{fs, path::PathBuf};

use lock_core::Error;
use lock_lab::{Backup, ZooKeeper};
use lock_zk::client::{Acls, CreateMode};

use crate::support::*;

/// The last million is refused.
const LAST: i32 = i32::MAX - 1_000_000;
const MODULUS: u32 = 65_521;
/// At the end of a snapshot: the checksum of all before, and the text `/`.
const SEAL: usize = 8 + 5;

/// Lets the server number the next entry of a directory so.
async fn count_on(server: &ZooKeeper, directory: &str, next: i32) {
    let (raw, open) = (raw(server).await, CreateMode::Persistent.with_acls(Acls::anyone_all()));
    raw.mkdir(directory, &open).await.unwrap();
    drop(raw);
    // A server writes a snapshot when it starts.
    server.restart().await.unwrap();
    let backup = server.back_up().await.unwrap();
    let file = newest_snapshot(&backup);
    let mut bytes = fs::read(&file).unwrap();
    let at = cversion(&bytes, directory);
    bytes[at..at + 4].copy_from_slice(&next.to_be_bytes());
    let seal = bytes.len() - SEAL;
    let sum = u64::from(adler32(&bytes[..seal]));
    bytes[seal..seal + 8].copy_from_slice(&sum.to_be_bytes());
    fs::write(file, bytes).unwrap();
    server.restore(&backup).await.unwrap();
}

fn newest_snapshot(backup: &Backup) -> PathBuf {
    let number = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        i64::from_str_radix(name.strip_prefix("snapshot.")?, 16).ok()
    };
    let files = fs::read_dir(backup.folder().join("data/version-2")).unwrap();
    let files = files.map(|entry| entry.unwrap().path()).filter(|path| number(path).is_some());
    files.max_by_key(number).expect("a snapshot")
}

/// Returns where a node's number of created children stands. Its path is written with its length;
/// then follow its data with their length, its ACL, two transactions, two times, and a version.
fn cversion(snapshot: &[u8], path: &str) -> usize {
    let length = |text: &[u8]| u32::try_from(text.len()).unwrap().to_be_bytes();
    let written = [&length(path.as_bytes())[..], path.as_bytes()].concat();
    let found = snapshot.windows(written.len()).position(|some| some == written);
    let data = found.expect("the node") + written.len();
    let bytes = i32::from_be_bytes(snapshot[data..data + 4].try_into().unwrap());
    data + 4 + usize::try_from(bytes.max(0)).unwrap() + 5 * 8 + 4
}

fn adler32(bytes: &[u8]) -> u32 {
    let (mut sum, mut sums) = (1, 0);
    for byte in bytes {
        sum = (sum + u32::from(*byte)) % MODULUS;
        sums = (sums + sum) % MODULUS;
    }
    (sums << 16) | sum
}

#[tokio::test]
async fn the_last_numbers_are_refused_until_the_directory_is_deleted() {
    // Its snapshots end with one seal only.
    let server = started(lab().arg("-Dzookeeper.digest.enabled=false")).await;
    for (name, lock) in [("used-up", true), ("set", false)] {
        let directory = format!("/locks/{name}");
        count_on(&server, &directory, LAST - 1).await;
        let locks = open(&server.url()).await;
        let take = async || match lock {
            true => locks.lock(name)?.acquire().await?.release().await,
            false => locks.all([name, "other"])?.acquire().await?.release().await,
        };
        take().await.unwrap();
        for _ in 0..2 {
            let error = take().await.unwrap_err();
            assert!(matches!(error, Error::Rejected { .. }), "{error:?}");
            assert!(error.to_string().contains(&directory), "{error}");
        }
        let raw = raw(&server).await;
        assert!(children(&raw, &directory).await.is_empty(), "something is left");
        raw.delete(&directory, None).await.unwrap();
        take().await.unwrap();
    }
}
