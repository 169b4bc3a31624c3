//! The plots with a meaning beyond their own experiment, and how any plot is drawn.

pub(super) use lock_report::key;
use maud::{Markup, html};

use crate::{Cell, ClaimText, Drawing, Nature, Plot, Report, SpreadRow, Store, Topic};

use super::{Detail, matrix};

/// A plot with its claim and its cell.
type Found<'a> = (&'a ClaimText, &'a Cell, &'a Plot);

/// Largest number of drawings per topic on the front.
const MOST: usize = 9;
/// Largest number of stories per topic, each from another claim.
const STORIES: usize = 3;

const TOPICS: [(Topic, &str, &str); 5] = [
    (
        Topic::Oversell,
        "One item, sold twice",
        "A holder stands still past its TTL and comes back, and the stock is sold twice; beside it \
         stands what prevents it, in the same case.",
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

pub(super) fn topics(report: &Report, detail: Detail) -> Markup {
    html! {
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

fn found(report: &Report, topic: Topic) -> Vec<Found<'_>> {
    let plots = report
        .cells()
        .flat_map(|(claim, cell)| cell.outcome.plots.iter().map(move |plot| (claim, cell, plot)));
    plots.filter(|(_, _, plot)| plot.topic == Some(topic)).collect()
}

/// Stories: the first of each claim, with distlock's beside it. Measurements: side by side.
fn topic_of(found: &[Found<'_>], id: &str, detail: Detail) -> Markup {
    let is_story = |one: &&Found<'_>| matches!(one.2.drawing, Drawing::Timeline(_));
    let (stories, measured): (Vec<_>, Vec<_>) = found.iter().partition(is_story);
    let (told, untold) = first_of_each(&stories);
    let (merged, single) = merged(&measured);
    let shown = MOST.saturating_sub(merged.len());
    html! {
        @for (number, one) in told.iter().enumerate() {
            (story(one, &format!("{id}-t{number}"), detail))
        }
        @if !told.is_empty() { div.timeline-key { (key()) } }
        div.plots {
            @for (number, plot) in merged.iter().enumerate() {
                (figure(plot, &format!("{id}-m{number}"), detail))
            }
            @for (number, one) in single.iter().take(shown).enumerate() {
                (figure(one.2, &format!("{id}-{number}"), detail))
            }
        }
        (links(untold.into_iter().chain(single.into_iter().skip(shown))))
    }
}

/// Returns the first story of each claim, and the others.
fn first_of_each<'a>(stories: &[&'a Found<'a>]) -> (Vec<&'a Found<'a>>, Vec<&'a Found<'a>>) {
    let (mut first, mut others): (Vec<&Found<'_>>, Vec<_>) = Default::default();
    for one in stories {
        let is_told = first.iter().any(|told| told.0.number == one.0.number);
        if is_told || first.len() == STORIES { others.push(*one) } else { first.push(*one) }
    }
    (first, others)
}

fn story(found: &Found<'_>, id: &str, detail: Detail) -> Markup {
    let (_, cell, plot) = found;
    let Drawing::Timeline(shown) = &plot.drawing else { return html! {} };
    let ours = cell.outcome.sides.iter().filter(|side| side.nature == Nature::Distlock);
    let mut beside = ours.filter_map(|side| {
        let timeline = side.timeline.clone().filter(|timeline| timeline != shown)?;
        let title = format!("The same on {}: {}", cell.store, side.lock);
        Some(Plot { title, topic: None, drawing: Drawing::Timeline(timeline) })
    });
    html! {
        div.stories {
            (figure(plot, &format!("{id}-story"), detail))
            @if let Some(plot) = beside.next() { (figure(&plot, &format!("{id}-ours"), detail)) }
        }
    }
}

/// Merges the distributions of one claim and unit into one drawing for all stores, each store with
/// the rows of its own cell. Returns the other plots unchanged.
fn merged<'a>(found: &[&'a Found<'a>]) -> (Vec<Plot>, Vec<&'a Found<'a>>) {
    let (mut merged, mut single) = (Vec::<((u8, String), Plot)>::new(), Vec::new());
    for one in found {
        let (claim, cell, plot) = one;
        let Drawing::Spread { y, rows } = &plot.drawing else {
            single.push(*one);
            continue;
        };
        let rows = rows
            .iter()
            .filter_map(|row| Some(SpreadRow { name: named(row, cell.store)?, ..row.clone() }));
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

/// Returns the row's name with the store's name. `None` if the row is about another store.
fn named(row: &SpreadRow, store: Store) -> Option<String> {
    if row.name.contains(store.name()) {
        return Some(row.name.clone());
    }
    let is_others = Store::ALL.into_iter().any(|other| row.name.contains(other.name()));
    (!is_others).then(|| format!("{store}, {}", row.name))
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

/// A drawing with its caption and its table. The id is unique on the page.
pub(super) fn figure(plot: &Plot, id: &str, detail: Detail) -> Markup {
    lock_report::figure(&plot.title, &plot.drawing, id, detail.rows)
}
