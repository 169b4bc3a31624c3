//! A request whose answer is heard in any case.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use redis::{RedisResult, Value};
use tokio::{runtime::Handle, time::timeout};

/// An answer that nobody waits for any more is still heard for this long.
const HEARD: Duration = Duration::from_secs(5);

/// A request under way. If it is dropped after it was sent, its answer is still heard: a node that
/// answers late, or to nobody, is not silent.
pub(super) struct Flight(Option<BoxFuture<'static, RedisResult<Value>>>);

impl Flight {
    pub(super) fn new(request: impl Future<Output = RedisResult<Value>> + Send + 'static) -> Self {
        Self(Some(request.boxed()))
    }
}

impl Future for Flight {
    type Output = RedisResult<Value>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(request) = &mut self.0 else { return Poll::Pending };
        let answer = request.poll_unpin(cx);
        if answer.is_ready() {
            self.0 = None;
        }
        answer
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let (Some(request), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(timeout(HEARD, request));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_heard_after_the_drop() {
        let (answer, answered) = oneshot::channel();
        let (hear, heard) = oneshot::channel();
        let flight = Flight::new(async move {
            let answer = answered.await.unwrap_or(Value::Nil);
            let _ = hear.send(());
            Ok(answer)
        });
        assert!(timeout(Duration::from_millis(1), flight).await.is_err());
        answer.send(Value::Okay).unwrap();
        heard.await.unwrap();
    }
}
