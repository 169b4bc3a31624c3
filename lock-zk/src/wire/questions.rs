//! Asks a server which session timeouts it grants, and for its tick.
//!
//! The command `conf` tells both, where the server permits it. Otherwise ZooKeeper does not say; it
//! clamps the timeout that a client asks for. So two short-lived sessions ask for the least and the
//! most. The client crate cannot do that (a timeout of 1 ms is also its time to connect), and the
//! handshake is 45 bytes. It is also the first contact, and its error says why there is none.

use std::{io, ops::RangeInclusive, time::Duration};

use futures_util::future::{join_all, pending};
use lock_core::{Clock, duration::shown, keep::tls::speaks_tls};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, copy, sink},
    net::lookup_host,
};

use crate::wire::{
    dial::{Dialer, Stream},
    given_client,
    tls_error::{CERTIFICATE_REFUSED, explained},
};

/// The end of a session: the length of the request, its number, and its kind.
const CLOSE_SESSION: [i32; 3] = [8, 1, -11];
const FOREIGN: &str = "this does not answer like a ZooKeeper server";
const CLOSED: &str = "it closed the connection: it does not serve";
const ENCRYPTED: &str = "it speaks TLS at this port: option tls=verify";
/// The length of an answer to a handshake.
const ANSWER: RangeInclusive<i32> = 16..=1024;
/// Longer than any answer to `conf` or `srvr`.
const MOST_WORD_BYTES: u64 = 64 * 1024;
/// The least time that each host gets of the time for all of them.
const HOST_LIMIT: Duration = Duration::from_millis(200);
/// How long a server may be silent before it is tried with TLS: a server that expects TLS waits for
/// more than a command of four letters.
const SILENCE: Duration = Duration::from_secs(1);
/// The most time for the answer to a greeting of TLS.
const GREETING: Duration = Duration::from_millis(800);
/// The most time for the questions to all servers.
const MODE_LIMIT: Duration = Duration::from_secs(1);
/// How long a host may take for a sign of life before a session is opened.
const LIFE: Duration = Duration::from_millis(200);
/// The most time for the answer to a handshake, and then for the end of that session.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// The tick of a server that is not configured (`ZooKeeperServer.DEFAULT_TICK_TIME`).
const USUAL_TICK: Duration = Duration::from_secs(3);

/// A server's timeouts and tick.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Timing {
    /// The session timeouts that it grants.
    pub(crate) timeouts: RangeInclusive<Duration>,
    /// Its tick, or longer.
    pub(crate) tick: Duration,
    /// Whether the server has told its tick.
    pub(crate) told: bool,
}

impl Timing {
    /// Returns the tick to count with, and a caution if it is not the one that was `wished`: a tick
    /// that is too short makes deadlines too late, so a server that tells a longer one is believed.
    pub(crate) fn tick(&self, wished: Option<Duration>) -> (Duration, Option<String>) {
        let Some(wished) = wished.filter(|wished| *wished != self.tick) else {
            return (self.tick, None);
        };
        if !self.told || wished > self.tick {
            return (wished, None);
        }
        let caution = format!(
            "the option tick={} is shorter than the tickTime of the servers, {}, which counts; \
             remove the option",
            shown(wished),
            shown(self.tick)
        );
        (self.tick, Some(caution))
    }

    /// Guesses the tick. Unless configured otherwise, timeouts are 2 to 20 ticks. Bounds of another
    /// ratio were configured: one of them may still tell the tick, or neither, so the guess is not
    /// shorter than a server's own default.
    fn of_timeouts(least: Duration, most: Duration) -> Self {
        let guess = (least / 2).max(most / 20);
        let tick = if most == least * 10 { guess } else { guess.max(USUAL_TICK) };
        Self { timeouts: least..=most, tick, told: false }
    }
}

/// Asks one host after the other, until one answers. The error is that of the last one; it says that
/// a certificate is not accepted only if that is so with all of them.
pub(crate) async fn timing(hosts: &[String], dialer: &Dialer) -> io::Result<Timing> {
    let share = dialer.limit / u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
    let limit = share.max(HOST_LIMIT);
    let mut failure = "no host to connect to".to_owned();
    let mut certificates = !hosts.is_empty();
    for host in hosts {
        let answer = Box::pin(Clock::Boot.timeout(limit, first_answer(host, dialer)))
            .await
            .unwrap_or_else(|| {
                let silent = format!("no answer in {}", shown(limit));
                Err(io::Error::new(io::ErrorKind::TimedOut, silent))
            });
        match answer {
            Ok(timing) => return Ok(timing),
            Err(error) => {
                certificates &= error.kind() == CERTIFICATE_REFUSED;
                failure = format!("{host}: {error}");
            }
        }
    }
    let kind = if certificates { CERTIFICATE_REFUSED } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, failure))
}

