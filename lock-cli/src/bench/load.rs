//! The loads that a command line asks for.

use std::time::Duration;

use lock_bench::{Preset, Workload};

use crate::{
    exit::{Code, Failure},
    opt::{Bench, Custom},
    values::bench::ALL,
};

const USUAL: [Preset; 3] = [Preset::Uncontended, Preset::ManyNames, Preset::HotName];

/// The presets, or the load by hand, whose rounds have this length.
pub(super) fn loads(
    opt: &Bench,
    seconds: Duration,
) -> Result<(Vec<Preset>, Option<Workload>), Failure> {
    let presets = presets(opt);
    if opt.custom.is_empty() {
        return Ok((presets, None));
    }
    let preset = match (opt.preset.is_empty(), presets.as_slice()) {
        (true, _) => Preset::Uncontended,
        (false, [preset]) if !preset.needs_lab() => *preset,
        (false, [preset]) => return Err(wrong(format!("{preset} has a load of its own"))),
        _ => return Err(wrong("a load by hand changes one preset, so give --preset once")),
    };
    Ok((Vec::new(), Some(custom(&opt.custom, preset.workload(seconds)))))
}

fn presets(opt: &Bench) -> Vec<Preset> {
    // In the order of the report, and each once.
    let those = |wanted: &dyn Fn(&Preset) -> bool| -> Vec<Preset> {
        Preset::ALL.into_iter().filter(wanted).collect()
    };
    if opt.preset.iter().any(|name| name == ALL) {
        those(&|preset| opt.lab || !preset.needs_lab())
    } else if !opt.preset.is_empty() {
        those(&|preset| opt.preset.iter().any(|name| name == preset.name()))
    } else if opt.sweep.is_some() {
        // It is a run by itself.
        Vec::new()
    } else {
        USUAL.to_vec()
    }
}

fn custom(custom: &Custom, usual: Workload) -> Workload {
    Workload {
        workers: custom.workers.unwrap_or(usual.workers),
        names: custom.names.unwrap_or(usual.names),
        processes: custom.processes.unwrap_or(usual.processes),
        hold: custom.hold.unwrap_or(usual.hold),
        kind: custom.kind.unwrap_or(usual.kind),
        rate: custom.rate.or(usual.rate),
        ttl: custom.ttl.or(usual.ttl),
        ..usual
    }
}

pub(super) fn wrong(why: impl Into<String>) -> Failure {
    Failure::new(Code::Usage, why)
}
