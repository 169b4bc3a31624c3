//! `--metrics ADDR`: the metrics, as Prometheus reads them.

use std::{io, net::SocketAddr, time::Duration};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use crate::exit::{Code, Failure, say};

/// Upper bounds of the histograms, in seconds: from a free lock to a night's wait.
const BUCKETS: [f64; 11] =
    [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 600.0, 3600.0, 36_000.0];
/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(10);
/// The most bytes of a request.
const LONGEST: u64 = 16 * 1024;

/// Records from now on, and answers at this address until the program ends.
pub(crate) async fn serve(at: SocketAddr) -> Result<(), Failure> {
    let listener = TcpListener::bind(at).await;
    let listener = listener.map_err(Failure::system(format!("listening at {at} for --metrics")))?;
    let page = PrometheusBuilder::new().set_buckets(&BUCKETS);
    let page = page.and_then(PrometheusBuilder::install_recorder);
    let page = page.map_err(|error| Failure::new(Code::System, format!("--metrics: {error}")))?;
    if at.port() == 0 {
        let at = listener.local_addr().map_err(Failure::system("--metrics"))?;
        say(format_args!("metrics are at http://{at}/metrics"));
    }
    tokio::spawn(answer_all(listener, page));
    Ok(())
}

async fn answer_all(listener: TcpListener, page: PrometheusHandle) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let page = page.clone();
                // Whoever asks has left, or asks again.
                tokio::spawn(async move { timeout(LIMIT, answer(stream, &page)).await });
            }
            // Too many open files, say.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Answers one request, and closes the connection.
async fn answer(mut stream: TcpStream, page: &PrometheusHandle) -> io::Result<()> {
    let mut lines = BufReader::new(&mut stream).take(LONGEST).lines();
    let request = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let (status, body) = match request.split(' ').collect::<Vec<_>>()[..] {
        ["GET", path, _] if path.split('?').next() == Some("/metrics") => ("200 OK", page.render()),
        ["GET", ..] => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "GET /metrics\n".to_owned()),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
