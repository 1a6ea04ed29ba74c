//! A browser to look at pages with: headless Chromium, told what to do over the Chrome DevTools Protocol
//! (<https://chromedevtools.github.io/devtools-protocol/>) on a pair of pipes, which it has as descriptors 3 and 4.
#![allow(unreachable_pub)]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The names under which systems have it.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// A browser with one page open.
pub struct Browser {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    session: Option<String>,
    last: u64,
    events: VecDeque<Value>,
    /// Everything that was complained about, in the console or elsewhere.
    pub complaints: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts it; nothing if there is none, which is said loudly.
    pub fn start() -> Option<Browser> {
        let runs = |name: &&&str| {
            let version = Command::new(name).arg("--version").output();
            version.is_ok_and(|output| output.status.success())
        };
        let Some(name) = NAMES.iter().find(runs) else {
            eprintln!("SKIPPED: Chromium is not installed, so nobody looks at the pages");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh", name])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let messages = BufReader::new(from).split(0);
            for message in messages.map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            child,
            to: Some(to),
            from: told,
            session: None,
            last: 0,
            events: VecDeque::new(),
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.resize(1280, 900);
        Some(browser)
    }

    /// Calls a method of the protocol and gives its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.ask(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method of the protocol, which may refuse.
    fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.last += 1;
        let id = self.last;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let to = self.to.as_mut().unwrap();
        to.write_all(message.to_string().as_bytes()).unwrap();
        to.write_all(&[0]).unwrap();
        loop {
            let message = self.message(method);
            if message["id"] == id {
                let error = &message["error"];
                return if error.is_null() {
                    Ok(message["result"].clone())
                } else {
                    Err(error.clone())
                };
            }
            self.events.push_back(message);
        }
    }

    fn message(&mut self, waiting_for: &str) -> Value {
        let message = self.from.recv_timeout(PATIENCE);
        let message = message.unwrap_or_else(|error| panic!("waiting for {waiting_for}: {error}"));
        self.note(&message);
        message
    }

    /// Remembers what is a complaint.
    fn note(&mut self, message: &Value) {
        let parameters = &message["params"];
        let complaint = match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => parameters["exceptionDetails"].to_string(),
            Some("Runtime.consoleAPICalled")
                if ["error", "warning", "assert"]
                    .iter()
                    .any(|kind| parameters["type"] == *kind) =>
            {
                parameters["args"].to_string()
            }
            Some("Log.entryAdded") if parameters["entry"]["level"] != "info" => {
                parameters["entry"].to_string()
            }
            _ => return,
        };
        self.complaints.push(complaint);
    }

    /// Opens a page and waits until it is loaded.
    pub fn open(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", json!({ "url": url }));
        let loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(loaded) {
            let message = self.message("the page to be loaded");
            self.events.push_back(message);
        }
    }

    /// The value of an expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.try_evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// The value of an expression in the page; an error if it throws, or if the page goes away meanwhile.
    fn try_evaluate(&mut self, expression: &str) -> Result<Value, Value> {
        let parameters =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.ask("Runtime.evaluate", parameters)?;
        match &result["exceptionDetails"] {
            Value::Null => Ok(result["result"]["value"].clone()),
            exception => Err(exception.clone()),
        }
    }

    /// Waits until an expression is true. Between one page and the next there is nothing to ask, or half a document: what is said then
    /// is not yet the answer.
    pub fn wait_for(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let answer = self.try_evaluate(expression);
            if answer == Ok(Value::Bool(true)) {
                return;
            }
            assert!(Instant::now() < end, "{expression} is never true: {answer:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Follows a link. The click comes after the answer, which a page that goes away would no longer give.
    pub fn follow(&mut self, link: &str) {
        self.evaluate(&format!("void setTimeout(() => document.querySelector('{link}').click())"));
    }

    /// Makes the window another size.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        // Until what was asked for in the next frame has been done, and what that has asked for.
        let frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => \
                      requestAnimationFrame(() => done(true)))))";
        self.evaluate(frames);
    }

    /// Prefers dark pages, or light ones.
    pub fn prefer(&mut self, scheme: &str) {
        let feature = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": feature }));
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64), clicks: u32) {
        let parameters = json!({
            "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": clicks,
        });
        self.call("Input.dispatchMouseEvent", parameters);
    }

    /// Drags with the mouse, and lets go.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from, 0);
        self.mouse("mousePressed", from, 1);
        self.mouse("mouseMoved", ((from.0 + to.0) / 2.0, to.1), 0);
        self.mouse("mouseMoved", to, 0);
        self.mouse("mouseReleased", to, 1);
    }

    /// Clicks twice.
    pub fn double_click(&mut self, at: (f64, f64)) {
        for clicks in [1, 2] {
            self.mouse("mousePressed", at, clicks);
            self.mouse("mouseReleased", at, clicks);
        }
    }

    /// Writes a picture of the whole page, if whoever runs the tests wants to see some: `TRANSOM_SCREENSHOTS=DIR`.
    pub fn screenshot(&mut self, name: &str) {
        let Some(directory) = std::env::var_os("TRANSOM_SCREENSHOTS") else { return };
        let picture = self.call("Page.captureScreenshot", json!({ "captureBeyondViewport": true }));
        let bytes = decoded(picture["data"].as_str().unwrap());
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(std::path::Path::new(&directory).join(format!("{name}.png")), bytes)
            .unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when nobody tells it anything any more.
        self.to = None;
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a text in base 64 (RFC 4648, section 4) stands for.
fn decoded(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(value).collect();
    let mut bytes = Vec::new();
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit));
        let bits = bits << (6 * (4 - group.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}
