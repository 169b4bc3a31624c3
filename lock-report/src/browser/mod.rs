//! Chromium in headless mode, through its own protocol.

use std::{
    env, fs, io,
    io::{BufRead, BufReader},
    net::TcpStream,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

/// A reason why a page cannot be looked at.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Longest wait for a reply. The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
const CONTRAST: &str = include_str!("contrast.js");
const OVERFLOW: &str = include_str!("overflow.js");
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A running browser with one page at a time. Dropping the value ends it.
pub struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    _profile: TempDir,
    page: Option<(String, String)>,
    asked: u64,
    /// All events of the page since it was opened.
    events: Vec<Value>,
}

/// Returns the program, if it is installed.
pub fn installed() -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let programs =
        env::split_paths(&folders).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    programs.into_iter().find(|program| program.is_file())
}

/// Returns the build folder's `report`, for pages and screenshots. It is made if it does not exist.
pub fn folder() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let target = program.ancestors().find(|folder| folder.ends_with("target"));
    let folder = target.map_or_else(env::temp_dir, Path::to_path_buf).join("report");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

impl Browser {
    /// Starts the program, without a page.
    pub fn start(program: &Path) -> Result<Self, Failure> {
        let profile = tempfile::tempdir()?;
        let mut command = Command::new(program);
        command.args(["--headless", "--remote-debugging-port=0", "--disable-gpu"]);
        command.args(["--no-first-run", "--disable-dev-shm-usage", "--disable-extensions"]);
        command.args(["--disable-background-networking", "--disable-sync"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        if fs::metadata("/proc/self")?.uid() == 0 {
            command.arg("--no-sandbox");
        }
        let command = command.arg("about:blank").stdin(Stdio::null()).stdout(Stdio::null());
        let mut process = command.stderr(Stdio::piped()).spawn()?;
        let address = address(&mut process)?;
        let place = address.trim_start_matches("ws://").split('/').next().unwrap_or_default();
        let stream = TcpStream::connect(place)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (socket, _) = tungstenite::client(address.as_str(), stream)
            .map_err(|error| format!("the browser does not answer: {error}"))?;
        let (page, asked, events) = Default::default();
        Ok(Self { process, socket, _profile: profile, page, asked, events })
    }

    /// Opens a file in a new page of this size. Closes the page before.
    pub fn open(&mut self, file: &Path, hash: &str, size: (u32, u32)) -> Result<(), Failure> {
        if let Some((target, _)) = self.page.take() {
            self.ask("Target.closeTarget", json!({ "targetId": target }))?;
        }
        let made = self.ask("Target.createTarget", json!({ "url": "about:blank" }))?;
        let target = text(&made["targetId"])?;
        let attached =
            self.ask("Target.attachToTarget", json!({ "targetId": target, "flatten": true }))?;
        self.page = Some((target, text(&attached["sessionId"])?));
        self.events.clear();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            self.ask(domain, json!({}))?;
        }
        self.resize(size)?;
        let url = format!("file://{}{hash}", file.display());
        self.ask("Page.navigate", json!({ "url": url }))?;
        self.until("Page.loadEventFired")
    }

    /// Gives the page this size.
    pub fn resize(&mut self, (width, height): (u32, u32)) -> Result<(), Failure> {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", size).map(drop)
    }

    /// Sets the colour scheme: `light` or `dark`.
    pub fn scheme(&mut self, scheme: &str) -> Result<(), Failure> {
        let feature = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.ask("Emulation.setEmulatedMedia", json!({ "features": feature })).map(drop)
    }

    /// Returns the value of an expression in the page. A promise is awaited.
    pub fn value(&mut self, expression: &str) -> Result<Value, Failure> {
        let asked = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let answer = self.ask("Runtime.evaluate", asked)?;
        match answer.get("exceptionDetails") {
            Some(thrown) => Err(format!("{expression}: {thrown}").into()),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Returns an error if an element is wider than the page or than its room.
    pub fn overflows(&mut self) -> Result<(), Failure> {
        let found = self.value(OVERFLOW)?;
        (found == json!([])).then_some(()).ok_or_else(|| found.to_string().into())
    }

    /// Returns an error if a text has too little contrast, or if fewer than this many are read, all
    /// in all and in drawings. Opens all folds.
    pub fn contrast(&mut self, read: u64, drawn: u64) -> Result<(), Failure> {
        let found = self.value(CONTRAST)?;
        let enough = |name: &str, least| found[name].as_u64() > Some(least);
        let well = enough("read", read) && enough("drawn", drawn) && found["low"] == json!([]);
        well.then_some(()).ok_or_else(|| found.to_string().into())
    }

    /// Clicks in the middle of an element.
    pub fn click(&mut self, selector: &str) -> Result<(), Failure> {
        let place = self.value(&format!(
            "(() => {{ const one = document.querySelector({selector:?});
              one.scrollIntoView({{ block: 'center', behavior: 'instant' }});
              const box = one.getBoundingClientRect();
              return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ))?;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1,
            });
            self.ask("Input.dispatchMouseEvent", event)?;
        }
        Ok(())
    }

