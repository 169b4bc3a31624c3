//! Pushes on a connection of their own, from a server that speaks RESP2 only.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use redis::{
    Msg, PushInfo, PushKind, RedisResult, Value,
    aio::{PubSub, PubSubSink, PubSubStream},
};

use tokio::time::timeout;

use super::dial::Task;

/// A server that says nothing is asked after this time whether it still lives.
const PERIOD: Duration = Duration::from_secs(10);
/// Time limit of that question.
const LIMIT: Duration = Duration::from_secs(3);

/// The receiver of a connection's pushes.
pub(crate) type OnPush = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// A connection for pushes. Dropping it closes it.
pub(crate) struct Listener {
    sink: PubSubSink,
    _task: Task,
}

impl Listener {
    /// Passes on the pushes of a connection, and its end, in the form that RESP3 gives them.
    pub(super) fn start(connection: PubSub, on_push: OnPush) -> Self {
        let (sink, pushes) = connection.split();
        let task = pass_on(pushes, sink.clone(), on_push);
        let task = Task(tokio::spawn(task).abort_handle());
        Self { sink, _task: task }
    }

    /// Subscribes to a channel, or unsubscribes. Has no time limit of its own.
    ///
    /// # Errors
    ///
    /// The client library's error.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped, the change may or may not be made.
    pub(super) async fn listen(&self, channel: &[u8], listen: bool) -> RedisResult<()> {
        let mut sink = self.sink.clone();
        match listen {
            true => sink.subscribe(channel).await,
            false => sink.unsubscribe(channel).await,
        }
    }
}

/// Asks a server that says nothing whether it still lives: the requests' connection may live on.
async fn pass_on(mut pushes: PubSubStream, mut sink: PubSubSink, on_push: OnPush) {
    loop {
        match timeout(PERIOD, pushes.next()).await {
            Ok(Some(message)) => on_push(as_push(&message)),
            Ok(None) => break,
            Err(_) => {
                let answer = timeout(LIMIT, sink.ping::<Value>()).await;
                if !matches!(answer, Ok(Ok(_))) {
                    break;
                }
            }
        }
    }
    on_push(PushInfo { kind: PushKind::Disconnection, data: Vec::new() });
}

fn as_push(message: &Msg) -> PushInfo {
    let channel = message.get_channel().map_or(Value::Nil, Value::BulkString);
    let payload = Value::BulkString(message.get_payload_bytes().to_vec());
    PushInfo { kind: PushKind::Message, data: vec![channel, payload] }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}
