//! A driver behind a pointer is a driver.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    Attempt, Clock, Diagnosis, DistributedLock, Entry, FencingToken, Guarantees, Lease, LockName,
    Observed, Reach, Request, Result, Ticket, TokenFloor, Wish,
};

macro_rules! forward {
    ($($pointer:ident),*) => {$(
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl<D: DistributedLock + ?Sized> DistributedLock for $pointer<D> {
            fn guarantees(&self) -> &Guarantees {
                (**self).guarantees()
            }

            fn clock(&self) -> Clock {
                (**self).clock()
            }

            fn reach(&self) -> Option<Reach> {
                (**self).reach()
            }

            async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
                (**self).acquire(request, attempt).await
            }

            async fn try_all(&self, wishes: Vec<Wish>) -> Result<Option<Vec<Box<dyn Lease>>>> {
                (**self).try_all(wishes).await
            }

            async fn adopt(
                &self,
                request: Request,
                attempt: Attempt,
                ticket: Ticket,
            ) -> Result<Box<dyn Lease>> {
                (**self).adopt(request, attempt, ticket).await
            }

            async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
                (**self).inspect(name).await
            }

            async fn ping(&self, name: &LockName) -> Result<()> {
                (**self).ping(name).await
            }

            async fn diagnose(&self, name: &LockName, attempts: &[Uuid]) -> Result<Diagnosis> {
                (**self).diagnose(name, attempts).await
            }

            async fn observe(&self, name: &LockName) -> Result<mpsc::Receiver<Observed>> {
                (**self).observe(name).await
            }

            async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
                (**self).names(prefix).await
            }

            async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
                (**self).revoke(name, attempt).await
            }

            async fn token_floor(&self) -> Result<TokenFloor> {
                (**self).token_floor().await
            }

            async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
                (**self).raise_token_floor(above).await
            }

            async fn below_token_floor(&self, floor: TokenFloor) -> Result<Vec<(LockName, Uuid)>> {
                (**self).below_token_floor(floor).await
            }

            async fn close(&self) -> Result<()> {
                (**self).close().await
            }
        }
    )*};
}

forward!(Box, Arc);
