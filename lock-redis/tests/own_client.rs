//! Locks from a client that the caller has made: its login, its database, its transport.

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use lock_core::{Error, Locks};
use lock_lab::Redis;
use lock_redis::{
    Address, RedisConfig, RedisLock, Target,
    client::{
        self, AsyncCommands, AsyncConnectionConfig, Client, ClientTlsConfig, IntoConnectionInfo,
        RedisFuture, TlsCertificates, io::AsyncDNSResolver,
    },
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::{
    contend::{acquire, contend},
    lab::{deployments, locks, server, within},
};

async fn say(server: &Redis, command: &str) {
    let words: Vec<_> = command.split(' ').map(str::as_bytes).collect();
    assert_eq!(server.command(&words).await.unwrap(), "OK", "{command}");
}

/// The program's other use of its client.
async fn works(client: &Client, key: &str) {
    let mut connection = within(client.get_multiplexed_async_connection()).await.unwrap();
    let () = connection.set(key, "mine").await.unwrap();
    let mine: String = connection.get(key).await.unwrap();
    assert_eq!(mine, "mine");
}

#[tokio::test]
async fn the_login_and_the_database_of_a_client_count() {
    let server = Redis::builder().appendonly(false).password("root's").start().await.unwrap();
    say(&server, "ACL SETUSER me on >se:cr@et ~* &* +@all").await;
    let url = format!("redis://me:se%3Acr%40et@{}/2", server.addr());
    let client = Client::open(url.as_str()).unwrap();
    works(&client, "data").await;
    let own = Locks::new(RedisLock::with_client(&client).await.unwrap());
    let other = locks(&url).await;
    contend(&own, &other).await;
    // In its database, by its user, and on a connection of the locks' own.
    let held = acquire(&own, "orders").await;
    assert_eq!(server.command(&[b"EXISTS", b"orders"]).await.unwrap(), "0");
    works(&client, "data").await;
    let connections = server.command(&[b"CLIENT", b"LIST"]).await.unwrap();
    let ours = connections.lines().filter(|line| line.contains(" sub=1 "));
    let ours: Vec<_> = ours.collect();
    assert_eq!(ours.len(), 2, "{connections}");
    let mine = |line: &&str| line.contains("user=me") && line.contains("db=2");
    assert!(ours.iter().all(mine), "{connections}");

    held.release().await.unwrap();
    own.close().await.unwrap();
    works(&client, "after").await;
    assert!(matches!(own.lock("orders").unwrap().acquire().await, Err(Error::Closed { .. })));
    contend(&Locks::new(RedisLock::with_client(&client).await.unwrap()), &other).await;
}

#[tokio::test]
async fn the_end_of_a_client_and_of_its_connections_does_not_affect_the_locks() {
    let server = server().await;
    let client = Client::open(server.url()).unwrap();
    let own = Locks::new(RedisLock::with_client(&client).await.unwrap());
    let held = acquire(&own, "orders").await;
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let id: i64 = client::cmd("CLIENT").arg("ID").query_async(&mut connection).await.unwrap();
    let kill = ["CLIENT", "KILL", "ID", &id.to_string()].map(|word| word.to_owned());
    let kill: Vec<_> = kill.iter().map(String::as_bytes).collect();
    assert_eq!(server.command(&kill).await.unwrap(), "1");
    drop((connection, client));
    held.renew().await.unwrap();
    held.release().await.unwrap();
    contend(&own, &locks(&server.url()).await).await;
}

#[tokio::test]
async fn a_wrong_password_is_denied_and_not_shown() {
    let server = Redis::builder().appendonly(false).password("right").start().await.unwrap();
    let client = Client::open(format!("redis://:wr0ng@{}", server.addr())).unwrap();
    let refused = RedisLock::with_client(&client).await.unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");
    let config = RedisConfig::from_client(&client);
    assert!(!format!("{config:?} {refused:?}").contains("wr0ng"), "{config:?}");
    // The configuration's values replace the client's.
    let mut config = config;
    config.password = Some("right".into());
    let own = Locks::new(RedisLock::connect(config).await.unwrap());
    acquire(&own, "orders").await.release().await.unwrap();
}

#[tokio::test]
async fn a_unix_socket_works() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("redis.sock");
    let options = Redis::builder().appendonly(false).arg("--unixsocket").arg(&path);
    let server = options.start().await.unwrap();
    let client = Client::open(format!("redis+unix://{}?db=1", path.display())).unwrap();
    let config = RedisConfig::from_client(&client).ttl(Duration::from_secs(20)).prefix("app:");
    let own = Locks::new(RedisLock::connect(config.clone()).await.unwrap());
    let other = Locks::new(RedisLock::connect(config).await.unwrap());
    contend(&own, &other).await;
    // A connection that breaks is made anew the same way.
    let held = acquire(&own, "orders").await;
    let killed = server.command(&[b"CLIENT", b"KILL", b"TYPE", b"pubsub"]).await.unwrap();
    assert_eq!(killed, "2");
    within(held.renew()).await.unwrap();
    held.release().await.unwrap();
    contend(&own, &other).await;
    works(&client, "after").await;
}

