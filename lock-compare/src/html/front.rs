//! The plots that show something beyond their own experiment.

use maud::{Markup, html};

use crate::{Cell, ClaimText, Drawing, Nature, Plot, Report, SpreadRow, Topic};

use super::{
    Detail, matrix,
    plots::{self, figure},
};

/// A plot, and where it comes from.
type Found<'a> = (&'a ClaimText, &'a Cell, &'a Plot);

/// How many drawings of one topic stand on the front.
const MOST: usize = 9;

const TOPICS: [(Topic, &str, &str); 5] = [
    (
        Topic::Oversell,
        "One item, sold twice",
        "A holder stands still past its TTL and comes back. With the articles' unlock it deletes the \
         lock of the next holder; below it stands distlock in the same case.",
    ),
    (
        Topic::Failover,
        "A failover",
        "A server that has granted a lock dies, and another takes its place.",
    ),
    (Topic::Queue, "Waiting in line", "How long a client waits, over its place in line."),
    (
        Topic::Cost,
        "What an acquisition costs",
        "Requests to the server and wakes of clients: polling, watching, and hand-over.",
    ),
    (Topic::Latency, "How long it takes", "Distributions of latency."),
];

pub(super) fn section(report: &Report, detail: Detail) -> Markup {
    html! {
        section #plots aria-labelledby="plots-title" {
            h2 #plots-title { "Plots" }
            @for (topic, title, words) in TOPICS {
                @let found = found(report, topic);
                section.topic {
                    h3 { (title) }
                    @if found.is_empty() {
                        p.note { "No experiment of this run has drawn it." }
                    } @else {
                        p { (words) }
                        (topic_of(&found, &format!("front-{}", topic as u8), detail))
                    }
                }
            }
        }
    }
}

fn found(report: &Report, topic: Topic) -> Vec<Found<'_>> {
    let plots = report
        .cells()
        .flat_map(|(claim, cell)| cell.outcome.plots.iter().map(move |plot| (claim, cell, plot)));
    plots.filter(|(_, _, plot)| plot.topic == Some(topic)).collect()
}

/// Stories: the first one, with distlock's beside it. Measurements: one beside the other.
fn topic_of(found: &[Found<'_>], id: &str, detail: Detail) -> Markup {
    let is_story = |one: &&Found<'_>| matches!(one.2.drawing, Drawing::Timeline(_));
    let (stories, measured): (Vec<_>, Vec<_>) = found.iter().partition(is_story);
    let (merged, single) = merged(&measured);
    let shown = MOST.saturating_sub(merged.len());
    html! {
        @if let Some(first) = stories.first() {
            (story(first, id, detail))
            div.timeline-key { (plots::key()) }
        }
        div.plots {
            @for (number, plot) in merged.iter().enumerate() {
                (figure(plot, &format!("{id}-m{number}"), detail))
            }
            @for (number, one) in single.iter().take(shown).enumerate() {
                (figure(one.2, &format!("{id}-{number}"), detail))
            }
        }
        @let rest = stories.iter().skip(1).chain(single.iter().skip(shown));
        (links(rest.copied()))
    }
}

fn story(found: &Found<'_>, id: &str, detail: Detail) -> Markup {
    let (_, cell, plot) = found;
    let ours = cell.outcome.sides.iter().filter(|side| side.nature == Nature::Distlock);
    let drawn = |timeline: &_| match &plot.drawing {
        Drawing::Timeline(shown) => shown != timeline,
        _ => true,
    };
    let ours = ours.filter_map(|side| side.timeline.clone().filter(drawn)).next();
    let beside = ours.map(|timeline| Plot {
        title: format!("The same with distlock on {}", cell.store),
        topic: None,
        drawing: Drawing::Timeline(timeline),
    });
    html! {
        (figure(plot, &format!("{id}-story"), detail))
        @if let Some(plot) = beside { (figure(&plot, &format!("{id}-ours"), detail)) }
    }
}

/// Distributions of one claim and unit stand in one drawing, whatever their stores; the rest is as
/// it was.
fn merged<'a>(found: &[&'a Found<'a>]) -> (Vec<Plot>, Vec<&'a Found<'a>>) {
    let (mut merged, mut single): (Vec<((u8, String), Plot)>, Vec<_>) = Default::default();
    for one in found {
        let (claim, cell, plot) = one;
        let Drawing::Spread { y, rows } = &plot.drawing else {
            single.push(*one);
            continue;
        };
        let name = |row: &SpreadRow| match row.name.contains(cell.store.name()) {
            true => row.name.clone(),
            false => format!("{}, {}", cell.store, row.name),
        };
        let rows = rows.iter().map(|row| SpreadRow { name: name(row), ..row.clone() });
        let key = (claim.number, y.clone());
        match merged.iter_mut().find(|(other, _)| *other == key) {
            Some((_, Plot { drawing: Drawing::Spread { rows: all, .. }, .. })) => all.extend(rows),
            _ => {
                let drawing = Drawing::Spread { y: y.clone(), rows: rows.collect() };
                let title = format!("C{} {}", claim.number, claim.title);
                merged.push((key, Plot { title, topic: None, drawing }));
            }
        }
    }
    (merged.into_iter().map(|(_, plot)| plot).collect(), single)
}

fn links<'a>(rest: impl Iterator<Item = &'a Found<'a>>) -> Markup {
    let rest: Vec<_> = rest.collect();
    html! {
        @if !rest.is_empty() {
            p.note {
                "More: "
                @for (number, (claim, cell, plot)) in rest.iter().enumerate() {
                    @if number > 0 { "; " }
                    a href={ "#" (matrix::id(claim.number, cell.store)) } { (plot.title) }
                }
                "."
            }
        }
    }
}
