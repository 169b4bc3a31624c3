//! A service: the token comes in a header. The service answers an older one with
//! `412 Precondition Failed`.

use std::sync::{Arc, Mutex, PoisonError};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::get,
};
use distlock::FencingToken;
use tokio::{net::TcpListener, task::AbortHandle};

use crate::Failure;

const HEADER: &str = "fencing-token";

/// State of the service: the greatest token seen, and the items left.
type Shelf = Arc<Mutex<(u64, i64)>>;

/// The stock, behind a service on a port of this machine.
pub struct Stock {
    url: String,
    client: reqwest::Client,
    service: AbortHandle,
}

impl Stock {
    /// Serves until the stock is dropped.
    pub async fn serve() -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/stock", listener.local_addr()?);
        let routes =
            Router::new().route("/stock", get(read).put(write)).with_state(Shelf::default());
        let service = tokio::spawn(async { axum::serve(listener, routes).await }).abort_handle();
        Ok(Self { url, client: reqwest::Client::new(), service })
    }

    /// Returns whether the value was written.
    pub async fn write(&self, token: FencingToken, left: i64) -> Result<bool, Failure> {
        let put = self.client.put(&self.url).header(HEADER, token.value()).body(left.to_string());
        match put.send().await?.status() {
            StatusCode::NO_CONTENT => Ok(true),
            StatusCode::PRECONDITION_FAILED => Ok(false),
            status => Err(format!("the service answered {status}").into()),
        }
    }

    pub async fn left(&self) -> Result<i64, Failure> {
        Ok(self.client.get(&self.url).send().await?.text().await?.parse()?)
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        self.service.abort();
    }
}

async fn read(State(shelf): State<Shelf>) -> String {
    shelf.lock().unwrap_or_else(PoisonError::into_inner).1.to_string()
}

async fn write(State(shelf): State<Shelf>, headers: HeaderMap, body: String) -> StatusCode {
    let token = headers.get(HEADER).and_then(|token| token.to_str().ok()?.parse().ok());
    let (Some(token), Ok(left)) = (token, body.parse()) else { return StatusCode::BAD_REQUEST };
    // Comparing and writing are one atomic step.
    let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
    if token < shelf.0 {
        return StatusCode::PRECONDITION_FAILED;
    }
    *shelf = (token, left);
    StatusCode::NO_CONTENT
}
