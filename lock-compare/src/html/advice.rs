//! The stores to use for each need.

use maud::{Markup, html};

use crate::{Advice, Choice, Report, Store};

use super::{
    matrix,
    words::{listed, number, reach},
};

/// Number of stores per need that are shown unfolded.
const SHOWN: usize = 3;

pub(super) fn cards(report: &Report) -> Markup {
    html! {
        p {
            "Taken from this run's verdicts and figures, the fastest first. What counts for the \
             order is how many times as long as Redis a store takes, measured in turns: \
             milliseconds of different minutes do not compare. Each name leads to the cell that \
             says so."
        }
        @let (silent, told): (Vec<_>, Vec<_>) = report.advice().into_iter().partition(is_silent);
        div.cards { @for advice in &told { (card(advice)) } }
        @if !silent.is_empty() { (unanswered(&silent)) }
    }
}

/// Whether the run has no result for any store.
fn is_silent(advice: &Advice) -> bool {
    advice.take.is_empty() && advice.leave.is_empty()
}

fn unanswered(advice: &[Advice]) -> Markup {
    html! {
        p.note { "This run does not answer:" }
        ul.note {
            @for one in advice { li { (one.need) " It takes " (claims(one, "and")) "." } }
        }
    }
}

fn card(advice: &Advice) -> Markup {
    html! {
        article.card {
            h3 { (advice.need) }
            p.take { (headline(advice)) }
            (taken(advice))
            @if !advice.leave.is_empty() {
                details {
                    summary { "Not: " (names(&advice.leave, "and")) }
                    ul { @for one in &advice.leave { (choice(one, false)) } }
                }
            }
            @if !advice.unknown.is_empty() {
                @let unknown: Vec<_> = advice.unknown.iter().map(ToString::to_string).collect();
                p.note {
                    "This run does not say it of " (listed(&unknown, "and")) ": "
                    (claims(advice, "or")) " was not played there."
                }
            }
        }
    }
}

/// The stores to use. The stores after the first few are folded.
fn taken(advice: &Advice) -> Markup {
    let (first, rest) = advice.take.split_at(advice.take.len().min(SHOWN));
    html! {
        @if !first.is_empty() { ul { @for one in first { (choice(one, true)) } } }
        @if !rest.is_empty() {
            details {
                summary { "Also " (names(rest, "and")) }
                ul { @for one in rest { (choice(one, true)) } }
            }
        }
    }
}

fn headline(advice: &Advice) -> String {
    match advice.take.as_slice() {
        [] => "None of the stores of this run.".into(),
        take if take.len() == Store::ALL.len() => {
            format!("Any of them: all {} do.", take.len())
        }
        take => format!("Take {}.", names(take, "or")),
    }
}

fn names(choices: &[Choice], last: &str) -> String {
    let names: Vec<_> = choices.iter().map(|choice| choice.store.to_string()).collect();
    listed(&names, last)
}

fn claims(advice: &Advice, last: &str) -> String {
    let claims: Vec<_> = advice.claims.iter().map(|claim| format!("C{claim}")).collect();
    listed(&claims, last)
}

fn choice(choice: &Choice, is_taken: bool) -> Markup {
    html! {
        li {
            a href={ "#" (matrix::id(choice.claim, choice.store)) } {
                (choice.store) ", C" (choice.claim)
            }
            @if is_taken { ", " (reach(choice.store)) }
            @if let Some(speed) = choice.speed.filter(|_| is_taken) {
                ", " b { (number(speed.ratio)) " x Redis" } " (" (number(speed.ms))
                " ms) for an acquire and release"
            }
            ": " (choice.reason)
        }
    }
}
