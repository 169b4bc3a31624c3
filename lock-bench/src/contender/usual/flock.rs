//! `flock(2)`: a file beside SQLite's for each name.

use std::{
    fs::{self, File, OpenOptions},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use distlock::LockName;
use rustix::{
    fs::{FlockOperation, flock},
    io::{Errno, retry_on_intr},
};
use tokio::task::{spawn_blocking, yield_now};

use crate::{
    Failure,
    contender::{Asked, Client, Opening, Worker, floor::database::file},
};

pub(in crate::contender) fn open(Asked { url, .. }: Asked) -> Opening {
    Box::pin(async move {
        let beside = file(&url)?.display().to_string();
        Ok(Box::new(Folder { beside, made: Mutex::default() }) as Box<dyn Client>)
    })
}

struct Folder {
    beside: String,
    /// The files of this client's names.
    made: Mutex<Vec<PathBuf>>,
}

#[async_trait]
impl Client for Folder {
    async fn worker(&self, name: &str, _: bool) -> Result<Box<dyn Worker>, Failure> {
        let name = LockName::new(name)?;
        let path = PathBuf::from(format!("{}.{}.flock", self.beside, name.escaped()));
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(path);
        Ok(Box::new(Opener(Arc::new(file))))
    }

    async fn close(self: Box<Self>) -> Result<(), Failure> {
        for path in self.made.into_inner().unwrap_or_else(PoisonError::into_inner) {
            // Workers of a name share its file, and all of them open it before the round begins.
            let _ = fs::remove_file(path);
        }
        Ok(())
    }
}

/// It opened the file itself: `flock` keeps it apart from all others that did.
struct Opener(Arc<File>);

#[async_trait]
impl Worker for Opener {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        match flock(&*self.0, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // Other tasks ask meanwhile, as while any other lock is taken. Otherwise they would
                // not run before the release, and nobody would ever wait.
                yield_now().await;
                return Ok(None);
            }
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(error.into()),
        }
        let file = self.0.clone();
        let wait = move || retry_on_intr(|| flock(&*file, FlockOperation::LockExclusive));
        spawn_blocking(wait).await??;
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Failure> {
        Ok(flock(&*self.0, FlockOperation::Unlock)?)
    }
}
