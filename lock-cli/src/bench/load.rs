//! The loads that a command line asks for.

use std::time::Duration;

use lock_bench::{Kind, Preset, Workload};
use lock_core::duration::shown;

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
    let presets = presets(opt)?;
    if opt.custom.is_empty() {
        return Ok((presets, None));
    }
    let preset = match (opt.preset.is_empty(), presets.as_slice()) {
        (true, _) => Preset::Uncontended,
        (false, [preset]) if !preset.needs_lab() => *preset,
        (false, [preset]) => return Err(wrong(format!("{preset} has a load of its own"))),
        _ => return Err(wrong("a load by hand changes one preset, so give --preset once")),
    };
    custom(&opt.custom, preset, seconds).map(|load| (Vec::new(), Some(load)))
}

fn presets(opt: &Bench) -> Result<Vec<Preset>, Failure> {
    let is_named = |preset: &Preset| opt.preset.iter().any(|name| name == preset.name());
    if opt.preset.iter().any(|name| name == ALL) {
        return Ok(those(|preset| opt.lab || !preset.needs_lab()));
    }
    if opt.preset.is_empty() {
        // A sweep is a run by itself.
        return Ok(if opt.sweep.is_some() { Vec::new() } else { USUAL.to_vec() });
    }
    let named = those(is_named);
    match named.iter().find(|preset| preset.needs_lab() && !opt.lab) {
        Some(preset) => Err(wrong(format!("{preset} kills processes or servers: add --lab"))),
        None => Ok(named),
    }
}

/// In the order of the report, and each once.
fn those(wanted: impl Fn(&Preset) -> bool) -> Vec<Preset> {
    Preset::ALL.into_iter().filter(wanted).collect()
}

fn custom(custom: &Custom, preset: Preset, seconds: Duration) -> Result<Workload, Failure> {
    let usual = preset.workload(seconds);
    let load = Workload {
        workers: custom.workers.unwrap_or(usual.workers),
        names: custom.names.unwrap_or(usual.names),
        processes: custom.processes.unwrap_or(usual.processes),
        hold: custom.hold.unwrap_or(usual.hold),
        kind: custom.kind.unwrap_or(usual.kind),
        rate: custom.rate.or(usual.rate),
        ttl: custom.ttl.or(usual.ttl),
        ..usual
    };
    load.check().map_err(wrong)?;
    let Workload { workers, names, hold, .. } = load;
    match () {
        () if names > workers => {
            let why = "each worker takes one name, so give as many --workers, or more";
            Err(wrong(format!("--names {names} is more than {workers} workers: {why}")))
        }
        () if load.kind == Kind::Permits && workers < 2 => {
            Err(wrong("--kind permits has half as many permits as workers: --workers 2, or more"))
        }
        () if load.kind == Kind::Readers && workers < 10 => {
            Err(wrong("--kind readers has a writer beside nine readers: --workers 10, or more"))
        }
        () if load.herd && (load.rate.is_some() || !hold.is_zero()) => {
            Err(wrong("herd asks once and releases at once, without --rate and --hold"))
        }
        () if hold >= seconds => {
            let (hold, seconds) = (shown(hold), shown(seconds));
            let why = format!("does not fit into a round of {seconds}: give longer --seconds");
            Err(wrong(format!("--hold {hold} {why}")))
        }
        () => Ok(load),
    }
}

fn wrong(why: impl Into<String>) -> Failure {
    Failure::new(Code::Usage, why)
}
