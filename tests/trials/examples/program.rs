//! An example in its own process.

use std::{
    ffi::OsStr,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
    task::JoinHandle,
};

/// Variable with the name of the example that this program runs.
pub const EXAMPLE: &str = "DISTLOCK_TEST_EXAMPLE";

/// Limit for expected events. Longer than a stall of a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A process that runs an example. Dropping it ends the process. Its output is shown if the test
/// fails.
pub struct Program {
    name: String,
    child: Child,
    out: Lines,
    err: Lines,
}

impl Program {
    pub fn start(example: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(arguments).env(EXAMPLE, example).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let out = Lines::of(child.stdout.take().expect("its stdout"));
        let err = Lines::of(child.stderr.take().expect("its stderr"));
        Self { name: format!("{example} {}", child.id().expect("it runs")), child, out, err }
    }

    /// Its output on stdout so far.
    pub fn out(&self) -> Vec<String> {
        self.out.now()
    }

    /// Its output on stderr so far.
    pub fn err(&self) -> String {
        self.err.now().join("\n")
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    pub fn signal(&self, signal: &str) {
        let sent =
            std::process::Command::new("kill").args([signal, &self.pid().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("its state").is_none()
    }

    /// Waits for its end and for all its output.
    pub async fn end(&mut self) -> ExitStatus {
        let end = async {
            let status = self.child.wait().await.expect("its end");
            self.out.end().await;
            self.err.end().await;
            status
        };
        let end = tokio::time::timeout(PATIENCE, end).await;
        end.unwrap_or_else(|_| panic!("{} does not end", self.name))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} wrote:\n{}\n{}", self.name, self.out.now().join("\n"), self.err());
        }
    }
}

/// The lines of one stream, read as they arrive.
struct Lines {
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Lines {
    fn of(stream: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (sink, mut stream) = (lines.clone(), BufReader::new(stream).lines());
        let reader = tokio::spawn(async move {
            while let Ok(Some(line)) = stream.next_line().await {
                sink.lock().unwrap().push(line);
            }
        });
        Self { lines, reader: Some(reader) }
    }

    fn now(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    async fn end(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.await.expect("the reader");
        }
    }
}