/// Makes a server accept TLS as well, on a port of its own.
async fn tls_port(server: &Redis, folder: &std::path::Path) -> (u16, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let write = |name, text: String| std::fs::write(folder.join(name), text).unwrap();
    write("cert.pem", certificate.pem());
    write("key.pem", key.serialize_pem());
    write("ca.pem", issuer.pem());
    let (cert, key, ca) = (path("cert.pem"), path("key.pem"), path("ca.pem"));
    let files = format!("tls-cert-file {cert} tls-key-file {key} tls-ca-cert-file {ca}");
    say(server, &format!("CONFIG SET {files} tls-auth-clients optional")).await;
    loop {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port = free.to_string();
        let set: [&[u8]; 4] = [b"CONFIG", b"SET", b"tls-port", port.as_bytes()];
        if server.command(&set).await.is_ok() {
            return (free, issuer.pem());
        }
    }
}

#[tokio::test]
async fn the_certificates_of_a_client_count() {
    let server = server().await;
    let folder = tempfile::tempdir().unwrap();
    let (port, ca) = tls_port(&server, folder.path()).await;
    let url = format!("rediss://127.0.0.1:{port}/");
    let certificates = |ca: &str| TlsCertificates {
        client_tls: None::<ClientTlsConfig>,
        root_cert: Some(ca.as_bytes().to_vec()),
    };
    let client = Client::build_with_tls(url.as_str(), certificates(&ca)).unwrap();
    works(&client, "data").await;
    let own = Locks::new(RedisLock::with_client(&client).await.unwrap());
    contend(&own, &locks(&server.url()).await).await;
    own.close().await.unwrap();
    works(&client, "after").await;

    let stranger = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let stranger = stranger.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
    let client = Client::build_with_tls(url.as_str(), certificates(&stranger)).unwrap();
    let refused = RedisLock::with_client(&client).await.unwrap_err();
    assert!(refused.to_string().contains("invalid peer certificate"), "{refused}");
}

/// A resolver that knows one name.
struct Resolver(SocketAddr);

impl AsyncDNSResolver for Resolver {
    fn resolve<'a, 'b: 'a>(
        &'a self,
        host: &'b str,
        _: u16,
    ) -> RedisFuture<'a, Box<dyn Iterator<Item = SocketAddr> + Send + 'a>> {
        assert_eq!(host, "locks.example");
        let found: Box<dyn Iterator<Item = SocketAddr> + Send> = Box::new([self.0].into_iter());
        Box::pin(async { Ok(found) })
    }
}

#[tokio::test]
async fn the_options_of_a_connection_count() {
    let server = server().await;
    let client = Client::open("redis://locks.example".into_connection_info().unwrap()).unwrap();
    // The options' timeouts would end every wait.
    let options = AsyncConnectionConfig::new()
        .set_dns_resolver(Resolver(server.addr()))
        .set_response_timeout(Some(Duration::from_nanos(1)));
    let config = RedisConfig::from_client(&client).connection(options);
    let own = Locks::new(RedisLock::connect(config).await.unwrap());
    contend(&own, &locks(&server.url()).await).await;
}

#[tokio::test]
async fn the_options_for_servers_and_for_sentinels_are_apart() {
    let redis = deployments::sentinels().await;
    let sentinel = redis.sentinel_addrs()[0];
    let sentinels = vec![Address::new("locks.example", sentinel.port())];
    let target = Target::Sentinel { sentinels, service: "lab".to_owned() };
    let found = |addr| AsyncConnectionConfig::new().set_dns_resolver(Resolver(addr));
    // The servers' options may hold their passwords: they are not for sentinels.
    let config = RedisConfig::of(target);
    let refused = RedisLock::connect(config.clone().connection(found(sentinel))).await;
    assert!(refused.is_err_and(|error| error.is_unavailable()));
    let config = config.sentinel_connection(found(sentinel));
    let own = Locks::new(RedisLock::connect(config).await.unwrap());
    contend(&own, &locks(&redis.node(0).url()).await).await;
}
