//! Each later grant of a name carries a greater token. Kleppmann, "How to do distributed locking";
//! faults.md 2.3: a plain INCR hands out the same token twice.

use super::{Done, Failure, Harness, ensure, needs, property, scene::*};
use crate::{Fencing, FencingToken, LockName};

property!(across_release, across_expiry, across_deletion, across_restart);

async fn across_release(h: &dyn Harness) -> Done {
    let mut tokens = Tokens::new(h).await?;
    for _ in 0..5 {
        tokens.next(h, "a release").await?;
    }
    Ok(())
}

/// The holder is cut off and its lock expires.
async fn across_expiry(h: &dyn Harness) -> Done {
    let mut tokens = Tokens::new(h).await?;
    let lost = h.client().await?;
    let guard = acquire(h, &*lost, &tokens.name).await?;
    tokens.check(guard.token(), "a release")?;
    lost.cut().await?;
    tokens.next(h, "an expiry").await?;
    Ok(())
}

/// An operator deletes the lock's keys.
async fn across_deletion(h: &dyn Harness) -> Done {
    let mut tokens = Tokens::new(h).await?;
    tokens.next(h, "a release").await?;
    h.delete(&tokens.name).await?;
    tokens.next(h, "a deletion of the lock's keys").await?;
    Ok(())
}

async fn across_restart(h: &dyn Harness) -> Done {
    let mut tokens = Tokens::new(h).await?;
    tokens.next(h, "a release").await?;
    h.restart().await?;
    tokens.next(h, "a restart of the server").await?;
    Ok(())
}

struct Tokens {
    name: LockName,
    greatest: FencingToken,
}

impl Tokens {
    /// The first grant of a name.
    async fn new(h: &dyn Harness) -> Result<Self, Failure> {
        let client = h.client().await?;
        let guarantees = client.locks().guarantees();
        needs!(guarantees.fencing != Fencing::None, "{} hands out no tokens", guarantees.store);
        let name = fresh("fencing");
        let guard = acquire(h, &*client, &name).await?;
        let greatest = guard.token();
        guard.release().await?;
        Ok(Self { name, greatest })
    }

    /// A grant of another client, as in another process.
    async fn next(&mut self, h: &dyn Harness, after: &str) -> Done {
        let client = h.client().await?;
        let what = format!("a grant after {after}");
        let guard = promised(&what, lock(h, &*client, &self.name)?.acquire()).await??;
        self.check(guard.token(), after)?;
        Ok(guard.release().await?)
    }

    fn check(&mut self, token: FencingToken, after: &str) -> Done {
        ensure!(token > self.greatest, "token {token} after {} across {after}", self.greatest);
        self.greatest = token;
        Ok(())
    }
}
