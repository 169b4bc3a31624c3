//! What the environment must not change: which tables the locks are in, and who is trusted.

use std::{env, process::Stdio};

use lock_lab::{Authority, Postgres};
use lock_sql::Dialect;
use tokio::process::Command;

use crate::servers::{Database, connect};

const URL: &str = "LOCK_SQL_TEST_URL";

/// The part of another process. Without a URL it does nothing: then it is one of the tests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn play() {
    let Ok(url) = env::var(URL) else { return };
    match connect(&url).await {
        Ok(_) => println!("said connected"),
        Err(error) => println!("said {error}"),
    }
}

/// What a process says that connects with these variables.
async fn says(url: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "servers::environment::play", "--nocapture", "--test-threads=1"]);
    command.env(URL, url).envs(variables.iter().copied()).stderr(Stdio::null());
    let output = command.output().await.unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let (_, said) = output.split_once("said ").unwrap_or_else(|| panic!("{output}"));
    said.lines().next().unwrap().to_owned()
}

/// Two processes with different ones would find different tables, and both have the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_of_the_environment_are_refused() {
    let server = Database::start(Dialect::Postgres).await;
    server.sql("CREATE SCHEMA elsewhere").await;
    let said = says(&server.url(), &[("PGOPTIONS", "-c search_path=elsewhere")]).await;
    assert!(said.contains("PGOPTIONS") && !said.contains("elsewhere"), "{said}");
    assert_eq!(says(&server.url(), &[("PGOPTIONS", " ")]).await, "connected");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_environment_adds_no_authority_and_half_a_certificate_is_told() {
    let authority = Authority::new().unwrap();
    let issued = authority.server(&["127.0.0.1"]).unwrap();
    let builder = Postgres::builder().tls(issued.certificate(), issued.key());
    let server = builder.start().await.unwrap();
    let (ca, verify) = (authority.file().display().to_string(), server.url() + "?tls=verify");
    let said = says(&verify, &[("PGSSLROOTCERT", &ca)]).await;
    assert!(said.contains("not trusted"), "{said}");
    let given = format!("{verify}&ca={ca}");
    assert_eq!(says(&given, &[("PGSSLROOTCERT", "/nowhere")]).await, "connected");
    for variable in ["PGSSLCERT", "PGSSLKEY"] {
        let said = says(&given, &[(variable, &ca)]).await;
        assert!(said.starts_with("invalid environment variable PGSSL"), "{said}");
    }
    let [cert, key] = issued.files().map(|file| file.display().to_string());
    let own = format!("{given}&cert={cert}&key={key}");
    assert_eq!(says(&own, &[("PGSSLCERT", "/nowhere")]).await, "connected");
}
