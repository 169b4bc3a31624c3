//! Which store to take for which need.

use maud::{Markup, html};

use crate::{Advice, Choice, Report};

use super::{
    matrix,
    words::{listed, number, reach},
};

pub(super) fn section(report: &Report) -> Markup {
    html! {
        section #advice aria-labelledby="advice-title" {
            h2 #advice-title { "Which store to take" }
            p {
                "Made of this run's verdicts and figures, the fastest first where speed was measured. \
                 Each name leads to the cell that says so."
            }
            div.cards { @for advice in report.advice() { (card(&advice)) } }
        }
    }
}

fn card(advice: &Advice) -> Markup {
    html! {
        article.card {
            h3 { (advice.need) }
            p.take { (headline(advice)) }
            @if !advice.take.is_empty() { ul { @for one in &advice.take { (choice(one, true)) } } }
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
                    (claims(advice)) " was not played there."
                }
            }
        }
    }
}

fn headline(advice: &Advice) -> String {
    match (advice.take.as_slice(), advice.leave.is_empty()) {
        ([], true) => "This run does not answer it.".into(),
        ([], false) => "None of the stores of this run.".into(),
        (take, _) => format!("Take {}.", names(take, "or")),
    }
}

fn names(choices: &[Choice], last: &str) -> String {
    let names: Vec<_> = choices.iter().map(|choice| choice.store.to_string()).collect();
    listed(&names, last)
}

fn claims(advice: &Advice) -> String {
    let claims: Vec<_> = advice.claims.iter().map(|claim| format!("C{claim}")).collect();
    listed(&claims, "or")
}

fn choice(choice: &Choice, is_taken: bool) -> Markup {
    html! {
        li {
            a href={ "#" (matrix::id(choice.claim, choice.store)) } {
                (choice.store) ", C" (choice.claim)
            }
            @if is_taken { ", " (reach(choice.store)) }
            @if let Some(speed) = choice.speed.filter(|_| is_taken) {
                ", " b { (number(speed.ms)) " ms" } " for an acquire and release"
            }
            ": " (choice.reason)
        }
    }
}
