//! The commands and manifests of Cargo on the pages: what they name is there. They run for minutes,
//! and `.ci/readme` runs those of the README and of `docs/try.md`.

use std::{fs, process::Command};

use serde_json::Value;

use super::{blocks, pages, root};

/// The packages of this workspace, as Cargo describes them.
fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = cargo.current_dir(root()).output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let known: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    known["packages"].as_array().expect("packages").clone()
}

/// The commands of a page, in blocks and in backticks.
fn commands(page: &str) -> Vec<String> {
    let (mut prose, mut found) = (String::new(), Vec::new());
    for (number, part) in page.split("\n```").enumerate() {
        match number % 2 {
            0 => prose += &part.replace('\n', " "),
            _ => found.extend(part.replace("\\\n", " ").lines().map(str::to_owned)),
        }
    }
    let parts: Vec<_> = prose.split('`').collect();
    found.extend(parts.chunks_exact(2).map(|pair| pair[1].to_owned()));
    found.retain(|line| line.split(' ').any(|word| word == "cargo"));
    found
}

/// Checks its package, its features and its target.
fn check(command: &str, packages: &[Value]) -> Result<(), String> {
    let words = command.split_whitespace().skip_while(|word| *word != "cargo");
    let words: Vec<_> = words.take_while(|word| *word != "--").collect();
    let value = |option: &str| {
        let at = words.iter().position(|word| *word == option)?;
        words.get(at + 1).copied()
    };
    let package = match (value("-p"), value("--path")) {
        (Some(name), _) => named(packages, name)?,
        (None, Some(folder)) => within(packages, folder)?,
        // Of the workspace as a whole, or a program of others.
        (None, None) => return Ok(()),
    };
    for feature in value("--features").into_iter().flat_map(|list| list.split(',')) {
        let (of, feature) = match feature.split_once('/') {
            Some((other, feature)) => (named(packages, other)?, feature),
            None => (package, feature),
        };
        has_feature(of, feature)?;
    }
    for kind in ["test", "bench", "example"] {
        let Some(wanted) = value(&format!("--{kind}")) else { continue };
        let targets = package["targets"].as_array().into_iter().flatten();
        let mut names = targets.filter(|target| target["kind"][0] == kind);
        if !names.any(|target| target["name"] == wanted) {
            return Err(format!("no {kind} {wanted:?}"));
        }
    }
    Ok(())
}

fn named<'a>(packages: &'a [Value], name: &str) -> Result<&'a Value, String> {
    let found = packages.iter().find(|package| package["name"] == name);
    found.ok_or_else(|| format!("no package {name:?}"))
}

fn within<'a>(packages: &'a [Value], folder: &str) -> Result<&'a Value, String> {
    let manifest = format!("/{folder}/Cargo.toml");
    let is_there = |package: &&Value| {
        package["manifest_path"].as_str().is_some_and(|path| path.ends_with(&manifest))
    };
    packages.iter().find(is_there).ok_or_else(|| format!("no package in {folder:?}"))
}

fn has_feature(package: &Value, feature: &str) -> Result<(), String> {
    let is_there = package["features"].get(feature).is_some();
    is_there.then_some(()).ok_or_else(|| format!("{} has no feature {feature:?}", package["name"]))
}

#[test]
fn commands_name_what_there_is() {
    let packages = packages();
    let mut checked = 0;
    for (page, text) in pages() {
        for command in commands(&text) {
            let right = check(&command, &packages);
            right.unwrap_or_else(|wrong| panic!("{page}: {command}: {wrong}"));
            checked += 1;
        }
    }
    assert!(checked > 15, "only {checked} commands were found");
}

#[test]
fn a_command_that_names_nothing_is_found() {
    let packages = packages();
    let commands = commands("`cargo test -p distlock-cli\n--test none` and `distlock ls`");
    assert_eq!(commands, ["cargo test -p distlock-cli --test none"]);
    let wrong = [commands[0].as_str(), "A=b cargo run -p gone", "cargo run -p hello --features no"];
    for command in wrong {
        assert!(check(command, &packages).is_err(), "{command}");
    }
    check("cargo install --path lock-cli --features redis -- --features no", &packages).unwrap();
}

/// `.ci/readme` builds the one of the README.
#[test]
fn manifests_fit() {
    let packages = packages();
    let ours = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let ours: Value = toml::from_str(&ours).expect("a manifest");
    let mut checked = 0;
    for block in blocks().into_iter().filter(|block| block.language == "toml") {
        let manifest: Value = toml::from_str(&block.text).expect(&block.page);
        for table in ["dependencies", "dev-dependencies"] {
            for (name, wanted) in manifest[table].as_object().into_iter().flatten() {
                fits(name, wanted, &packages, &ours["workspace"]["dependencies"][name]);
                checked += 1;
            }
        }
    }
    assert!(checked > 3, "only {checked} dependencies were found");
}

/// A package of this workspace has the features, and another one the version.
fn fits(name: &str, wanted: &Value, packages: &[Value], ours: &Value) {
    if wanted["path"].is_string() {
        let package = named(packages, name).expect("a package");
        let features = wanted["features"].as_array().into_iter().flatten();
        features.for_each(|feature| {
            has_feature(package, feature.as_str().expect("a text")).expect("a feature");
        });
        return;
    }
    let version = ours.as_str().or(ours["version"].as_str()).expect(name);
    let wanted = wanted["version"].as_str().expect("a version");
    assert!(version.starts_with(wanted), "{name} {wanted}, and here {version}");
}
