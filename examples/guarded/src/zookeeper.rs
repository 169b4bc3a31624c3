//! ZooKeeper: a multi that checks the lock's node before it writes.

use distlock::{
    LockGuard,
    zookeeper::{
        ZkLease,
        client::{Acls, CheckWriteError, Client, CreateMode, Error},
    },
};

use crate::{Failure, address::address};

const STOCK: &str = "/guarded-stock-left";

pub async fn write(url: &str, guard: &LockGuard, stock: &str) -> Result<bool, Failure> {
    let lease = guard.lease_as::<ZkLease>().ok_or("not ZooKeeper's")?;
    let zookeeper = Client::connect(address(url)).await?;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    match zookeeper.create(STOCK, b"", &options).await {
        Ok(_) | Err(Error::NodeExists) => {}
        Err(error) => return Err(error.into()),
    }
    let mut held = zookeeper.new_check_writer(&lease.path(), None)?;
    held.add_set_data(STOCK, stock.as_bytes(), None)?;
    match held.commit().await {
        Ok(_) => Ok(true),
        // The lock's node is gone.
        Err(CheckWriteError::CheckFailed { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
