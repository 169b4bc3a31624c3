//! The frame of a page, and what stands in every report.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{Machine, number, plots::patterns, security};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A page that loads nothing. Its style and its script stand behind those of all pages: plots,
/// tables, facts, buttons that copy commands.
pub fn page(title: &str, generator: &str, style: &str, script: &str, body: &Markup) -> Markup {
    let (style, script) = ([STYLE, style].concat(), [SCRIPT, script].concat());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy"
                    content=(security::policy(&style, &script));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(generator);
                title { (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(&style)) }
            }
            body {
                (patterns())
                (body)
                script { (PreEscaped(&script)) }
            }
        }
    }
}

/// A part of the page with its heading.
pub fn section(id: &str, title: &str, content: Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby={ (id) "-title" } {
            h2 id={ (id) "-title" } { (title) }
            (content)
        }
    }
}

/// A command with a button to copy it. The script shows the button.
pub fn command(command: &str) -> Markup {
    html! {
        span.command { code { (command) } button.copy type="button" hidden { "Copy" } }
    }
}

/// Where figures come from: the machine, the versions and the time, for a list of facts.
pub fn origin(
    machine: &Machine,
    versions: &BTreeMap<String, String>,
    started: &str,
    took: f64,
) -> Markup {
    html! {
        dt { "Machine" }
        dd {
            (machine.processor) ", " (machine.cores) " cores, " (machine.memory) " GiB, "
            (machine.system)
        }
        dt { "Versions" }
        dd { @for (name, version) in versions { span.version { (name) " " (version) } } }
        dt { "Began" }
        dd { time datetime=(started) { (started) } ", took " (number(took)) " s" }
    }
}
