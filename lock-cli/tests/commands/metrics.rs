//! `--metrics ADDR`, as Prometheus asks it.

use std::{
    io::{BufRead, BufReader, Lines, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStderr, Stdio},
};

use crate::place::{Place, said};

/// A program that serves its metrics on a free port. A drop kills it.
struct Serving {
    child: Child,
    /// Kept open: it may say more.
    _said: Lines<BufReader<ChildStderr>>,
    at: String,
}

impl Serving {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut said = BufReader::new(child.stderr.take().expect("its stderr")).lines();
        let at = said.find_map(|line| {
            let line = line.expect("text");
            let (_, url) = line.split_once("metrics are at http://")?;
            Some(url.strip_suffix("/metrics")?.to_owned())
        });
        Self { child, _said: said, at: at.expect("it says where") }
    }

    /// Waits until it says something on stdout.
    fn await_line(&mut self) {
        let stdout = BufReader::new(self.child.stdout.take().expect("its stdout"));
        stdout.lines().next().expect("a line").expect("text");
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.at).expect("it listens");
        write!(stream, "{request} HTTP/1.1\r\nHost: {}\r\n\r\n", self.at).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_holding_command_serves_its_metrics() {
    let place = Place::new();
    let here = ["--metrics", "127.0.0.1:0"];
    let run = ["--", "sh", "-c", "echo; read line"];
    let commands: [(&[&str], &[&str], &str); 3] = [
        (&["hold", "a"], &[], "exclusive"),
        (&["run", "b"], &run, "exclusive"),
        (&["elect", "c", "me"], &[], "leader"),
    ];
    for (command, rest, kind) in commands {
        let mut serving = Serving::start(&place, &[command, &here, rest].concat());
        serving.await_line();
        let page = serving.ask("GET /metrics");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        let name = command[1];
        let series = format!("distlock_held{{store=\"sqlite\",kind=\"{kind}\",name=\"{name}\"}} 1");
        assert!(page.lines().any(|line| line == series), "{series}: {page}");
        assert!(page.contains("# TYPE distlock_acquire_seconds histogram\n"), "{page}");
        assert!(serving.ask("GET /").starts_with("HTTP/1.1 404 "));
        assert!(serving.ask("POST /metrics").starts_with("HTTP/1.1 405 "));
    }
}

#[test]
fn an_address_that_is_none_or_taken_ends_it_before_the_lock_is_taken() {
    let place = Place::new();
    let (code, _, error) = place.run(&["hold", "x", "--metrics", "9464"]);
    assert!(code == Some(64) && error.contains("such as 127.0.0.1:9464"), "{code:?}: {error}");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("its address").to_string();
    let output = place.command(&["hold", "x", "--metrics", &at]).output().expect("it starts");
    let (code, stdout, error) = said(&output);
    assert!(code == Some(71) && error.contains(&at) && stdout.is_empty(), "{code:?}: {error}");
}
