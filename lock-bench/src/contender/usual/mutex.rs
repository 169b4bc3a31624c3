//! A mutex in this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use tokio::sync::OwnedMutexGuard;

use crate::{
    Failure,
    contender::{Asked, Client, Opening, Worker},
};

pub(in crate::contender) fn open(_: Asked) -> Opening {
    Box::pin(async { Ok(Box::new(Names::default()) as Box<dyn Client>) })
}

#[derive(Default)]
struct Names(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

#[async_trait]
impl Client for Names {
    async fn worker(&self, name: &str, _: bool) -> Result<Box<dyn Worker>, Failure> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mutex = names.entry(name.to_owned()).or_default().clone();
        Ok(Box::new(Locker { mutex, held: None }))
    }
}

struct Locker {
    mutex: Arc<tokio::sync::Mutex<()>>,
    held: Option<OwnedMutexGuard<()>>,
}

#[async_trait]
impl Worker for Locker {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        self.held = Some(self.mutex.clone().lock_owned().await);
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Failure> {
        self.held = None;
        Ok(())
    }
}
