//! A store of a run.

use distlock::{STORES, Store, StoreUrl};
use lock_lab::{AnyStore, Server};

use crate::{
    Failure, Kind, Options, Role, Workload,
    contender::{
        Contender,
        all::{self, DISTLOCK},
    },
    cores,
    options::known,
};

pub(crate) struct Target {
    /// Its name in the report.
    pub label: String,
    /// Its scheme in the list of stores.
    pub scheme: &'static str,
    pub url: String,
    contenders: Vec<Contender>,
    /// The store, if it is ours. A drop ends it.
    own: Option<AnyStore>,
}

impl Target {
    pub(crate) fn server(&self) -> Option<&Server> {
        self.own.as_ref().and_then(AnyStore::server)
    }

    /// A contender on it under a load, in words.
    pub(crate) fn what(&self, contender: &str, load: &str) -> String {
        format!("{}, {contender}, {load}", self.label)
    }

    /// Whether it excludes processes.
    pub(crate) fn has_processes(&self) -> bool {
        self.scheme != "memory"
    }

    /// Those who can play a load.
    pub(crate) fn who(&self, workload: &Workload) -> Vec<Contender> {
        let (is_exclusive, herd) = (workload.kind == Kind::Exclusive, workload.herd);
        let is_hot = workload.names < workload.workers;
        if workload.processes > 1 && !self.has_processes() {
            return Vec::new();
        }
        self.only(|role| match role {
            Role::Distlock => true,
            // An order has its price where many want a name.
            Role::Unordered => is_exclusive && is_hot && !herd,
            role => is_exclusive && (role.waits() || !herd),
        })
    }

    pub(crate) fn only(&self, is_wanted: impl Fn(Role) -> bool) -> Vec<Contender> {
        self.contenders.iter().copied().filter(|one| is_wanted(one.role)).collect()
    }

    /// The stores of a run, and a sentence for each that is missing.
    pub(crate) async fn all(options: &Options) -> Result<(Vec<Self>, Vec<String>), Failure> {
        let (mut found, mut missing): (Vec<Self>, _) = (Vec::new(), Vec::new());
        for url in options.stores.iter().filter(|_| !options.lab) {
            let mut target = Self::in_use(url)?;
            let same = found.iter().filter(|other| other.scheme == target.scheme).count();
            if same > 0 {
                target.label = format!("{}-{}", target.scheme, same + 1);
            }
            found.push(target);
        }
        let named = options.stores.iter().map(|store| known(store));
        let named = if options.lab { named.collect::<Result<Vec<_>, _>>()? } else { Vec::new() };
        let private = STORES.iter().filter(|store| match options.lab {
            true => named.is_empty() || named.contains(store),
            false => options.stores.is_empty() && store.port.is_none(),
        });
        for store in private {
            if !store.compiled_in {
                let Store { scheme, feature, .. } = store;
                missing.push(format!("{scheme} is not compiled in; build with feature {feature}"));
                continue;
            }
            match Self::private(store.scheme).await {
                Ok(target) => found.push(target),
                Err(error) => missing.push(error.to_string()),
            }
        }
        if found.is_empty() {
            return Err(format!("no store to measure: {}", missing.join("; ")).into());
        }
        for target in found.iter_mut().filter(|_| !options.alone) {
            let (contenders, left_out) = all::of(target.scheme, &target.url);
            target.contenders = contenders;
            missing.extend(left_out);
        }
        Ok((found, missing))
    }

    fn in_use(url: &str) -> Result<Self, Failure> {
        let scheme = StoreUrl::parse(url)?.scheme().to_owned();
        let store = known(&scheme)?;
        Ok(Self::new(scheme, store.scheme, url.to_owned(), None))
    }

    /// With its data in memory, so that no disk decides its speed.
    async fn private(scheme: &'static str) -> Result<Self, Failure> {
        let own = AnyStore::try_in_memory(scheme).await?;
        if let Some(server) = own.server() {
            cores::keep_server(server.pid())?;
        }
        Ok(Self::new(scheme.to_owned(), scheme, own.url(), Some(own)))
    }

    fn new(label: String, scheme: &'static str, url: String, own: Option<AnyStore>) -> Self {
        Self { label, scheme, url, contenders: vec![DISTLOCK], own }
    }
}
