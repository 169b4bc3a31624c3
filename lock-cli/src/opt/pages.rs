//! The command lines of the pages are read by this program.

use std::{fs, path::Path};

use super::*;

/// The texts of the pages in English.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files =
        ["docs", "docs/stores"].map(|folder| fs::read_dir(root.join(folder)).expect(folder));
    let paths = files.into_iter().flatten().map(|file| file.expect("a file").path());
    let pages = paths.chain([root.join("README.md")]).map(|path| path.display().to_string());
    let pages = pages.filter(|path| path.ends_with(".md") && !path.ends_with(".zh.md"));
    pages.map(|path| (path.clone(), fs::read_to_string(path).expect("a page"))).collect()
}

/// What begins with `distlock`, in backticks or on a line of a block, up to what a shell takes for
/// itself.
fn lines_of(page: &str) -> Vec<String> {
    let (mut prose, mut lines) = (String::new(), Vec::new());
    for (number, part) in page.split("\n```").enumerate() {
        match number % 2 {
            0 => prose += &part.replace('\n', " "),
            _ => lines.extend(part.lines().map(|line| line.trim_start_matches("$ ").to_owned())),
        }
    }
    lines.extend(prose.split('`').skip(1).step_by(2).map(str::to_owned));
    // A manifest has another one.
    lines.retain(|line| line.starts_with("distlock ") && !line.starts_with("distlock = "));
    lines.iter().map(|line| of_the_program(line)).collect()
}

fn of_the_program(line: &str) -> String {
    // A word that another command prints.
    let line = match (line.split_once("\"$("), line.rsplit_once(")\"")) {
        (Some((before, _)), Some((_, after))) => format!("{before}WORD{after}"),
        _ => line.to_owned(),
    };
    let ends = [" | ", " > ", " && ", " # "].map(|end| line.find(end));
    let end = ends.into_iter().flatten().min().unwrap_or(line.len());
    line[..end]
        .trim()
        .replace("distlock COMMAND", "distlock run")
        .replace("distlock supervise", "distlock run")
}

/// A line that this program takes, or the name of a command alone.
fn is_read(line: &str) -> Result<(), clap::Error> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_name = match words.as_slice() {
        // What this program may have been built without.
        [_, "bench", ..] if !cfg!(feature = "bench") => true,
        [_, "compare", ..] if !cfg!(feature = "compare") => true,
        [..] if !cfg!(feature = "metrics") && words.contains(&"--metrics") => true,
        [_, name] => Opt::command().find_subcommand(name).is_some(),
        _ => false,
    };
    match Opt::try_parse_from(words) {
        Err(error) if is_name || error.kind() == ErrorKind::DisplayHelp => Ok(()),
        read => read.map(drop),
    }
}

#[test]
fn each_command_line_is_read() {
    let mut read = 0;
    for (page, text) in pages() {
        for line in lines_of(&text) {
            is_read(&line).unwrap_or_else(|error| panic!("{page}: {line:?}: {error}"));
            read += 1;
        }
    }
    assert!(read > 40, "only {read} command lines were found");
}

#[test]
fn a_line_that_is_not_read_is_found() {
    let page = "It is `distlock runs\nx`.\n```sh\ndistlock ls --no-such | cat\n```\n";
    let lines = lines_of(page);
    assert_eq!(lines, ["distlock ls --no-such", "distlock runs x"]);
    assert!(lines.iter().all(|line| is_read(line).is_err()));
}