    /// Presses a key: `Enter`, `Escape`, `ArrowDown`, or a space.
    pub fn press(&mut self, key: &str) -> Result<(), Failure> {
        let (code, number, text) = match key {
            "Enter" => ("Enter", 13, "\r"),
            "Escape" => ("Escape", 27, ""),
            " " => ("Space", 32, " "),
            "ArrowRight" => (key, 39, ""),
            "ArrowDown" => (key, 40, ""),
            other => return Err(format!("no such key here: {other}").into()),
        };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        for kind in [down, "keyUp"] {
            let text = if kind == "keyUp" { "" } else { text };
            let event = json!({
                "type": kind, "key": key, "code": code, "text": text,
                "windowsVirtualKeyCode": number,
            });
            self.ask("Input.dispatchKeyEvent", event)?;
        }
        Ok(())
    }

    /// Writes the visible part of the page to a file.
    pub fn screenshot(&mut self, file: &Path) -> Result<(), Failure> {
        let shot = self.ask("Page.captureScreenshot", json!({ "format": "png" }))?;
        Ok(fs::write(file, STANDARD.decode(text(&shot["data"])?)?)?)
    }

    /// Prints the page as PDF.
    pub fn print(&mut self) -> Result<Vec<u8>, Failure> {
        let printed = self.ask("Page.printToPDF", json!({}))?;
        Ok(STANDARD.decode(text(&printed["data"])?)?)
    }

    /// Turns the page's own scripts on or off.
    pub fn scripts(&mut self, on: bool) -> Result<(), Failure> {
        self.ask("Emulation.setScriptExecutionDisabled", json!({ "value": !on })).map(drop)
    }

    /// Reloads the page.
    pub fn reload(&mut self) -> Result<(), Failure> {
        self.events.clear();
        self.ask("Page.reload", json!({}))?;
        self.until("Page.loadEventFired")
    }

    /// Returns the page's error messages.
    pub fn complaints(&mut self) -> Result<Vec<String>, Failure> {
        self.value("1")?;
        let is_complaint = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => event["params"]["entry"]["level"] != "info",
            Some("Runtime.consoleAPICalled") => {
                matches!(event["params"]["type"].as_str(), Some("error" | "warning" | "assert"))
            }
            _ => false,
        };
        Ok(self.events.iter().filter(is_complaint).map(ToString::to_string).collect())
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        self.asked += 1;
        let mut question = json!({ "id": self.asked, "method": method, "params": params });
        let page = self.page.as_ref().filter(|_| !method.starts_with("Target."));
        if let Some((_, session)) = page {
            question["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(question.to_string()))?;
        loop {
            let said = self.next()?;
            if said["id"] == json!(self.asked) {
                return match said.get("error") {
                    Some(error) => Err(format!("{method}: {error}").into()),
                    None => Ok(said["result"].clone()),
                };
            }
            self.events.push(said);
        }
    }

    fn until(&mut self, event: &str) -> Result<(), Failure> {
        while !self.events.iter().any(|said| said["method"] == event) {
            let said = self.next()?;
            self.events.push(said);
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Value, Failure> {
        loop {
            if let Message::Text(text) = self.socket.read()? {
                return Ok(serde_json::from_str(&text)?);
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.page = None;
        let closed = self.ask("Browser.close", json!({}));
        if closed.is_err() {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

/// Returns the browser's address, which it prints on its standard error.
fn address(process: &mut Child) -> Result<String, Failure> {
    let mut lines = BufReader::new(process.stderr.take().ok_or("no standard error")?);
    let mut said = String::new();
    loop {
        let start = said.len();
        if lines.read_line(&mut said)? == 0 {
            return Err(format!("the browser ends at once: {said}").into());
        }
        if let Some(address) = said[start..].strip_prefix("DevTools listening on ") {
            let address = address.trim().to_owned();
            // The browser blocks if its output is not read.
            thread::spawn(move || io::copy(&mut lines, &mut io::sink()));
            return Ok(address);
        }
    }
}

fn text(value: &Value) -> Result<String, Failure> {
    Ok(value.as_str().ok_or_else(|| format!("no text: {value}"))?.to_owned())
}
