//! One direction of a connection.

use std::{
    io,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::tcp::{ReadHalf, WriteHalf},
    sync::mpsc,
    time::{Sleep, sleep},
    try_join,
};

use super::{mode::Direction, shared::Shared};

const CHUNK: usize = 64 * 1024;
/// Most chunks on their way. At this number, the sender is no longer read, and its own buffers
/// fill, as with a real network.
const IN_FLIGHT: usize = 1024;

/// Content on its way to the other side.
struct Parcel {
    /// Ends when the parcel may arrive.
    journey: Option<Pin<Box<Sleep>>>,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    /// They arrive when the chunk with this number may.
    Late(u64, Vec<u8>),
    /// The sender has closed its half.
    End,
    /// The sender has reset the connection, or a fault does so.
    Reset,
}

/// Carries bytes one way until the sender closes. `dead`: the client no longer takes part.
pub(super) async fn pump(
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    direction: Direction,
    shared: &Shared,
    dead: &AtomicBool,
) -> io::Result<()> {
    let (outbox, inbox) = mpsc::channel(IN_FLIGHT);
    try_join!(
        collect(from, outbox, direction, shared, dead),
        deliver(inbox, to, direction, shared, dead),
    )?;
    Ok(())
}

async fn collect(
    mut from: ReadHalf<'_>,
    outbox: mpsc::Sender<Parcel>,
    direction: Direction,
    shared: &Shared,
    dead: &AtomicBool,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let content = match from.read(&mut buffer).await {
            Ok(0) => Content::End,
            Ok(length) => seen(&buffer[..length], direction, shared, dead),
            Err(_) => Content::Reset,
        };
        let is_last = match content {
            Content::Bytes(_) => false,
            Content::Late(..) => dead.load(Relaxed),
            Content::End | Content::Reset => true,
        };
        // The timer starts now, not when the parcels before this one have arrived.
        let journey = shared.delay().map(|delay| Box::pin(sleep(delay)));
        let sent = outbox.send(Parcel { journey, content }).await;
        if is_last || sent.is_err() {
            return Ok(());
        }
    }
}

/// Counts a chunk, and swallows or catches it if a fault demands it.
fn seen(bytes: &[u8], direction: Direction, shared: &Shared, dead: &AtomicBool) -> Content {
    shared.tally.chunk(direction, bytes.len());
    if direction == Direction::Up
        && let Some((number, is_last)) = shared.late.catch(bytes)
    {
        dead.fetch_or(is_last, Relaxed);
        return Content::Late(number, bytes.to_vec());
    }
    if direction == Direction::Down && shared.drop_next_reply.swap(false, Relaxed) {
        shared.tally.dropped();
        return Content::Reset;
    }
    Content::Bytes(bytes.to_vec())
}

async fn deliver(
    mut inbox: mpsc::Receiver<Parcel>,
    mut to: WriteHalf<'_>,
    direction: Direction,
    shared: &Shared,
    dead: &AtomicBool,
) -> io::Result<()> {
    while let Some(Parcel { journey, content }) = inbox.recv().await {
        if let Some(journey) = journey {
            journey.await;
        }
        shared.until_open(direction).await?;
        match content {
            _ if direction == Direction::Down && dead.load(Relaxed) => {}
            Content::Late(number, bytes) => {
                shared.late.arrival(number).await;
                to.write_all(&bytes).await?;
            }
            Content::Bytes(bytes) => to.write_all(&bytes).await?,
            Content::End => to.shutdown().await?,
            Content::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
        }
    }
    Ok(())
}
