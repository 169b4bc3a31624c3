//! What all parts of a run share.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use uuid::Uuid;

use crate::{
    Failure, Kind, Options, Progress, Role, Violated, Workload,
    contender::{Contender, all},
    job::Job,
    place::Place,
    target::Target,
};

pub(crate) struct Stage<'a> {
    pub options: &'a Options,
    pub progress: &'a (dyn Fn(Progress<'_>) + Sync),
    pub place: Place,
    pub stores: Vec<Store>,
    /// The start of all names of the run.
    run: String,
    loads: AtomicU32,
    missing: Mutex<Vec<String>>,
}

/// A store, and who plays on it.
pub(crate) struct Store {
    pub target: Target,
    pub contenders: Vec<Arc<dyn Contender>>,
}

impl<'a> Stage<'a> {
    pub(crate) async fn set(
        options: &'a Options,
        progress: &'a (dyn Fn(Progress<'_>) + Sync),
    ) -> Result<Self, Failure> {
        let (targets, mut missing) = Target::all(options).await?;
        let mut stores = Vec::new();
        for target in targets {
            let contenders = if options.alone || target.is_deployment {
                vec![all::distlock()]
            } else {
                let (contenders, left_out) = all::of(target.scheme, &target.url);
                missing.extend(left_out);
                contenders
            };
            stores.push(Store { target, contenders });
        }
        let id = Uuid::new_v4().simple().to_string();
        let run = format!("distlock-bench/{}", &id[..8]);
        let (place, missing, loads) = (Place::start()?, Mutex::new(missing), AtomicU32::new(0));
        Ok(Self { options, progress, place, stores, run, loads, missing })
    }

    /// The job of all workers of one contender: its names are new.
    pub(crate) fn job(&self, store: &Store, by: &dyn Contender, workload: &Workload) -> Job {
        let load = self.loads.fetch_add(1, Ordering::Relaxed);
        Job {
            scheme: store.target.scheme.to_owned(),
            url: store.target.url.clone(),
            contender: by.name(),
            waits: by.role().waits(),
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

impl Store {
    /// Those who can play a load.
    pub(crate) fn who(&self, workload: &Workload) -> impl Iterator<Item = &Arc<dyn Contender>> {
        let (is_exclusive, herd) = (workload.kind == Kind::Exclusive, workload.herd);
        let is_hot = workload.names < workload.workers;
        let fits = workload.processes == 1 || self.target.has_processes();
        self.contenders.iter().filter(move |one| match one.role() {
            Role::Distlock => fits,
            // An order has its price where many want a name.
            Role::Unordered => fits && is_exclusive && is_hot && !herd,
            role => fits && is_exclusive && (role.waits() || !herd),
        })
    }
}
