//! A D-Bus session of its own with a service that shows notifications, as a desktop has one.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::agtmux::SOON;
use crate::{ChildGuard, TestWorld, skip, wait_for};

const SERVICE: &str = "org.freedesktop.Notifications";
const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;

/// A notification as the desktop got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownNotification {
    pub id: u32,
    pub app: String,
    pub summary: String,
    pub body: String,
    /// False after the notification was closed.
    pub is_open: bool,
}

/// Dropping the service ends its D-Bus session.
pub struct NotificationService {
    shown: Arc<Mutex<Vec<ShownNotification>>>,
    _bus: ChildGuard,
}

impl NotificationService {
    /// Starts a D-Bus session at the default address of the world, and the service. Skips the test and returns None if
    /// this machine has no dbus-daemon.
    pub fn start(world: &TestWorld) -> Option<Self> {
        if Command::new("dbus-daemon").arg("--version").stdout(Stdio::null()).status().is_err() {
            skip("dbus-daemon is not installed; run: scripts/ensure-tools dbus");
            return None;
        }
        let socket = world.dir().join("run/bus");
        let mut bus = world.command("dbus-daemon");
        bus.args(["--session", "--nofork", "--nopidfile"]).arg(format!("--address=unix:path={}", socket.display()));
        let bus = ChildGuard::start(bus.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
        let shown: Arc<Mutex<Vec<ShownNotification>>> = Arc::default();
        let connection = wait_for("the D-Bus session", SOON, || BusConnection::open(&socket).ok());
        let service = Self { shown: shown.clone(), _bus: bus };
        connection.serve(shown);
        Some(service)
    }

    /// All notifications, oldest first.
    pub fn all(&self) -> Vec<ShownNotification> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The notifications that are open now.
    pub fn open(&self) -> Vec<ShownNotification> {
        self.all().into_iter().filter(|notification| notification.is_open).collect()
    }
}

struct BusConnection {
    stream: UnixStream,
    serial: u32,
}

/// A received message.
struct BusRequest {
    kind: u8,
    serial: u32,
    sender: String,
    member: String,
    body: Vec<u8>,
}

impl BusConnection {
    /// Connects and takes the name of the service.
    fn open(socket: &PathBuf) -> std::io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        let uid = rustix::process::geteuid().as_raw().to_string();
        let hex: String = uid.bytes().map(|byte| format!("{byte:02x}")).collect();
        (&stream).write_all(format!("\0AUTH EXTERNAL {hex}\r\n").as_bytes())?;
        let mut line = String::new();
        BufReader::with_capacity(1, &stream).read_line(&mut line)?;
        if !line.starts_with("OK") {
            return Err(std::io::Error::other(line));
        }
        (&stream).write_all(b"BEGIN\r\n")?;
        let mut connection = Self { stream, serial: 0 };
        connection.call_bus("Hello", "", |_| {})?;
        connection.call_bus("RequestName", "su", |body| {
            put_text(body, SERVICE);
            put_u32(body, 0);
        })?;
        Ok(connection)
    }

    fn call_bus(&mut self, member: &str, signature: &str, put: impl FnOnce(&mut Vec<u8>)) -> std::io::Result<()> {
        let bus = "org.freedesktop.DBus";
        let fields =
            [(1, 'o', "/org/freedesktop/DBus"), (2, 's', bus), (3, 's', member), (6, 's', bus), (8, 'g', signature)];
        self.send(METHOD_CALL, None, &fields, put)?;
        // The answer, before other messages.
        while self.receive()?.kind != METHOD_RETURN {}
        Ok(())
    }

    /// Answers calls in a thread until the session ends.
    fn serve(mut self, shown: Arc<Mutex<Vec<ShownNotification>>>) {
        thread::spawn(move || {
            while let Ok(request) = self.receive() {
                if request.kind == METHOD_CALL && self.answer(&request, &shown).is_err() {
                    return;
                }
            }
        });
    }

