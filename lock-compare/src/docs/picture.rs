//! The matrix of verdicts as a picture without external parts.

use maud::{Markup, PreEscaped, html};

use crate::{Report, Row, Verdict, verdict::sign_of_distlock};

use super::{Language, tables};

/// Above this number of rows there are two blocks, side by side.
const BLOCK: usize = 14;
const MARGIN: f64 = 16.0;
/// The room for a claim's number, and for its title.
const NUMBER: f64 = 30.0;
const TITLE: f64 = 214.0;
const CELL: f64 = 38.0;
/// The parts of a cell: the verdict, and what distlock did.
const VERDICT: f64 = 21.0;
const OURS: f64 = 13.0;
const LINE: f64 = 21.0;
const GAP: f64 = 22.0;
/// Room for the stores' names, which are at an angle above the cells.
const TOP: f64 = 114.0;
const LEGEND: f64 = 24.0;
/// Right end of a line of the legend.
const WIDEST: f64 = 800.0;

/// The picture has its own rules, because it is shown as an image, which gets no other style. It
/// has a background, because the page around it may use another colour scheme than the reader.
const STYLE: &str = "
text { font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'PingFang SC', \
'Microsoft YaHei', 'Noto Sans CJK SC', Arial, sans-serif; fill: #1a1f26; }
.head { font-size: 17px; font-weight: bold; } .mute { fill: #545d68; } .store { font-size: 11px; }
.sign { font-weight: bold; text-anchor: middle; } .end { text-anchor: end; }
.ground { fill: #ffffff; stroke: #d3d9e0; } .rule { stroke: #d3d9e0; }
.holds { fill: #dcf5e2; } text.holds { fill: #0c5726; }
.breaks { fill: #ffe4da; } text.breaks { fill: #8c2412; }
.differs { fill: #d9ccff; } text.differs { fill: #53289b; }
.same { fill: #cfe8fa; } text.same { fill: #0d4a7d; }
.none { fill: #f4f6f8; } text.none { fill: #5d6672; }
.failed { fill: #2b323b; } text.failed { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
text { fill: #e5e9ee; } .mute { fill: #a3adb9; }
.ground { fill: #0e1218; stroke: #323a45; } .rule { stroke: #323a45; }
.holds { fill: #12381f; } text.holds { fill: #8be0a6; }
.breaks { fill: #4a2016; } text.breaks { fill: #ffb9a5; }
.differs { fill: #432f75; } text.differs { fill: #d5c2ff; }
.same { fill: #12324d; } text.same { fill: #a5d1fb; }
.none { fill: #171d25; } text.none { fill: #98a2ae; }
.failed { fill: #d9dee5; } text.failed { fill: #14181e; }
}
";

/// Returns the verdicts of a report as an SVG image that loads nothing: a row per claim, a cell per
/// store with a sign, for light and dark, with a title and a description.
pub(crate) fn picture(report: &Report, language: Language) -> String {
    let blocks = if report.rows.len() > BLOCK { 2 } else { 1 };
    let size = report.rows.len().div_ceil(blocks).max(1);
    let block = NUMBER + TITLE + CELL * report.stores.len() as f64;
    let across = block * blocks as f64 + GAP * (blocks as f64 - 1.0);
    let (legend, lines) = legend(report, language, TOP + LINE * size as f64 + 14.0);
    let width = 2.0 * MARGIN + across.max(WIDEST) + 8.0;
    let height = TOP + LINE * size as f64 + 14.0 + LEGEND * lines as f64 + 6.0;
    let heading = heading(language);
    let drawn = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
            viewBox={ "0 0 " (width) " " (height) } role="img" aria-labelledby="title desc" {
            title #title { (heading) }
            desc #desc { (described(report, language)) }
            style { (PreEscaped(STYLE)) }
            rect.ground x="0.5" y="0.5" width=(width - 1.0) height=(height - 1.0) rx="8" {}
            text.head x=(MARGIN) y="30" { (heading) }
            text.mute x=(MARGIN) y="50" { (run(report, language)) }
            @for (number, rows) in report.rows.chunks(size).enumerate() {
                (self::block(report, rows, MARGIN + (block + GAP) * number as f64, language))
            }
            (legend)
        }
    };
    drawn.into_string() + "\n"
}

fn heading(language: Language) -> &'static str {
    language.pick(
        "Distributed locks: what articles claim, and what was seen",
        "分布式锁：文章怎么说，实测是什么",
    )
}

fn run(report: &Report, language: Language) -> String {
    let (claims, stores) = (report.rows.len(), report.stores.len());
    let (pace, day, cores) = (language.pace(report.pace), report.day(), report.machine.cores);
    language.pick(
        format!("{claims} claims, {stores} stores; {pace} of {day} on {cores} cores"),
        format!("{claims} 条说法，{stores} 种存储；{day}，{pace}，{cores} 核"),
    )
}

/// Returns the description for screen readers.
fn described(report: &Report, language: Language) -> String {
    let counts = Verdict::ALL.into_iter().map(|verdict| (verdict, report.count(verdict)));
    let counts = counts.filter(|(_, count)| *count > 0);
    let counts = counts.map(|(verdict, count)| format!("{} {count}", language.verdict(verdict)));
    let counts = language.listed(&counts.collect::<Vec<_>>());
    language.pick(
        format!("A matrix of verdicts, a row per claim and a column per store. Cells: {counts}."),
        format!("结论表：每行一条说法，每列一种存储。格数：{counts}。"),
    )
}

fn block(report: &Report, rows: &[Row], left: f64, language: Language) -> Markup {
    let cells = left + NUMBER + TITLE;
    html! {
        @for (number, store) in report.stores.iter().enumerate() {
            @let x = cells + CELL * (number as f64 + 0.5) + 4.0;
            text.store transform={ "translate(" (x) " " (TOP - 6.0) ") rotate(-55)" } { (store) }
        }
        @for (number, row) in rows.iter().enumerate() {
            (line(report, row, (left, TOP + LINE * number as f64), language))
        }
    }
}

fn line(report: &Report, row: &Row, (left, top): (f64, f64), language: Language) -> Markup {
    let (title, base) = (language.title(&row.claim), top + 15.0);
    let right = left + NUMBER + TITLE + CELL * report.stores.len() as f64;
    let room = TITLE - 8.0;
    // A title that may be too long is squeezed into the room, whatever the font.
    let squeezed = (extent(title) > room).then_some(room);
    html! {
        line.rule x1=(left) x2=(right) y1=(top) y2=(top) {}
        text.mute.end x=(left + NUMBER - 8.0) y=(base) { "C" (row.claim.number) }
        text x=(left + NUMBER) y=(base) textLength=[squeezed]
            lengthAdjust=[squeezed.map(|_| "spacingAndGlyphs")] { (title) }
        @for (number, store) in report.stores.iter().enumerate() {
            @if let Some(cell) = row.cell(*store) {
                @let x = left + NUMBER + TITLE + CELL * number as f64;
                (sign(cell.outcome.verdict, (x, top + 1.0)))
                @if let Some(well) = cell.outcome.distlock() { (ours(well, (x, top + 1.0))) }
            }
        }
    }
}

fn sign(verdict: Verdict, (x, y): (f64, f64)) -> Markup {
    mark(class(verdict), verdict.sign(), (x, y), VERDICT)
}

/// What distlock did, beside the verdict.
fn ours(well: bool, (x, y): (f64, f64)) -> Markup {
    let class = if well { "holds" } else { "breaks" };
    mark(class, sign_of_distlock(well), (x + VERDICT, y), OURS)
}

fn mark(class: &str, sign: &str, (x, y): (f64, f64), width: f64) -> Markup {
    html! {
        rect class=(class) x=(x + 0.5) y=(y) width=(width - 1.0) height=(LINE - 2.0) rx="3" {}
        text class={ "sign " (class) } x=(x + width / 2.0) y=(y + 14.0) { (sign) }
    }
}

/// Returns the signs with words and counts, and the number of lines that they take.
fn legend(report: &Report, language: Language, top: f64) -> (Markup, usize) {
    let (mut at, mut lines, mut shown) = (MARGIN, 1, Vec::new());
    for (verdict, count) in report.counts() {
        let words = format!("{count} {}", language.verdict(verdict));
        let wide = VERDICT + 6.0 + extent(&words) + 18.0;
        if at + wide > WIDEST + MARGIN {
            (at, lines) = (MARGIN, lines + 1);
        }
        shown.push((verdict, words, at, top + LEGEND * (lines as f64 - 1.0)));
        at += wide;
    }
    let last = top + LEGEND * lines as f64;
    let drawn = html! {
        text.mute x=(MARGIN) y=(last + 14.0) { (tables::two_marks(language)) }
        @for (verdict, words, x, y) in shown {
            (sign(verdict, (x, y)))
            text x=(x + VERDICT + 6.0) y=(y + 14.0) { (words) }
        }
    };
    (drawn, lines + 1)
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Breaks => "breaks",
        Verdict::Differs => "differs",
        Verdict::NoDifference => "same",
        Verdict::CannotBeAsked | Verdict::NotRun => "none",
        Verdict::Failed => "failed",
    }
}

fn extent(text: &str) -> f64 {
    text.chars().map(|one| if one.is_ascii() { 6.6 } else { 12.4 }).sum()
}
