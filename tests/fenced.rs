//! Resources that check fencing tokens themselves, as in the example: an older token never writes
//! after a newer one, whatever the holders believe.

#[path = "../examples/fenced/src/http.rs"]
mod http;
#[path = "../examples/fenced/src/sql.rs"]
pub mod sql;

use std::sync::Arc;

use distlock::FencingToken;
use tokio::task::JoinSet;

#[async_trait::async_trait]
trait Resource: Send + Sync {
    async fn put(&self, token: u64, left: i64) -> bool;
    async fn get(&self) -> i64;
}

macro_rules! resource {
    ($stock:ty) => {
        #[async_trait::async_trait]
        impl Resource for $stock {
            async fn put(&self, token: u64, left: i64) -> bool {
                self.write(FencingToken::new(token), left).await.unwrap()
            }

            async fn get(&self) -> i64 {
                self.left().await.unwrap()
            }
        }
    };
}

resource!(sql::Stock);
resource!(http::Stock);

async fn all() -> [Arc<dyn Resource>; 2] {
    [Arc::new(sql::Stock::new().await.unwrap()), Arc::new(http::Stock::serve().await.unwrap())]
}

#[tokio::test]
async fn a_late_holder_writes_nothing() {
    for stock in all().await {
        assert!(stock.put(33, 41).await);
        assert!(stock.put(33, 40).await, "a holder writes as often as it likes");
        assert!(stock.put(34, 39).await);
        assert!(!stock.put(33, 7).await, "an older token wrote");
        assert_eq!(stock.get().await, 39);
    }
}

#[tokio::test]
async fn the_newest_of_a_crowd_writes_last() {
    for stock in all().await {
        let mut writers = JoinSet::new();
        for n in (1..=50).rev() {
            let stock = stock.clone();
            writers.spawn(async move { stock.put(n, n as i64).await });
        }
        writers.join_all().await;
        assert_eq!(stock.get().await, 50);
    }
}