/// Asks for the timeouts; without TLS it also finds out that the server speaks nothing else.
async fn first_answer(host: &str, dialer: &Dialer) -> io::Result<Timing> {
    let encrypted = || Err(io::Error::other(ENCRYPTED));
    let asked = timing_of(host, dialer);
    if dialer.is_encrypted() {
        return asked.await.map_err(explained);
    }
    let silent = async {
        Clock::Boot.sleep(SILENCE).await;
        if !speaks_tls(host, GREETING).await {
            pending().await
        }
    };
    tokio::select! {
        biased;
        answer = asked => match answer {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Err(error),
            Err(_) if speaks_tls(host, GREETING).await => encrypted(),
            answer => answer,
        },
        () = silent => encrypted(),
    }
}

async fn timing_of(host: &str, dialer: &Dialer) -> io::Result<Timing> {
    if let Some(timing) = parse_conf(&word(dialer.connect(host, host).await?, b"conf").await?) {
        return Ok(timing);
    }
    let least = grant(dialer.connect(host, host).await?, 1).await?;
    Ok(Timing::of_timeouts(least, grant(dialer.connect(host, host).await?, i32::MAX).await?))
}

/// Returns which of several hosts give no sign of life at once; `None` if none of them does: then
/// the way to them is slow. A host that refuses the connection, or the question, holds nobody up.
pub(crate) async fn silent(hosts: &[String], dialer: &Dialer) -> Option<Vec<usize>> {
    if hosts.len() < 2 {
        return Some(Vec::new());
    }
    let asks = hosts.iter().map(|host| async move {
        let asked = async {
            // Each server answers it, also one that does not permit it.
            if let Ok(stream) = dialer.connect(host, host.as_str()).await {
                let _ = word(stream, b"ruok").await;
            }
        };
        // The others are not reached without the caller's own TLS.
        host.starts_with(given_client::TLS) || Clock::Boot.timeout(LIFE, asked).await.is_some()
    });
    let alive = join_all(asks).await;
    let silent: Vec<_> = (0..hosts.len()).filter(|number| !alive[*number]).collect();
    let asked = hosts.iter().filter(|host| !host.starts_with(given_client::TLS)).count();
    (asked == 0 || silent.len() < asked).then_some(silent)
}

/// Asks all servers with a command of four letters. Returns their answers; none if a name is not
/// known or one is silent.
pub(crate) async fn ask_all(
    hosts: &[String],
    dialer: &Dialer,
    command: &[u8; 4],
) -> Vec<io::Result<String>> {
    let asked = async {
        let mut asks = Vec::new();
        for host in hosts {
            // A name may have several addresses.
            for addr in lookup_host(host).await? {
                asks.push(async move { word(dialer.connect(host, addr).await?, command).await });
            }
        }
        io::Result::Ok(join_all(asks).await)
    };
    Clock::Boot.timeout(MODE_LIMIT, asked).await.map_or_else(Vec::new, Result::unwrap_or_default)
}

