//! The bare client: the least that its crate does for a lock, without any of its promises.

#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
mod sql;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use std::sync::Arc;

use super::Load;

/// Same length as a holder's description of itself.
#[allow(dead_code, reason = "Redis needs none")]
const NOTE: &str = r#"{"holder":"handoff-0123456789abcdef pid 12345 on a-host","since":1700000000000,"attempt":"00000000-0000-0000-0000-000000000000"}"#;

/// One way of a store's bare client.
pub struct Bare {
    what: &'static str,
    load: Arc<dyn Load>,
}

impl Bare {
    /// What a store's bare client does: the least possible, and the least with the same contents as
    /// distlock.
    pub async fn of(store: &str, url: &str) -> Vec<Self> {
        let address = url.split_once("://").map_or(url, |(_, address)| address);
        match store {
            #[cfg(feature = "etcd")]
            "etcd" => vec![
                Self { what: "bare: txn + delete", load: etcd::pair(address).await },
                Self {
                    what: "bare: txn that lists and notes + delete",
                    load: etcd::listing(address).await,
                },
            ],
            #[cfg(feature = "redis")]
            "redis" => vec![
                Self {
                    what: "bare: SET NX PX + compare-and-delete",
                    load: redis::pair(address).await,
                },
                Self {
                    what: "bare: scripts that touch as many keys",
                    load: redis::scripts(address).await,
                },
            ],
            #[cfg(feature = "zookeeper")]
            "zookeeper" => {
                vec![
                    Self {
                        what: "bare: create + list, delete",
                        load: zookeeper::pair(address).await,
                    },
                    Self {
                        what: "bare: create with a note + list, delete",
                        load: zookeeper::noting(address).await,
                    },
                ]
            }
            #[cfg(feature = "sqlite")]
            "sqlite" => {
                let file = format!("{url}.floor?mode=rwc");
                sql_bare::<distlock::sql::client::SqliteConnection>(&file, &sql::SQLITE).await
            }
            #[cfg(feature = "postgres")]
            "postgres" => {
                sql_bare::<distlock::sql::client::PgConnection>(url, &sql::POSTGRES).await
            }
            #[cfg(feature = "mysql")]
            "mysql" => sql_bare::<distlock::sql::client::MySqlConnection>(url, &sql::MARIADB).await,
            other => panic!("no bare client for {other} at {address}"),
        }
    }

    /// What the client does.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// One round of it.
    pub fn pair(&self) -> Arc<dyn Load> {
        self.load.clone()
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
async fn sql_bare<C>(url: &str, words: &sql::Words) -> Vec<Bare>
where
    C: distlock::sql::client::Connection + 'static,
    for<'c> &'c mut C: distlock::sql::client::Executor<'c, Database = C::Database>,
{
    vec![
        Bare { what: "bare: insert, delete", load: sql::pair::<C>(url, words).await },
        Bare {
            what: "bare: count + bury + insert + list, delete",
            load: sql::queueing::<C>(url, words).await,
        },
    ]
}
