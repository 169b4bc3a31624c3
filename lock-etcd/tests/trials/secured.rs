//! A cluster of three with TLS and logins.

use lock_lab::{Authority, Etcd, EtcdCluster, Network};

use crate::support::Failure;

/// The name in the certificate, which the nodes share.
const NAME: &str = "etcd.lab";
const PASSWORD: &str = "s3cret";

/// A cluster of three, and the authority of its certificate.
pub struct Secured {
    pub network: Network,
    pub etcd: EtcdCluster,
    authority: Authority,
}

impl Secured {
    pub async fn start() -> Result<Self, Failure> {
        let (network, authority) = (Network::new()?, Authority::new()?);
        let server = authority.server(&[NAME])?;
        let builder = Etcd::builder().arg("--bcrypt-cost=4");
        let builder = builder.tls(server.certificate(), server.key());
        let etcd = builder.start_cluster(&network).await?;
        etcd.node(0).demand_logins(&[("me", PASSWORD, "locks/")]).await?;
        Ok(Self { network, etcd, authority })
    }

    /// The URL of a client of these hosts whose keys start with `prefix`.
    pub fn url(&self, hosts: &[String], prefix: &str) -> String {
        let (hosts, ca) = (hosts.join(","), self.authority.file().display());
        format!(
            "etcd://me:{PASSWORD}@{hosts}?prefix={prefix}&tls=verify&ca={ca}&server_name={NAME}"
        )
    }
}
