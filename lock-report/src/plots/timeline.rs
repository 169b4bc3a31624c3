//! Actions and beliefs of clients: a lane each, with waits, holds, tokens and marks.

use maud::{Markup, html};

use crate::{
    FaultSpan, Lane, Span, State, Timeline,
    words::{at, time},
};

use super::{clock::Clock, frame};

const WIDTH: f64 = 720.0;
const RIGHT: f64 = 704.0;
/// Height of the text of a fault or an overlap, above the lanes.
const HEADING: f64 = 16.0;
const LANE: f64 = 52.0;
const BAR: f64 = 20.0;
/// Width of a time below the lanes.
const TIME: f64 = 70.0;
/// Largest width of a letter.
const LETTER: f64 = 6.4;

pub(super) fn draw(title: &str, id: &str, timeline: &Timeline) -> Markup {
    let left = left(timeline);
    let clock = Clock::of(timeline, (left, RIGHT));
    let shared = shared(&timeline.lanes);
    let headings = timeline.faults.len() + usize::from(!shared.is_empty());
    let top = 4.0 + HEADING * headings as f64;
    let bottom = top + LANE * timeline.lanes.len() as f64;
    let content = html! {
        (ticks(&clock, top, bottom))
        @for (number, fault) in timeline.faults.iter().enumerate() {
            @let until = fault.until.unwrap_or(timeline.until);
            @let place = (clock.place(fault.from), clock.place(until));
            (band("fault", &words(fault), place, HEADING * number as f64, bottom))
        }
        @for (number, (from, until)) in shared.iter().enumerate() {
            @let place = (clock.place(*from), clock.place(*until));
            @let words = if number == 0 { "two hold it" } else { "" };
            (band("shared", words, place, HEADING * timeline.faults.len() as f64, bottom))
        }
        @for (number, lane) in timeline.lanes.iter().enumerate() {
            (draw_lane(lane, &clock, (left, top + LANE * number as f64)))
        }
    };
    let told = told(timeline, &shared);
    html! {
        (frame::image(title, &told, id, (WIDTH, bottom + 20.0), &content))
        @if clock.is_shortened { p.note { "Long waits are drawn shorter than they are." } }
        @if timeline.left_out > 0 {
            p.note { (timeline.left_out) " more clients are not drawn." }
        }
    }
}

/// The key to the blocks and marks of timelines, shown once for all.
pub fn key() -> Markup {
    let swatch = |class: &str| {
        html! { svg viewBox="0 0 24 14" aria-hidden="true" { (block(class, "M0 1h24v12h-24z")) } }
    };
    let sign = |kind: &str| {
        html! {
            svg viewBox="0 0 14 14" aria-hidden="true" {
                path.mark d=(shape(kind, 7.0, 7.0)) {}
            }
        }
    };
    html! {
        ul.key {
            li { (swatch("waits")) "waits" }
            li { (swatch("holds")) "holds the lock and is sure of it" }
            li { (swatch("past")) "holds it no more, or may not" }
            li { (swatch("fault")) "a fault" }
            li { (swatch("shared")) "two hold it at once" }
            li { (sign("released")) "released" }
            li { (sign("lost")) "lost, or over" }
            li { (sign("wrote")) "wrote" }
            li { (sign("rejected")) "write refused" }
        }
    }
}

fn words(fault: &FaultSpan) -> String {
    let healed = if fault.until.is_some() { "" } else { ", not healed" };
    format!("{}{healed}", fault.what)
}

fn ticks(clock: &Clock, top: f64, bottom: f64) -> Markup {
    html! {
        @for (x, text) in clock.ticks(TIME) {
            path.grid d={ "M" (at(x)) " " (at(top)) "V" (at(bottom)) } {}
            @let side = if x > RIGHT - TIME / 2.0 { "end" } else { "mid" };
            text class={ "tick " (side) } x=(at(x)) y=(at(bottom + 14.0)) { (text) }
        }
    }
}

/// A span over all lanes, with words at its top.
fn band(class: &str, words: &str, (from, until): (f64, f64), top: f64, bottom: f64) -> Markup {
    let width = (until - from).max(2.0);
    let path =
        format!("M{} {}h{}V{}h-{}z", at(from), at(top + 2.0), at(width), at(bottom), at(width));
    let fits = from + LETTER * words.len() as f64 <= RIGHT;
    let (x, side) = if fits { (from + 3.0, "") } else { (from + width - 3.0, " end") };
    html! {
        (block(class, &path))
        text class={ "heading" (side) } x=(at(x)) y=(at(top + 13.0)) { (words) }
    }
}

/// A filled block, with a pattern where the colour is not enough.
fn block(class: &str, path: &str) -> Markup {
    let pattern = match class {
        "waits" | "fault" => Some("url(#hatch)"),
        "past" => Some("url(#dots)"),
        _ => None,
    };
    html! {
        path class=(class) d=(path) {}
        @if let Some(pattern) = pattern { path.over fill=(pattern) d=(path) {} }
    }
}

/// Left end of the drawing, beside the clients' names.
fn left(timeline: &Timeline) -> f64 {
    let names = timeline.lanes.iter().map(|lane| clipped(&lane.client).chars().count());
    14.0 + 1.2 * LETTER * names.max().unwrap_or_default() as f64
}

