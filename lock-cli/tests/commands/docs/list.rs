//! Each block of a page has a test, which this list names: it runs the block, except with [`CARGO`]
//! and [`PARSED`].

use std::fs;

use super::{Block, blocks, root};

/// A page, what its block has, the file of the test, and what of that file runs it.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// Reads what a command or a manifest names, and runs nothing.
const CARGO: &str = "lock-cli/tests/commands/docs/cargo.rs";
const DATABASES: &str = "lock-cli/tests/commands/docs/databases.rs";
/// Parses the command lines, and runs none.
const PARSED: &str = "lock-cli/src/opt/pages.rs";
const POOLER: &str = "lock-sql/tests/servers/pooler.rs";
const RECIPES: &str = "lock-cli/tests/commands/docs/recipes.rs";
const RUNBOOK: &str = "lock-cli/tests/commands/docs/runbook.rs";
const SHOWN: &str = "lock-cli/tests/commands/pages.rs";
const ETCD: &str = "lock-etcd/tests/connecting.rs";

const LIST: [Row; 54] = [
    ("README.md", "cargo run -p oversell", ".ci/readme", "blocks sh README.md"),
    ("README.md", "./test", ".ci/run", "./test"),
    ("README.md", "[dependencies]", ".ci/readme", "blocks toml README.md"),
    ("docs/cli.md", "cargo install", CARGO, "fn commands_name_what_there_is"),
    ("docs/cli.md", "crt-static", "test", "crt-static"),
    ("docs/cli.md", "--at-least 1m", RECIPES, "fn one_host_runs_the_job_of_the_crontab"),
    ("docs/cli.md", "--once-per 20h", RECIPES, "fn one_host_does_the_job_once_per_period"),
    ("docs/cli.md", "ExecStart=", RECIPES, "fn the_unit_runs_its_service_while_it_leads"),
    ("docs/cli.md", "--permits 3", RECIPES, "fn a_pipeline_takes_a_permit"),
    ("docs/cli.md", "distlock hold deploy", RECIPES, "fn an_operator_holds_a_lock_until_a_key"),
    ("docs/cli.md", "distlock run migrate", DATABASES, "fn migrates"),
    // They take minutes. The tests of `bench` and `compare` run shorter ones.
    ("docs/cli.md", "distlock compare", PARSED, "fn each_command_line_is_read"),
    ("docs/cli.md", "distlock bench", PARSED, "fn each_command_line_is_read"),
    ("docs/comparison.md", "distlock compare", PARSED, "fn each_command_line_is_read"),
    ("docs/speed.md", "--sweep", PARSED, "fn each_command_line_is_read"),
    ("docs/speed.md", "--preset all", PARSED, "fn each_command_line_is_read"),
    ("docs/cli.md", "completions bash", RECIPES, "fn completions_and_man_pages_are_set_up"),
    ("docs/fencing.md", "-- ", "tests/pages/fencing.rs", "fn every_statement_is_one"),
    ("docs/fencing.md", "[dependencies]", CARGO, "fn manifests_fit"),
    ("docs/testing.md", "[dev-dependencies]", CARGO, "fn manifests_fit"),
    ("docs/metrics.md", "[dependencies]", CARGO, "fn manifests_fit"),
    ("docs/metrics.md", "distlock elect", PARSED, "fn each_command_line_is_read"),
    ("docs/operators.md", "export DISTLOCK_STORE=", RUNBOOK, "export DISTLOCK_STORE="),
    ("docs/operators.md", "$ distlock ls", SHOWN, "fn operators_see_what_their_page_shows"),
    ("docs/operators.md", "nightly.before.json", RUNBOOK, "nightly.before.json"),
    ("docs/operators.md", "$ distlock revoke", RUNBOOK, "fn revokes"),
    ("docs/operators.md", "$ distlock show nightly", RUNBOOK, "$ distlock show nightly"),
    ("docs/operators.md", "SELECT max(fence)", DATABASES, "fn raises"),
    // A minute for each store: `check::` plays it on every store.
    ("docs/operators.md", "distlock check", PARSED, "fn each_command_line_is_read"),
    ("docs/other-libraries.md", "distlock run uploads", RECIPES, "fn what_consul_does_is_done"),
    ("docs/scripts.md", "coproc", RECIPES, "fn a_script_has_a_lock_beside_it"),
    ("docs/scripts.md", "DISTLOCK_DEADLINE_MS", RECIPES, "fn a_step_begins_while"),
    ("docs/scripts.md", "./in-time.sh", RECIPES, "fn a_step_begins_while"),
    ("docs/tokens.md", "token-floor", RUNBOOK, "fn an_operator_raises_the_token_floor"),
    ("docs/try.md", "cargo run", ".ci/readme", "docs/try.md"),
    ("docs/stores/README.md", "://", "tests/configs.rs", "fn the_urls_on_the_page_are_accepted"),
    ("docs/stores/etcd.md", "etcdctl role add", ETCD, "fn the_documented_role_is_enough"),
    ("docs/stores/etcd.md", "$ etcd ", ETCD, "fn the_documented_options_and_repairs"),
    (
        "docs/stores/etcd.md",
        "leaders_are_killed",
        "lock-etcd/tests/trials/main.rs",
        "leaders_are_killed",
    ),
    ("docs/stores/etcd.md", "kinds  ", SHOWN, "stores/etcd.md"),
    ("docs/stores/memory.md", "kinds  ", SHOWN, "stores/memory.md"),
    ("docs/stores/redis.md", "kinds  ", SHOWN, "stores/redis.md"),
    ("docs/stores/redis.md", "few on >SECRET ~*", "lock-redis/tests/lab/mod.rs", "fn documented"),
    ("docs/stores/redis.md", "~app:* ", "lock-redis/tests/lab/mod.rs", "fn documented_user()"),
    ("docs/stores/redis.md", "SETUSER watcher", "lock-redis/tests/sentinel.rs", "stores/redis.md"),
    ("docs/stores/redlock.md", "kinds  ", SHOWN, "stores/redlock.md"),
    ("docs/stores/redlock.md", "SETUSER", "lock-redis/tests/redlock_access.rs", "redlock.md"),
    ("docs/stores/sql.md", "kinds  ", SHOWN, "stores/sql.md"),
    ("docs/stores/sql.md", "[pgbouncer]", POOLER, "```ini"),
    ("docs/stores/sql.md", "GRANT SELECT", DATABASES, "GRANT SELECT"),
    ("docs/stores/sqlite.md", "kinds  ", SHOWN, "stores/sqlite.md"),
    ("docs/stores/sqlite.md", "install -d", RECIPES, "fn a_group_has_a_file"),
    ("docs/stores/zookeeper.md", "kinds  ", SHOWN, "stores/zookeeper.md"),
    ("docs/stores/zookeeper.md", "leaders::", "lock-zk/tests/trials/main.rs", "mod leaders;"),
];

