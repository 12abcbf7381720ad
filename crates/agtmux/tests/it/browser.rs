//! A real browser, controlled through chromedriver over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::{TestWorld, skip, wait_for};
use serde_json::{Value, json};

pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Returns None and skips the test if no browser is installed.
    pub(crate) fn start(world: &TestWorld) -> Option<Self> {
        let is_installed =
            |program: &str| Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success());
        if !is_installed("chromedriver") || !is_installed("chromium") {
            skip("chromium and chromedriver are not installed; scripts/ensure-tools browser installs them");
            return None;
        }
        let mut driver = world
            .command("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let port =
            lines.find_map(|line| line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok());
        // Drain the output so that the pipe does not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Self { driver, port: port.expect("chromedriver prints its port"), session: String::new() };
        let profile = world.dir().join("browser");
        let args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"].map(str::to_owned);
        let args: Vec<String> = args.into_iter().chain([format!("--user-data-dir={}", profile.display())]).collect();
        let capabilities = json!({"capabilities": {"alwaysMatch": {"browserName": "chrome", "unhandledPromptBehavior": "ignore",
            "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {"args": args, "binary": "/usr/bin/chromium"}}}});
        let created = browser.post("/session", &capabilities);
        browser.session = created["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {created}")).to_owned();
        Some(browser)
    }

    pub(crate) fn open(&self, url: &str) {
        self.post(&self.path("/url"), &json!({ "url": url }));
    }

    /// Runs a script in the page and returns its result.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post(&self.path("/execute/sync"), &json!({ "script": script, "args": [] }))
    }

    /// Shows the page as on a phone, or as on a desk.
    pub(crate) fn set_screen(&self, width: u32, height: u32, is_phone: bool, scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone});
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
        self.devtools("Emulation.setTouchEmulationEnabled", &json!({ "enabled": is_phone }));
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// Sends a command of the protocol of the browser's developer tools.
    pub(crate) fn devtools(&self, command: &str, params: &Value) -> Value {
        self.post(&self.path("/goog/cdp/execute"), &json!({ "cmd": command, "params": params }))
    }

    /// Opens a tab and returns its handle.
    pub(crate) fn new_tab(&self) -> String {
        let tab = self.post(&self.path("/window/new"), &json!({ "type": "tab" }));
        tab["handle"].as_str().unwrap_or_else(|| panic!("no tab: {tab}")).to_owned()
    }

    pub(crate) fn switch_to(&self, tab: &str) {
        self.post(&self.path("/window"), &json!({ "handle": tab }));
    }

    /// The page as a PNG file.
    pub(crate) fn screenshot(&self) -> Vec<u8> {
        let encoded = self.driver_request("GET", &self.path("/screenshot"), "");
        decode_base64(encoded.as_str().expect("a screenshot"))
    }

    /// Waits until a script returns true. Returns what `show` returns if it never does.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, script: &str) {
        wait_for(what, SOON, || match self.run(script) {
            Value::Bool(true) => Ok(()),
            _ => Err(self.run("return document.body.innerText")),
        });
    }

    /// Clicks the middle of the first element that matches, with a real mouse event. Waits until it exists and can be
    /// clicked.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        let found = format!(
            "const e = document.querySelector({selector:?}); if (!e || e.disabled) return null;\
             e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect();\
             return [Math.round(r.x + r.width / 2), Math.round(r.y + r.height / 2)]"
        );
        let at = wait_for(&format!("'{selector}'"), SOON, || match self.run(&found) {
            Value::Array(at) => Ok(at),
            _ => Err(self.run("return document.body.innerText")),
        });
        let moved = json!({"type": "pointerMove", "duration": 0, "x": at[0], "y": at[1], "origin": "viewport"});
        let actions = json!([moved, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]);
        let pointer =
            json!({"type": "pointer", "id": "finger", "parameters": {"pointerType": "mouse"}, "actions": actions});
        self.post(&self.path("/actions"), &json!({ "actions": [pointer] }));
    }

    #[track_caller]
    pub(crate) fn wait_for_text(&self, element: &str, text: &str) -> String {
        wait_for(&format!("'{text}' in #{element}"), SOON, || {
            let shown = self.run(&format!("return document.getElementById('{element}').textContent"));
            let shown = shown.as_str().unwrap_or_default().to_owned();
            if shown.contains(text) { Ok(shown) } else { Err(shown) }
        })
    }

    /// The messages in the browser console.
    pub(crate) fn console_errors(&self) -> Vec<String> {
        let log = self.post(&self.path("/se/log"), &json!({ "type": "browser" }));
        let entries = log.as_array().cloned().unwrap_or_default();
        entries.iter().filter_map(|entry| entry["message"].as_str().map(str::to_owned)).collect()
    }

    fn path(&self, rest: &str) -> String {
        format!("/session/{}{rest}", self.session)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.driver_request("POST", path, &body.to_string())
    }

    fn driver_request(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the driver listens");
        stream.set_read_timeout(Some(SOON)).expect("a socket takes a timeout");
        let head = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n", self.port);
        let length = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all((head + &length).as_bytes()).expect("the driver reads the request");
        // The driver keeps the connection open, so read the body by its content length.
        let mut response = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            response.read_line(&mut line).expect("a response");
            match line.trim_end().to_lowercase().strip_prefix("content-length:") {
                Some(number) => length = number.trim().parse().expect("a length"),
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        response.read_exact(&mut body).expect("a whole response");
        let value: Value = serde_json::from_slice(&body).expect("JSON");
        value["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.driver_request("DELETE", &self.path(""), "");
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> = text.bytes().filter(|byte| *byte != b'=').map(|byte| u32::from(digit(byte))).collect();
    let group = |digits: &[u32]| {
        let bits = digits.iter().enumerate().fold(0, |bits, (at, digit)| bits | digit << (18 - 6 * at));
        bits.to_be_bytes()[1..digits.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}
