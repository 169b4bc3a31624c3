//! One connection through a proxy.

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
};

use tokio::{net::TcpStream, try_join};

use super::{mode::Direction, pump::pump, shared::Shared};

/// Both halves of a connection. A drop resets both, unless both have closed in order.
#[derive(Debug)]
pub(super) struct Link {
    client: TcpStream,
    server: Option<TcpStream>,
    closed_in_order: bool,
    shared: Arc<Shared>,
}

impl Link {
    pub(super) fn new(client: TcpStream, shared: Arc<Shared>) -> Self {
        shared.tally.opened();
        Self { client, server: None, closed_in_order: false, shared }
    }

    /// Carries bytes until both sides have closed or one is reset.
    pub(super) async fn run(mut self) {
        match self.carry().await {
            Ok(()) => self.closed_in_order = true,
            Err(error) => tracing::debug!(%error, "connection reset"),
        }
    }

    async fn carry(&mut self) -> io::Result<()> {
        // Connecting also sends bytes, so a cut holds it back.
        self.shared.until_open(Direction::Up).await?;
        let server = self.server.insert(TcpStream::connect(self.shared.target).await?);
        self.client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (from_client, to_client) = self.client.split();
        let (from_server, to_server) = server.split();
        let dead = AtomicBool::new(false);
        try_join!(
            pump(from_client, to_server, Direction::Up, &self.shared, &dead),
            pump(from_server, to_client, Direction::Down, &self.shared, &dead),
        )?;
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if !self.closed_in_order {
            let _ = self.client.set_zero_linger();
            let _ = self.server.as_ref().map(TcpStream::set_zero_linger);
        }
        self.shared.tally.closed();
    }
}
