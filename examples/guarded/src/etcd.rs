//! etcd: the lock's condition in the transaction that writes.

use distlock::{
    LockGuard,
    etcd::{
        EtcdLease,
        client::{Client, Txn, TxnOp},
    },
};

use crate::{Failure, address::address};

pub async fn write(url: &str, guard: &LockGuard, stock: &str) -> Result<bool, Failure> {
    let lease = guard.lease_as::<EtcdLease>().ok_or("not etcd's")?;
    let mut etcd = Client::connect([address(url)], None).await?;
    let put = TxnOp::put("guarded-stock-left", stock, None);
    let answer = etcd.txn(Txn::new().when([lease.is_held()]).and_then([put])).await?;
    Ok(answer.succeeded())
}
