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