/// Markers of several blocks: the test takes each. The first `show nightly` is run with `ls`.
const SEVERAL: [&str; 4] = ["cargo install", "-- ", "$ distlock show nightly", "cargo run"];

/// Other languages, and a program that is not here.
fn is_foreign(block: &Block) -> bool {
    let is_code = matches!(block.language.as_str(), "csharp" | "java" | "python");
    is_code || block.text.starts_with("consul lock ")
}

/// Rust is compiled, and mostly run, as the documentation of `tests/docs.rs`.
fn is_compiled(block: &Block) -> bool {
    let mut words = block.language.split(',');
    words.next() == Some("rust") && words.all(|word| matches!(word, "no_run" | "test_harness"))
}

#[test]
fn each_block_has_a_test() {
    let rust = fs::read_to_string(root().join("tests/docs.rs")).expect("a file");
    for block in blocks() {
        let Block { page, language, text } = &block;
        let is_listed = LIST.iter().any(|row| row.0 == page && text.contains(row.1));
        let is_tested = match is_compiled(&block) {
            true => rust.contains(&format!("include_str!(\"../{page}\")")),
            false => is_listed || is_foreign(&block),
        };
        assert!(is_tested, "no test has this block of {page}:\n```{language}\n{text}\n```");
    }
}

#[test]
fn each_test_of_the_list_and_its_block_are_there() {
    let blocks = blocks();
    for (page, marker, file, test) in LIST {
        let is_there = |block: &Block| block.page == page && block.text.contains(marker);
        let count = blocks.iter().filter(|block| is_there(block)).count();
        let fits = count == 1 || count > 1 && SEVERAL.contains(&marker);
        assert!(fits, "{page} has {count} blocks with {marker:?}");
        let text = fs::read_to_string(root().join(file)).expect(file);
        assert!(text.contains(test), "{file} has no {test:?}, which has {marker:?} of {page}");
    }
}