fn draw_lane(lane: &Lane, clock: &Clock, (left, top): (f64, f64)) -> Markup {
    let blocks = |state| {
        let spans = lane.spans.iter().filter(|span| span.state == state);
        spans.map(|span| rectangle(span, clock, top)).collect::<String>()
    };
    html! {
        text.lane x="4" y=(at(top + 19.0)) { (clipped(&lane.client)) title { (lane.client) } }
        path.rule d={ "M" (at(left)) " " (at(top + 4.0 + BAR)) "H" (at(RIGHT)) } {}
        @for (state, class) in
            [(State::Waits, "waits"), (State::Past, "past"), (State::Holds, "holds")] {
            @let path = blocks(state);
            @if !path.is_empty() { (block(class, &path)) }
        }
        (marks(lane, clock, top))
        (texts(lane, clock, top))
    }
}

/// A lane's name, cut to the room for it.
fn clipped(name: &str) -> String {
    match name.chars().count() {
        0..=14 => name.to_owned(),
        _ => name.chars().take(13).chain(['…']).collect(),
    }
}

fn place(span: &Span, clock: &Clock) -> (f64, f64) {
    let from = clock.place(span.from);
    (from, (clock.place(span.until) - from).max(1.2))
}

fn rectangle(span: &Span, clock: &Clock, top: f64) -> String {
    let (from, width) = place(span, clock);
    let width = at(width);
    format!("M{} {}h{width}v{BAR}h-{width}z", at(from), at(top + 4.0))
}

fn kind(what: &str) -> &str {
    what.split([' ', ':']).next().unwrap_or_default()
}

fn marks(lane: &Lane, clock: &Clock, top: f64) -> Markup {
    let shapes = lane.marks.iter();
    let shapes: String =
        shapes.map(|mark| shape(kind(&mark.what), clock.place(mark.at), top + 4.0 + BAR)).collect();
    html! { @if !shapes.is_empty() { path.mark d=(shapes) {} } }
}

/// Released: a diamond. Wrote: a square. Refused: a cross. All others: a triangle.
fn shape(kind: &str, x: f64, y: f64) -> String {
    let (x, y) = (at(x), at(y));
    match kind {
        "released" => format!("M{x} {y}m0-4l4 4-4 4-4-4z"),
        "wrote" => format!("M{x} {y}m-3.5-3.5h7v7h-7z"),
        "rejected" => format!("M{x} {y}m-4-2l2-2 2 2 2-2 2 2-2 2 2 2-2 2-2-2-2 2-2-2 2-2z"),
        _ => format!("M{x} {y}m0 4l-4-7h8z"),
    }
}

/// The texts of a lane. Tokens are in their blocks if they fit. Otherwise they are below, with the
/// marks' words, in two lines. Texts that do not fit are only in the table.
fn texts(lane: &Lane, clock: &Clock, top: f64) -> Markup {
    let mut below: Vec<(f64, String)> =
        lane.marks.iter().map(|mark| (clock.place(mark.at), mark.what.clone())).collect();
    let mut inside = Vec::new();
    for span in lane.spans.iter().filter(|span| span.state == State::Holds) {
        let Some(token) = span.token else { continue };
        let (from, width) = place(span, clock);
        let text = format!("token {token}");
        match [text.clone(), token.to_string()].into_iter().find(|text| fits(text, width)) {
            Some(text) => inside.push((from, text)),
            None => below.push((from, text)),
        }
    }
    below.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = [0.0; 2];
    html! {
        @for (x, text) in inside { text.inside x=(at(x + 4.0)) y=(at(top + 18.0)) { (text) } }
        @for (x, text) in below { (under(x, &text, top, &mut free)) }
    }
}

fn fits(text: &str, width: f64) -> bool {
    LETTER * text.len() as f64 + 8.0 <= width
}

/// A text below its place, in the first free line there.
fn under(x: f64, text: &str, top: f64, free: &mut [f64; 2]) -> Markup {
    let width = LETTER * text.chars().count() as f64;
    let start = (x - 4.0).min(RIGHT - width);
    let line = free.iter().position(|free| *free <= start);
    let Some(line) = line else { return html! {} };
    free[line] = start + width + 8.0;
    let y = top + 37.0 + 11.0 * line as f64;
    html! { text.word x=(at(start)) y=(at(y)) { (text) } }
}

/// Returns the first times in which two clients certainly hold the same lock.
fn shared(lanes: &[Lane]) -> Vec<(f64, f64)> {
    let holds = |lane: &'_ Lane| -> Vec<Span> {
        lane.spans.iter().filter(|span| span.state == State::Holds).cloned().collect()
    };
    let lanes: Vec<_> = lanes.iter().map(holds).collect();
    let mut shared = Vec::new();
    for (number, one) in lanes.iter().enumerate() {
        for other in lanes.iter().skip(number + 1).flatten() {
            let both = one.iter().filter(|span| span.name == other.name);
            let both = both.map(|span| (span.from.max(other.from), span.until.min(other.until)));
            shared.extend(both.filter(|(from, until)| from < until));
        }
    }
    shared.sort_by(|a: &(f64, f64), b| a.0.total_cmp(&b.0));
    shared.truncate(20);
    shared
}

fn told(timeline: &Timeline, shared: &[(f64, f64)]) -> String {
    let clients: Vec<_> = timeline.lanes.iter().map(|lane| &*lane.client).collect();
    let mut told = format!("A lane each for {}, {}.", clients.join(", "), time(timeline.until));
    for fault in &timeline.faults {
        told += &format!(" {} from {}.", words(fault), time(fault.from));
    }
    if let Some((from, until)) = shared.first() {
        told += &format!(" Two clients hold the lock from {} to {}.", time(*from), time(*until));
    }
    told
}
