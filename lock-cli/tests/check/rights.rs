//! Logins that lack one right of the store's page: the check names it.

use super::answer::check;
use crate::place::Place;

/// Checks with each of these logins, a few at a time. Each answer has its words; without words, it
/// names no right.
async fn told(logins: Vec<(String, String)>) {
    for some in logins.chunks(4) {
        let begin = |(url, words): &(String, String)| {
            let (url, words) = (url.clone(), words.clone());
            tokio::task::spawn_blocking(move || tells(&url, &words))
        };
        let under_way: Vec<_> = some.iter().map(begin).collect();
        for check in under_way {
            check.await.unwrap();
        }
    }
}

fn tells(url: &str, words: &str) {
    let answer = check(&Place::new(), &["--store", url, "--property", "names"]);
    let said = format!("{}{}", answer.out, answer.error);
    match words.is_empty() {
        true => assert!(answer.code == Some(0) && !said.contains("lacks a right"), "{said}"),
        false => assert!(said.contains(words), "{url}: {words:?} is not in {said}"),
    }
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
const TABLES: [&str; 3] = ["distlock_v1_slots", "distlock_v1_entries", "distlock_v1_marks"];

/// The statements for a user that lacks this right to this table, or none.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn user(create: &str, user: &str, lacks: Option<(&str, &str)>) -> String {
    let grants = TABLES.map(|table| {
        let rights = ["SELECT", "INSERT", "UPDATE", "DELETE"].into_iter();
        let rights: Vec<_> = rights.filter(|right| lacks != Some((table, *right))).collect();
        format!("GRANT {} ON {table} TO {user};", rights.join(", "))
    });
    format!("{create}; {}", grants.concat())
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "postgres")]
async fn postgres_names_each_right() {
    let server = lock_lab::Postgres::builder().in_memory().start().await.unwrap();
    distlock::connect(server.url()).await.unwrap().close().await.unwrap();
    let url = server.url();
    let (_, host) = url.rsplit_once('@').unwrap();
    let rights = ["SELECT", "INSERT", "UPDATE", "DELETE"];
    let rows = TABLES.into_iter().flat_map(|table| rights.map(|right| (table, right)));
    let mut logins = Vec::new();
    for (number, lacks) in std::iter::once(None).chain(rows.map(Some)).enumerate() {
        let name = format!("few{number}");
        let create = format!("CREATE ROLE {name} LOGIN PASSWORD 'plain'");
        server.sql(&user(&create, &name, lacks)).await.unwrap();
        let words = match lacks {
            None => String::new(),
            // They are read at the connect.
            Some((table, "SELECT")) => format!("{table} (42501) (SELECT)"),
            Some((table, right)) => format!("lacks a right: {right} ON {table}"),
        };
        logins.push((format!("postgres://{name}:plain@{host}"), words));
    }
    told(logins).await;
}

/// The server names them, where they are used.
#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "mysql")]
async fn mariadb_names_each_right_that_is_used() {
    let server = lock_lab::MariaDb::builder().in_memory().start().await.unwrap();
    distlock::connect(server.url()).await.unwrap().close().await.unwrap();
    let url = server.url();
    let (_, host) = url.rsplit_once('@').unwrap();
    let [slots, entries, marks] = TABLES;
    let rows = [
        None,
        Some((slots, "SELECT")),
        Some((slots, "UPDATE")),
        Some((entries, "SELECT")),
        Some((entries, "INSERT")),
        Some((entries, "UPDATE")),
        Some((entries, "DELETE")),
        Some((marks, "SELECT")),
    ];
    let mut logins = Vec::new();
    for (number, lacks) in rows.into_iter().enumerate() {
        let name = format!("few{number}");
        let create = format!("USE lab; CREATE USER {name}@'%' IDENTIFIED BY 'plain'");
        let statements = user(&create, &format!("{name}@'%'"), lacks);
        server.sql_as_admin(&statements).await.unwrap();
        let words = lacks.map(|(_, right)| format!("{right} command denied")).unwrap_or_default();
        logins.push((format!("mysql://{name}:plain@{host}"), words));
    }
    told(logins).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "redis")]
async fn redis_names_each_right() {
    let page = include_str!("../../../docs/stores/redis.md");
    let rules = page.lines().filter_map(|line| line.strip_prefix("ACL SETUSER few on >SECRET "));
    let rules = rules.filter(|rules| rules.contains("~app:*")).collect::<Vec<_>>().concat();
    let server = lock_lab::Redis::start().await.unwrap();
    let mut logins = Vec::new();
    for (number, (without, instead, words)) in [
        ("", "", ""),
        ("~app:*", "", "lacks a right: ~app:*"),
        ("~{app:*", "", "lacks a right: ~{app:*"),
        // The key of the floor is not among these.
        ("~app:*", "~app:d*", "lacks a right: ~app:?floor"),
        ("&distlock:*", "", "the login needs &distlock:*"),
        ("+publish", "", "'publish'"),
        ("+subscribe", "", "'subscribe'"),
        ("+@scripting", "", "no permissions to run the"),
        ("+@read", "", "lacks a right: +@read"),
        ("+@write", "", "lacks a right: +@write"),
        ("+time", "", "lacks a right: +time"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(rules.split(' ').any(|rule| without.is_empty() || rule == without), "{without}");
        let name = format!("few{number}");
        let rules = rules.split(' ').map(|rule| if rule == without { instead } else { rule });
        let rules = rules.filter(|rule| !rule.is_empty());
        let words_of_it = ["ACL", "SETUSER", &name, "on", ">secret"].into_iter().chain(rules);
        let command: Vec<_> = words_of_it.map(str::as_bytes).collect();
        server.command(&command).await.unwrap();
        let url = format!("redis://{name}:secret@{}?prefix=app:", server.addr());
        logins.push((url, words.to_owned()));
    }
    told(logins).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "etcd")]
async fn etcd_names_each_right() {
    let etcd = lock_lab::Etcd::builder().in_memory().start().await.unwrap();
    let (names, beside) = ("locks/distlock-check", "locks/#");
    let mut logins = Vec::new();
    let mut commands = String::new();
    for (number, (of_names, of_others, words)) in [
        ("readwrite", "readwrite", String::new()),
        ("write", "readwrite", format!("lacks a right: read what starts with {names}")),
        ("read", "readwrite", format!("lacks a right: write what starts with {names}")),
        ("readwrite", "write", format!("lacks a right: read what starts with {beside}")),
        ("readwrite", "read", format!("lacks a right: write what starts with {beside}")),
    ]
    .into_iter()
    .enumerate()
    {
        let grant = format!("etcdctl role grant-permission few{number} --prefix=true");
        commands += &format!(
            "etcdctl role add few{number}\n\
             {grant} {of_names} {names}\n\
             {grant} {of_others} '{beside}'\n\
             etcdctl user add few{number}:secret\n\
             etcdctl user grant-role few{number} few{number}\n"
        );
        let url = format!("etcd://few{number}:secret@{}?prefix=locks/", etcd.addr());
        logins.push((url, words));
    }
    commands += "etcdctl user add root:secret\netcdctl user grant-role root root\n\
                 etcdctl auth enable\n";
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-ec", &commands]).env("ETCDCTL_API", "3");
    let done = shell.env("ETCDCTL_ENDPOINTS", etcd.addr().to_string()).output().await.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    told(logins).await;
}