/// Whether all servers say that they stand alone. Servers permit the question (`srvr`) unless they
/// are configured not to; without an answer they count as an ensemble. Nothing serves where a
/// connection is refused.
pub(crate) fn says_alone(answers: &[io::Result<String>]) -> bool {
    let is_alone = |answer: &String| answer.lines().any(|line| line == "Mode: standalone");
    answers.iter().any(Result::is_ok)
        && answers.iter().all(|answer| match answer {
            Ok(answer) => is_alone(answer),
            Err(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        })
}

/// Asks with one of the commands of four letters. Most servers do not permit `conf`.
async fn word(mut stream: Box<dyn Stream>, word: &[u8; 4]) -> io::Result<String> {
    stream.write_all(word).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    // A server that does not know the word closes the connection in its own way.
    let _ = stream.take(MOST_WORD_BYTES).read_to_end(&mut answer).await;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

pub(crate) fn parse_conf(answer: &str) -> Option<Timing> {
    let millis = |key: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        let millis = line?.trim().parse().ok().filter(|millis| *millis > 0)?;
        Some(Duration::from_millis(millis))
    };
    let (least, most) = (millis("minSessionTimeout")?, millis("maxSessionTimeout")?);
    Some(Timing { timeouts: least..=most, tick: millis("tickTime")?, told: true })
}

/// Opens a session with the wished timeout, ends it, and returns the timeout that was granted.
async fn grant(mut stream: Box<dyn Stream>, wish: i32) -> io::Result<Duration> {
    stream.write_all(&handshake(wish)).await?;
    stream.flush().await?;
    // In a task: if the caller leaves, the session must not stay for its whole timeout.
    let granted = tokio::spawn(async move {
        let answer = Clock::Boot.timeout(CLOSE_LIMIT, read_timeout(&mut stream)).await;
        let granted = answer.ok_or(io::ErrorKind::TimedOut)??;
        stream.write_all(&CLOSE_SESSION.map(i32::to_be_bytes).concat()).await?;
        stream.flush().await?;
        // So that the session is gone on return: then the server closes the connection.
        let _ = Clock::Boot.timeout(CLOSE_LIMIT, copy(&mut stream, &mut sink())).await;
        Ok(granted)
    });
    granted.await.map_err(io::Error::other)?
}

/// The length; protocol version, last zxid seen, timeout, session id, password of 16 bytes,
/// read-only.
fn handshake(timeout: i32) -> Vec<u8> {
    let (length, password) = (45_i32.to_be_bytes(), 16_i32.to_be_bytes());
    [&length[..], &[0; 12], &timeout.to_be_bytes(), &[0; 8], &password, &[0; 17]].concat()
}

/// Reads the answer to a handshake: its length; protocol version, timeout, session id, and what
/// does not matter here.
async fn read_timeout(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Duration> {
    let length = stream.read_i32().await.map_err(|error| match error.kind() {
        kind @ io::ErrorKind::UnexpectedEof => io::Error::new(kind, CLOSED),
        _ => error,
    })?;
    if !ANSWER.contains(&length) {
        return Err(io::Error::other(FOREIGN));
    }
    let _version = stream.read_i32().await?;
    let (timeout, session) = (stream.read_i32().await?, stream.read_i64().await?);
    let granted = u64::try_from(timeout).ok().filter(|granted| *granted > 0 && session != 0);
    granted.map(Duration::from_millis).ok_or_else(|| io::Error::other(FOREIGN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handshake_has_the_format_of_zookeeper() {
        let bytes = handshake(0x0102_0304);
        assert_eq!(bytes.len(), 4 + 45);
        assert_eq!(&bytes[..4], 45_i32.to_be_bytes());
        assert_eq!(&bytes[16..20], [1, 2, 3, 4]);
        assert_eq!(&bytes[28..32], 16_i32.to_be_bytes());
    }

    #[test]
    fn the_tick_is_told_or_guessed_too_long() {
        let millis = Duration::from_millis;
        let conf = "clientPort=2181\ntickTime=2000\nminSessionTimeout=1000\n\
                    maxSessionTimeout=60000\nserverId=1\n";
        let timeouts = millis(1000)..=millis(60_000);
        let told = Timing { timeouts, tick: millis(2000), told: true };
        assert_eq!(parse_conf(conf), Some(told));
        assert_eq!(parse_conf("conf is not executed because it is not in the whitelist."), None);
        for (least, most, tick) in [
            (4000, 40_000, 2000),
            (1000, 40_000, 3000),
            (4000, 20_000, 3000),
            (4000, 90_000, 4500),
            (1000, 12_000, 3000),
        ] {
            let guess = Timing::of_timeouts(millis(least), millis(most));
            assert_eq!(guess.tick, millis(tick), "{least} to {most}");
        }
    }

    #[test]
    fn a_tick_that_a_server_tells_is_not_made_shorter() {
        let millis = Duration::from_millis;
        let timeouts = millis(4000)..=millis(40_000);
        let told = Timing { timeouts: timeouts.clone(), tick: millis(3000), told: true };
        let (tick, caution) = told.tick(Some(millis(100)));
        let caution = caution.unwrap();
        assert_eq!(tick, millis(3000));
        assert!(caution.contains("tick=100ms") && caution.contains("3s"), "{caution}");
        for wished in [None, Some(millis(3000))] {
            assert_eq!(told.tick(wished), (millis(3000), None));
        }
        // For observers that follow an observer master.
        assert_eq!(told.tick(Some(millis(6000))), (millis(6000), None));
        let guessed = Timing { timeouts, tick: millis(3000), told: false };
        assert_eq!(guessed.tick(Some(millis(100))), (millis(100), None));
    }

    #[test]
    fn only_servers_that_all_say_so_stand_alone() {
        let server = |mode: &str| Ok(format!("Zookeeper version: 3.8.0\n{mode}\nNode count: 5\n"));
        let (alone, leads) = (|| server("Mode: standalone"), || server("Mode: leader"));
        let failed = |kind| Err(io::Error::from(kind));
        let refused = || failed(io::ErrorKind::ConnectionRefused);
        assert!(says_alone(&[alone()]) && says_alone(&[refused(), alone()]));
        assert!(!says_alone(&[]) && !says_alone(&[refused()]) && !says_alone(&[leads()]));
        assert!(!says_alone(&[alone(), leads()]) && !says_alone(&[server("")]));
        assert!(!says_alone(&[alone(), failed(io::ErrorKind::TimedOut)]));
    }

    #[tokio::test]
    async fn an_answer_without_a_session_is_none() {
        let answer = |timeout: i32, session: i64| {
            let length = 37_i32.to_be_bytes();
            let (timeout, session) = (timeout.to_be_bytes(), session.to_be_bytes());
            [&length[..], &[0; 4], &timeout, &session, &[0; 21]].concat()
        };
        let seconds = async |answer: &[u8]| read_timeout(&mut &*answer).await.ok();
        assert_eq!(seconds(&answer(0, 0)).await, None);
        assert_eq!(seconds(&answer(4000, 0)).await, None);
        assert_eq!(seconds(&answer(4000, 1)).await, Some(Duration::from_secs(4)));
        assert_eq!(seconds(b"HTTP/1.1 400 Bad Request\r\n").await, None);
    }
}
