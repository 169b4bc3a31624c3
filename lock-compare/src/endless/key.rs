//! A key of Redis, or a simulated one.

use std::sync::Arc;

use async_trait::async_trait;

use super::Things;
use crate::{Failure, Keys};

pub(super) struct Key(pub(super) Arc<dyn Keys>);

#[async_trait]
impl Things for Key {
    async fn create(&self, name: &str) -> Result<bool, Failure> {
        self.0.set_nx(name, "taken").await
    }

    async fn remove(&self, name: &str) -> Result<bool, Failure> {
        self.0.del(name).await
    }
}
