//! Any non-empty UTF-8 of up to 512 bytes is a name, and different names are different locks.
//! DistributedLock's `SafeName` tests; distributed-lock-rs panics on ""; rslock confuses
//! `["ab","c"]` and `["a","bc"]`.

use super::{Done, Harness, ensure, property, scene::*};
use crate::{Error, LockGuard, LockName};

property!(empty_is_refused, odd_names_work, different_names_are_independent);

async fn empty_is_refused(h: &dyn Harness) -> Done {
    let client = h.client().await?;
    for bad in [String::new(), "n".repeat(LockName::MAX_BYTES + 1)] {
        let refused = client.locks().lock(&bad);
        ensure!(
            matches!(refused, Err(Error::InvalidName { .. })),
            "{} bytes: {refused:?}",
            bad.len()
        );
    }
    Ok(())
}

fn odd(longest: usize) -> Vec<String> {
    let odd = [
        "/", "a/", "/a", "//", "%", "%2F", "{", "{a}", "{}x", "}{", " ", " a", ".", "..", "\u{0}",
        "\n", "\u{7f}", "名前", "🔒", "é", "e\u{301}", "a:fence", "*", "?", "[a-z]", "\"", "\\",
        "\u{feff}", "\u{ffff}",
    ];
    let mut odd: Vec<String> = odd.iter().map(ToString::to_string).collect();
    odd.push("a-lock-0000000001".to_owned());
    odd.push("n".repeat(longest));
    odd.push("é".repeat(longest / 2));
    odd
}

async fn odd_names_work(h: &dyn Harness) -> Done {
    let (a, b) = (h.client().await?, h.client().await?);
    for name in odd(h.longest_name()) {
        let short: String = name.chars().take(20).collect();
        let name = LockName::new(&name)?;
        let held = soon("acquire", lock(h, &*a, &name)?.acquire()).await??;
        let other = soon("try_acquire", lock(h, &*b, &name)?.try_acquire()).await??;
        ensure!(other.is_none(), "the lock {short:?} was granted twice");
        soon("release", held.release()).await??;
    }
    nothing_left(h).await
}

/// Names that a careless mapping to keys would confuse, all held at the same time.
async fn different_names_are_independent(h: &dyn Harness) -> Done {
    let (client, tag) = (h.client().await?, fresh("independent"));
    let mut held: Vec<LockGuard> = Vec::new();
    let suffixes =
        ["", "/", "/b", "%2Fb", "/b/c", "b", "B", " ", "%", "%25", "{}", ":b", "-lock-", "名"];
    for suffix in suffixes {
        let name = LockName::new(format!("{tag}{suffix}"))?;
        let taken = soon("try_acquire", lock(h, &*client, &name)?.try_acquire()).await??;
        held.push(taken.ok_or_else(|| format!("{name} is taken by another name's holder"))?);
    }
    for guard in held {
        soon("release", guard.release()).await??;
    }
    Ok(())
}