    fn answer(&mut self, request: &BusRequest, shown: &Mutex<Vec<ShownNotification>>) -> std::io::Result<()> {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = 0;
        match request.member.as_str() {
            "GetCapabilities" => self.reply(request, "as", |body| {
                let mut names = Vec::new();
                put_text(&mut names, "body");
                put_text(&mut names, "body-markup");
                put_u32(body, u32::try_from(names.len()).expect("short"));
                body.extend(names);
            }),
            "Notify" => {
                let app = take_text(&request.body, &mut at);
                let replaced = take_u32(&request.body, &mut at);
                take_text(&request.body, &mut at);
                let summary = take_text(&request.body, &mut at);
                let body = take_text(&request.body, &mut at);
                let id = if replaced > 0 { replaced } else { u32::try_from(shown.len()).expect("few") + 1 };
                shown.retain(|known| known.id != id);
                shown.push(ShownNotification { id, app, summary, body, is_open: true });
                self.reply(request, "u", |body| put_u32(body, id))
            }
            "CloseNotification" => {
                let id = take_u32(&request.body, &mut at);
                shown.iter_mut().filter(|known| known.id == id).for_each(|known| known.is_open = false);
                self.reply(request, "", |_| {})
            }
            _ => Ok(()),
        }
    }

    fn reply(&mut self, to: &BusRequest, signature: &str, put: impl FnOnce(&mut Vec<u8>)) -> std::io::Result<()> {
        let fields = [(6, 's', to.sender.as_str()), (8, 'g', signature)];
        self.send(METHOD_RETURN, Some(to.serial), &fields, put)
    }

    fn send(
        &mut self,
        kind: u8,
        reply_to: Option<u32>,
        fields: &[(u8, char, &str)],
        put: impl FnOnce(&mut Vec<u8>),
    ) -> std::io::Result<()> {
        self.serial += 1;
        let mut body = Vec::new();
        put(&mut body);
        let mut message = vec![b'l', kind, 0, 1];
        put_u32(&mut message, u32::try_from(body.len()).expect("short"));
        put_u32(&mut message, self.serial);
        put_u32(&mut message, 0);
        if let Some(serial) = reply_to {
            pad(&mut message, 8);
            message.extend([5, 1, b'u', 0]);
            put_u32(&mut message, serial);
        }
        for (code, kind, value) in fields.iter().filter(|(_, _, value)| !value.is_empty()) {
            pad(&mut message, 8);
            message.extend([*code, 1, u8::try_from(*kind).expect("ASCII"), 0]);
            match kind {
                'g' => {
                    message.push(u8::try_from(value.len()).expect("short"));
                    message.extend(value.bytes().chain([0]));
                }
                _ => put_text(&mut message, value),
            }
        }
        let length = u32::try_from(message.len() - 16).expect("short");
        message[12..16].copy_from_slice(&length.to_le_bytes());
        pad(&mut message, 8);
        message.extend(body);
        self.stream.write_all(&message)
    }

    fn receive(&mut self) -> std::io::Result<BusRequest> {
        let mut start = [0; 16];
        self.stream.read_exact(&mut start)?;
        let mut at = 4;
        let (body_length, serial) = (take_u32(&start, &mut at), take_u32(&start, &mut at));
        let fields_end = 16 + take_u32(&start, &mut at) as usize;
        let mut message = start.to_vec();
        message.resize(fields_end.next_multiple_of(8) + body_length as usize, 0);
        self.stream.read_exact(&mut message[16..])?;
        let body = message.split_off(fields_end.next_multiple_of(8));
        let mut request = BusRequest { kind: start[1], serial, sender: String::new(), member: String::new(), body };
        while at < fields_end {
            at = at.next_multiple_of(8);
            let (code, kind) = (message[at], message[at + 2]);
            at += 4;
            let text = match kind {
                b'u' => {
                    take_u32(&message, &mut at);
                    continue;
                }
                b'g' => {
                    at += 2 + usize::from(message[at]);
                    continue;
                }
                _ => take_text(&message, &mut at),
            };
            match code {
                3 => request.member = text,
                7 => request.sender = text,
                _ => {}
            }
        }
        Ok(request)
    }
}

fn pad(to: &mut Vec<u8>, size: usize) {
    to.resize(to.len().next_multiple_of(size), 0);
}

fn put_u32(to: &mut Vec<u8>, value: u32) {
    pad(to, 4);
    to.extend(value.to_le_bytes());
}

fn put_text(to: &mut Vec<u8>, text: &str) {
    put_u32(to, u32::try_from(text.len()).expect("short"));
    to.extend(text.bytes().chain([0]));
}

fn take_u32(from: &[u8], at: &mut usize) -> u32 {
    *at = at.next_multiple_of(4) + 4;
    u32::from_le_bytes(from[*at - 4..*at].try_into().expect("four bytes"))
}

fn take_text(from: &[u8], at: &mut usize) -> String {
    let length = take_u32(from, at) as usize;
    *at += length + 1;
    String::from_utf8_lossy(&from[*at - length - 1..*at - 1]).into_owned()
}
