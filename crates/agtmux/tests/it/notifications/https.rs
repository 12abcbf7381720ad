//! `https://` is sent by curl, which checks the certificate of the server.

use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use agtmux_testkit::{ChildGuard, skip};

use super::*;

/// A server with a certificate of its own. It writes what it gets to a file, and sends what the test writes.
struct TlsServer {
    port: u16,
    certificate: PathBuf,
    received: PathBuf,
    answer: std::process::ChildStdin,
    _process: ChildGuard,
}

impl TlsServer {
    fn start(world: &TestWorld) -> Self {
        let [key, certificate, received] = ["key.pem", "cert.pem", "received"].map(|name| world.home().join(name));
        let made = run(world
            .command("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate));
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let mut server = world.command("openssl");
        server.args(["s_server", "-quiet", "-accept"]).arg(format!("127.0.0.1:{port}"));
        server.arg("-key").arg(&key).arg("-cert").arg(&certificate);
        server.stdin(Stdio::piped()).stdout(File::create(&received).expect("created")).stderr(Stdio::null());
        let mut process = ChildGuard::start(&mut server);
        let answer = process.stdin.take().expect("piped");
        wait_until("the server", SOON, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { port, certificate, received, answer, _process: process }
    }
}

#[test]
fn https_is_sent_by_curl_only_to_a_server_with_a_valid_certificate() {
    for program in ["openssl", "curl"] {
        if Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            return skip(&format!("{program} is not installed"));
        }
    }
    let world = world();
    let token = world.home().join("token");
    fs::write(&token, "tk_secret").expect("written");
    let mut server = TlsServer::start(&world);
    let settings = format!(
        "[notify]\nwebhook_url = 'https://localhost:{}/hook'\nwebhook_token_file = '{}'\n",
        server.port,
        token.display()
    );
    configure(&world, &settings);
    start_daemon(&world);
    let done = agtmux(&world, &["notify", "test", "webhook"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.text().contains("certificate"), "{done:?}");
    agtmux_testkit::agtmux::stop(&world);
    let mut command = world.agtmux();
    let done = run(command.env("CURL_CA_BUNDLE", &server.certificate).args(["daemon", "start"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let mut command = world.agtmux();
    command.args(["notify", "test", "webhook"]);
    let test = thread::spawn(move || run(&mut command));
    let received = wait_for("the request", SOON, || {
        let received = fs::read_to_string(&server.received).unwrap_or_default();
        if received.ends_with('}') { Ok(received) } else { Err(received) }
    });
    server.answer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("written");
    let done = test.join().expect("it ends");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(received.starts_with("POST /hook HTTP/1.1\r\n"), "{received}");
    assert!(received.contains("Authorization: Bearer tk_secret\r\n"), "{received}");
    assert!(received.contains("\"title\":\"agtmux test\""), "{received}");
}
