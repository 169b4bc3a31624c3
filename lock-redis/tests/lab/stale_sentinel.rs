//! A sentinel that hears of a failover late: it goes on naming the old primary for some questions.
//! Among the service's fields it shows the old one even after that, as the one does that leads a
//! failover.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// A sentinel of the service `lab`, as far as a client asks it for the primary. It takes no
/// subscriber.
pub struct StaleSentinel {
    pub addr: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl StaleSentinel {
    /// Names `old` for the first `questions`, and `new` from then on.
    pub async fn start(old: SocketAddr, questions: usize, new: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, asked) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let count = asked.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let count = count.clone();
                let primary = move || match count.fetch_add(1, Ordering::SeqCst) {
                    before if before < questions => old,
                    _ => new,
                };
                tokio::spawn(answer(stream, old, primary));
            }
        });
        Self { addr, asked }
    }

    /// How often it was asked for the primary.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub fn url(&self, options: &str) -> String {
        format!("redis+sentinel://{}/lab?{options}", self.addr)
    }
}

async fn answer(stream: TcpStream, old: SocketAddr, primary: impl Fn() -> SocketAddr) {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    while let Some(words) = command(&mut lines).await {
        let said = match words[0].as_str() {
            "SENTINEL" if words[1] == "MASTER" => describe(old),
            "SENTINEL" => list(&address(primary())),
            "HELLO" | "SUBSCRIBE" => "-ERR not here\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        };
        if !write_all(&mut write, &said).await {
            return;
        }
    }
}

/// Reads `*2`, `$8`, `SENTINEL`, and so on.
async fn command(lines: &mut Lines<BufReader<OwnedReadHalf>>) -> Option<Vec<String>> {
    let count: usize = lines.next_line().await.ok()??.strip_prefix('*')?.parse().ok()?;
    let mut words = Vec::new();
    for _ in 0..count {
        lines.next_line().await.ok()??;
        words.push(lines.next_line().await.ok()??);
    }
    Some(words)
}

fn describe(shown: SocketAddr) -> String {
    let [ip, port] = address(shown);
    let fields = ["ip", &ip, "port", &port, "config-epoch", "1", "num-slaves", "0"];
    list(&fields.map(str::to_owned))
}

fn address(primary: SocketAddr) -> [String; 2] {
    [primary.ip().to_string(), primary.port().to_string()]
}

fn list(texts: &[String]) -> String {
    let each = texts.iter().map(|text| format!("${}\r\n{text}\r\n", text.len()));
    format!("*{}\r\n{}", texts.len(), each.collect::<String>())
}

async fn write_all(write: &mut OwnedWriteHalf, said: &str) -> bool {
    write.write_all(said.as_bytes()).await.is_ok()
}
