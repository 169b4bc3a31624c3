//! The ways to get several locks.

use std::future::Future;

use crate::{
    BoxFuture, Error, HeldSet, LockSet, LockSetGuard, Result,
    api::{
        run::while_held,
        within::{wanted, within},
    },
    driver::meter,
};

impl LockSet {
    /// Waits until it has all of the locks. Locks that it gets earlier are held meanwhile, and
    /// given back if the acquire fails.
    ///
    /// # Errors
    ///
    /// Same as [`Lock::acquire`](crate::Lock::acquire); the limit of [`wait`](Self::wait) is for
    /// all of them together. [`Error::Lost`] if one was lost while it waited for the others, or
    /// before the caller polled again.
    pub fn acquire(&self) -> BoxFuture<'static, Result<LockSetGuard>> {
        let set = self.clone();
        Box::pin(async move {
            set.lock.check()?;
            set.members.iter().for_each(|(name, kind)| wanted(&set.lock, name, *kind));
            let work = set.clone();
            let granted = set.finished(Box::pin(async move { work.granted().await }));
            granted.await.map_err(|error| set.lock.client.failed("acquire", error))
        })
    }

    /// Takes all of the locks if all are free and no client waits for any of them; `None`
    /// otherwise. Then none is held: the locks taken so far are given back.
    ///
    /// # Errors
    ///
    /// Same as [`Lock::try_acquire`](crate::Lock::try_acquire); if the names are taken one after
    /// the other, its limit is for each. [`Error::Lost`] as for [`acquire`](Self::acquire).
    pub fn try_acquire(&self) -> BoxFuture<'static, Result<Option<LockSetGuard>>> {
        let set = self.clone();
        Box::pin(async move {
            set.lock.check()?;
            let work = set.clone();
            let taken = set.finished(Box::pin(async move {
                let lock = &work.lock;
                let answer = work.try_at_once("try_acquire").await;
                if let Err(error) = &answer {
                    work.note_failure(error);
                }
                if let Err(Error::Contended { .. }) = &answer
                    && let Some(first) = work.each().next()
                {
                    // Once: the store does not say which of them is taken.
                    meter::contended(lock.client.driver.guarantees().store, &first.request);
                }
                match answer? {
                    Some(held) => Ok(held),
                    None => Box::pin(work.try_in_order()).await,
                }
            }));
            match taken.await {
                Ok(held) => Ok(Some(held)),
                Err(Error::Contended { .. }) => Ok(None),
                Err(error) => Err(set.lock.client.failed("try_acquire", error)),
            }
        })
    }

    /// Waits until it has all of the locks, does the work while they are held, and releases them.
    /// If one is lost, the work is dropped at its next await point and never polled again, like
    /// [`Lock::run`](crate::Lock::run).
    ///
    /// ```no_run
    /// # async fn transfer(_: i64, _: i64) {}
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// let accounts = locks.all(["accounts/7", "accounts/3"])?;
    /// accounts
    ///     .run(|held| async move {
    ///         let tokens: Vec<_> = held.tokens().map(|(_, token)| token.as_i64()).collect();
    ///         transfer(tokens[0], tokens[1]).await
    ///     })
    ///     .await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire), and [`Error::Lost`] if one was lost before the work was
    /// done.
    pub fn run<T, W, F>(&self, work: W) -> impl Future<Output = Result<T>> + use<T, W, F>
    where
        W: FnOnce(HeldSet) -> F,
        F: Future<Output = T>,
    {
        let guard = self.acquire();
        async move { run_while_all_held(work, guard.await?).await }
    }

    /// Like [`run`](Self::run), with work that can fail: one `?` for its errors and the locks'.
    ///
    /// # Errors
    ///
    /// The errors of the work and of [`run`](Self::run).
    pub fn run_fallible<T, E, W, F>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, W, F>
    where
        W: FnOnce(HeldSet) -> F,
        F: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let run = self.run(work);
        async move { run.await? }
    }
}

/// Does the work while all of the locks are held, then releases them.
async fn run_while_all_held<T, W, F>(work: W, guard: LockSetGuard) -> Result<T>
where
    W: FnOnce(HeldSet) -> F,
    F: Future<Output = T>,
{
    let held = guard.held();
    let lost = held.lost();
    let lost = async move {
        let (name, reason) = lost.await;
        Error::Lost { name, reason }
    };
    let work = within(held.each(), work(held.clone()));
    let done = while_held(work, lost, || held.check()).await;
    held.after_loss(&done).await;
    let done = done?;
    let _ = guard.release().await;
    Ok(done)
}
