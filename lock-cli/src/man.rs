//! `distlock man`: the help of the program and of each command, as pages of section 1.

use std::{fs, io, path::Path};

use clap::{Command, CommandFactory};
use clap_mangen::{
    Man,
    roff::{Roff, bold, italic, roman},
};

use crate::{
    exit::Failure,
    opt::{ManPages, Opt},
};

/// Variables that the program reads.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("DISTLOCK_STORE", "The store's URL, unless --store names one."),
    ("XDG_CONFIG_HOME", "Folder of the user's config file. Default: ~/.config."),
    ("XDG_STATE_HOME", "Folder of the user's locks. Default: ~/.local/state."),
    ("HOME", "The user's home. Default: as the user database says."),
];

/// Variables that the program sets for the command that it runs.
const GIVEN: &[(&str, &str)] = &[
    ("DISTLOCK_NAME", "Given to the command: the name of the lock, or of the election."),
    ("DISTLOCK_TOKEN", "Given to the command: the fencing token."),
    (
        "DISTLOCK_DEADLINE_MS",
        "Given to the command: the end of the lease at the command's start, in milliseconds on the \
         clock of /proc/uptime. Renewals move the real end.",
    ),
    ("DISTLOCK_STORE", "Given to the command: the store's URL without its password."),
    (
        "DISTLOCK_HELD",
        "Given to the command, for distlock itself: the locks of the processes above, which a \
         distlock in the command would wait for without end.",
    ),
];

const FILES: &[(&str, &str)] = &[
    ("$XDG_CONFIG_HOME/distlock/config.toml", "The user's settings: a line store = \"URL\"."),
    ("/etc/distlock/config.toml", "The same for all users of the machine."),
    ("$XDG_STATE_HOME/distlock/locks.db", "The locks of sqlite: without a path, of this user."),
];

/// Parts of the text below the options, by their beginning. A part with another beginning is a
/// note.
const PARTS: [(&str, &str); 2] = [("Exit codes", "EXIT STATUS"), ("Examples:", "EXAMPLES")];
const NOTES: &str = "NOTES";

/// Writes one page for the program and one for each command into a folder.
pub(crate) fn pages(opt: &ManPages) -> Result<(), Failure> {
    let failed = || Failure::system(opt.folder.display());
    fs::create_dir_all(&opt.folder).map_err(failed())?;
    let mut program = Opt::command();
    program.build();
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
    let commands = shown.cloned().chain([program.clone()]);
    for command in commands {
        page(command, &opt.folder).map_err(failed())?;
    }
    Ok(())
}

fn page(command: Command, folder: &Path) -> io::Result<()> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (name, has_version) = (command.get_name().to_owned(), command.get_version().is_some());
    let has_commands = command.has_subcommands();
    let (man, mut text) = (Man::new(command), Vec::new());
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if has_commands {
        man.render_subcommands_section(&mut text)?;
    }
    let given = if matches!(name.as_str(), "run" | "elect") { GIVEN } else { &[] };
    let mut rest = Roff::new();
    part(&mut rest, &help, "EXIT STATUS");
    if !matches!(name.as_str(), "completions" | "help" | "man") {
        facts(&mut rest, "ENVIRONMENT", ENVIRONMENT.iter().chain(given));
        facts(&mut rest, "FILES", FILES.iter());
    }
    part(&mut rest, &help, NOTES);
    part(&mut rest, &help, "EXAMPLES");
    rest.to_writer(&mut text)?;
    if has_version {
        man.render_version_section(&mut text)?;
    }
    fs::write(folder.join(man.get_filename()), text)
}

fn facts<'a>(roff: &mut Roff, heading: &str, facts: impl Iterator<Item = &'a (&'a str, &'a str)>) {
    roff.control("SH", [heading]);
    for (name, meaning) in facts {
        let name = if heading == "FILES" { italic(*name) } else { bold(*name) };
        roff.control("TP", []).text([name]).text([roman(*meaning)]);
    }
}

/// The paragraphs of a help text that belong under this heading. Indented lines stay lines.
fn part(roff: &mut Roff, help: &str, heading: &str) {
    let of = |paragraph: &&str| {
        let begins = |(start, _): &&(&str, &str)| paragraph.starts_with(start);
        PARTS.iter().find(begins).map_or(NOTES, |(_, heading)| heading) == heading
    };
    let paragraphs = help.split("\n\n").filter(|paragraph| !paragraph.is_empty());
    for (n, paragraph) in paragraphs.filter(of).enumerate() {
        match n {
            0 => roff.control("SH", [heading]),
            _ => roff.control("PP", []),
        };
        let mut filled = true;
        for line in paragraph.lines().filter(|line| *line != "Examples:") {
            let fills = !line.starts_with(' ');
            match (filled, fills) {
                (true, false) => drop(roff.control("PP", []).control("nf", [])),
                (false, true) => drop(roff.control("fi", [])),
                _ => {}
            }
            filled = fills;
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        if !filled {
            roff.control("fi", []);
        }
    }
}
