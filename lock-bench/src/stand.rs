//! One contender on one store, ready for rounds.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::{
    Failure, Progress, Role, compute,
    contender::Contender,
    cores,
    counted::{Counted, Standing, counters},
    cpu,
    crew::Crew,
    exclusion,
    fleet::Fleet,
    job::Job,
    round::Round,
    stage::Stage,
    target::Target,
};

pub(crate) struct Stand<'a> {
    stage: &'a Stage<'a>,
    target: &'a Target,
    role: Role,
    /// The name of the load.
    load: String,
    job: Job,
    workers: Workers,
    standing: Standing,
}

enum Workers {
    /// Tasks of this process, on the thread of the clients.
    Here(Arc<Mutex<Crew>>),
    Fleet(Fleet),
}

impl<'a> Stand<'a> {
    /// Connects, and warms up.
    pub(crate) async fn open(
        stage: &'a Stage<'a>,
        target: &'a Target,
        contender: Contender,
        load: &str,
        job: Job,
    ) -> Result<Self, Failure> {
        let before = counters(target.server()).await?;
        let (role, load) = (contender.role, load.to_owned());
        let workers = if job.workload.processes > 1 || job.held > 0 {
            Workers::Fleet(Fleet::start(&job).await?)
        } else {
            let job = job.clone();
            let ready = async move {
                let mut crew = Crew::open(contender, job).await?;
                crew.warm_up().await?;
                Ok::<_, Failure>(Arc::new(Mutex::new(crew)))
            };
            Workers::Here(stage.place.run(ready).await??)
        };
        let standing = match before.zip(counters(target.server()).await?) {
            Some((before, now)) => Standing::since(target.scheme, &before, &now),
            None => Standing::default(),
        };
        if let Some(server) = target.server() {
            // PostgreSQL has a process for each connection.
            cores::keep_server(server.pid())?;
        }
        Ok(Self { stage, target, role, load, job, workers, standing })
    }

    /// What plays here: the store, the contender and the load.
    pub(crate) fn what(&self) -> String {
        self.target.what(&self.job.contender, &self.load)
    }

    /// One round, checked for exclusion.
    pub(crate) async fn round(&mut self) -> Result<Round, Failure> {
        let (label, contender) = (&self.target.label, &self.job.contender);
        (self.stage.progress)(Progress::Begins(&self.load, label, contender));
        let round = self.play().await?;
        if self.role.excludes() {
            exclusion::check(&self.what(), &round.turns, &self.job.workload)?;
        }
        (self.stage.progress)(Progress::Ended(compute::rate(&round.turns)));
        Ok(round)
    }

    async fn play(&mut self) -> Result<Round, Failure> {
        let server = self.target.server();
        let before = counters(server).await?;
        let used = server.map(|server| cpu::server(server.pid()));
        let (mut turns, client_cpu) = match &mut self.workers {
            Workers::Fleet(fleet) => fleet.round().await?,
            Workers::Here(crew) => {
                let (crew, used) = (crew.clone(), cpu::clients());
                let round = async move { crew.lock().await.round().await };
                let turns = self.stage.place.run(round).await??;
                (turns, cpu::clients().saturating_sub(used))
            }
        };
        let now = server.map(|server| cpu::server(server.pid()));
        let server_cpu = now.zip(used).map(|(now, then)| now.saturating_sub(then));
        let counted = match before.zip(counters(server).await?) {
            Some((before, now)) => Counted::of(self.target.scheme, self.role, &now.since(&before)),
            None => Counted::default(),
        };
        // Those of each worker are in order already, which a stable sort makes use of.
        turns.sort_by_key(|turn| turn.granted);
        Ok(Round { turns, client_cpu, server_cpu, counted, standing: self.standing })
    }

    /// Memory of each lock that is kept, in bytes. `None` if none is.
    pub(crate) fn memory(&self) -> Option<u64> {
        match &self.workers {
            Workers::Fleet(fleet) => Some(fleet.memory()),
            Workers::Here(_) => None,
        }
    }

    /// Disconnects.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        match self.workers {
            Workers::Fleet(fleet) => fleet.close().await,
            Workers::Here(crew) => {
                let close = async move { crew.lock().await.close().await };
                self.stage.place.run(close).await?
            }
        }
    }
}
