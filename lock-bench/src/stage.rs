//! What all parts of a run share.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use uuid::Uuid;

use crate::{
    Failure, Options, Progress, Violated, Workload, contender::Contender, job::Job, place::Place,
    target::Target,
};

pub(crate) struct Stage<'a> {
    pub options: &'a Options,
    pub progress: &'a (dyn Fn(Progress<'_>) + Sync),
    pub place: Place,
    pub stores: Vec<Target>,
    /// The start of all names of the run.
    run: String,
    loads: AtomicU32,
    missing: Mutex<Vec<String>>,
}

impl<'a> Stage<'a> {
    pub(crate) async fn set(
        options: &'a Options,
        progress: &'a (dyn Fn(Progress<'_>) + Sync),
    ) -> Result<Self, Failure> {
        let (stores, missing) = Target::all(options).await?;
        let id = Uuid::new_v4().simple().to_string();
        let run = format!("distlock-bench/{}", &id[..8]);
        let (place, missing, loads) = (Place::start()?, Mutex::new(missing), AtomicU32::new(0));
        Ok(Self { options, progress, place, stores, run, loads, missing })
    }

    /// The job of all workers of one contender: its names are new.
    pub(crate) fn job(&self, store: &Target, by: Contender, workload: &Workload) -> Job {
        let load = self.loads.fetch_add(1, Ordering::Relaxed);
        Job {
            scheme: store.scheme.to_owned(),
            url: store.url.clone(),
            contender: by.name.to_owned(),
            prefix: format!("{}/{load}/", self.run),
            workload: workload.clone(),
            workers: 0..workload.workers,
            apart: false,
            held: 0,
        }
    }

    /// Takes down that a part of the report is missing.
    pub(crate) fn miss(&self, why: impl Into<String>) {
        let why = why.into();
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if !missing.contains(&why) {
            missing.push(why);
        }
    }

    /// The same for a failure. One that breaks the lock's promise ends the run.
    pub(crate) fn failed(&self, what: &str, failure: Failure) -> Result<(), Failure> {
        if failure.is::<Violated>() {
            return Err(failure);
        }
        self.miss(format!("{what}: {failure}"));
        Ok(())
    }

    pub(crate) fn missing(&self) -> Vec<String> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
