//! Tests that need a network, on a machine that permits none.

use std::{
    env,
    process::{Command, Output},
};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

/// Runs the tests of this file without any capability, as in a plain container.
fn without_capabilities(ci: Option<&str>) -> std::io::Result<Output> {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all"]);
    command.arg(env::current_exe()?).arg("network_missing::");
    match ci {
        Some(value) => command.env("CI", value),
        None => command.env_remove("CI"),
    };
    command.output()
}

async fn a_test_without_a_network_counts_as_not_run() -> Result {
    let output = without_capabilities(None)?;
    let said = String::from_utf8(output.stderr)?;
    let test = "network_missing::a_test_without_a_network_counts_as_not_run";
    let line = format!("not run: {test}: no network on this machine");
    assert!(said.lines().any(|said| said.starts_with(&line)), "{said}");
    let counted = String::from_utf8(output.stdout)?;
    assert!(counted.contains("ok. 0 passed; 0 failed; 2 ignored"), "{counted}");
    assert!(output.status.success());
    Ok(())
}

async fn a_test_without_a_network_fails_in_ci() -> Result {
    let output = without_capabilities(Some("true"))?;
    let counted = String::from_utf8(output.stdout)?;
    assert!(counted.contains("FAILED. 0 passed; 2 failed; 0 ignored"), "{counted}");
    assert!(counted.contains("not run: no network on this machine: "), "{counted}");
    assert!(!output.status.success());
    Ok(())
}

crate::trials!(a_test_without_a_network_counts_as_not_run, a_test_without_a_network_fails_in_ci,);
