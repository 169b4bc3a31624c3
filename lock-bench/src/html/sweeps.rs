//! How costs grow.

use lock_report::{Drawing, Series, figure, number};
use maud::{Markup, html};

use crate::{Report, Sweep, words::dash};

use super::{plots::SHOWN, table::Table};

pub(super) fn all(report: &Report) -> Markup {
    let groups: Vec<&[Sweep]> =
        report.sweeps.chunk_by(|a, b| (&a.over, &a.store) == (&b.over, &b.store)).collect();
    let idle = idle(&report.sweeps);
    html! {
        p {
            "Both axes are logarithmic: a straight line is a power. An exponent of 0 is a cost \
             that does not grow, 1 one that grows in proportion."
        }
        div.plots {
            @for (place, group) in groups.iter().enumerate() {
                (plot(group, &format!("sweep-{place}")))
            }
        }
        @if !idle.rows.is_empty() { (idle.html("What is held costs")) }
    }
}

/// The contenders of one store, the floors among them.
fn plot(group: &[Sweep], id: &str) -> Markup {
    let Some(first) = group.first() else { return html! {} };
    let series = group.iter().map(|sweep| {
        let known = sweep.points.iter().filter(|point| point.rate > 0.0);
        let points = known.map(|point| (point.value, 1e6 / point.rate)).collect();
        Series { name: sweep.contender.clone(), points }
    });
    let series = series.collect();
    let grows = group.iter().filter_map(|sweep| {
        let exponent = sweep.exponent?;
        Some(format!("{} to the power {exponent:.2}", sweep.contender))
    });
    let grows: Vec<_> = grows.collect();
    let title = match grows.as_slice() {
        [] => format!("{}: time over {}", first.store, first.over),
        _ => format!("{}: time over {}; it grows as {}", first.store, first.over, grows.join(", ")),
    };
    let (x, y) = (first.over.clone(), "µs per acquisition".into());
    figure(&title, &Drawing::Lines { x, y, log: true, series }, id, SHOWN)
}

/// Memory and requests of what is held, where they were counted.
fn idle(sweeps: &[Sweep]) -> Table {
    let heading = ["store", "contender", "over", "value", "memory per lock", "requests/s at rest"];
    let rows = sweeps.iter().flat_map(|sweep| {
        let told = sweep.points.iter();
        let told = told.filter(|point| point.memory.is_some() || point.idle_requests.is_some());
        told.map(|point| {
            let memory = point.memory.map(|bytes| format!("{} bytes", number(bytes)));
            vec![
                sweep.store.clone(),
                sweep.contender.clone(),
                sweep.over.clone(),
                number(point.value),
                memory.unwrap_or_else(dash),
                point.idle_requests.map_or_else(dash, number),
            ]
        })
    });
    Table { heading: heading.into(), rows: rows.collect() }
}
