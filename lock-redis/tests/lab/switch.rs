//! An address that can lead to another server later, as a name does after a failover.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::net::{TcpListener, TcpStream};

/// An address behind which another server can be put.
pub async fn switch(to: SocketAddr) -> (SocketAddr, Arc<Mutex<SocketAddr>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, target) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(to)));
    let to = target.clone();
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let target = *to.lock().unwrap();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(target).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    (addr, target)
}
