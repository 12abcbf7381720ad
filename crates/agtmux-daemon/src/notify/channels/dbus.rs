//! A small D-Bus client: it connects to the session bus and calls methods. Three calls with simple arguments are all
//! that notifications need, and a library for D-Bus would add about twenty crates.

use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// The most bytes of a message from the bus. Answers to our calls are much smaller.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// The most bytes of one line while the bus authenticates this process.
const MAX_LINE_BYTES: usize = 512;

const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;
const ERROR: u8 = 3;

/// The header fields of a message, by their numbers in the specification.
const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const ERROR_NAME: u8 = 4;
const REPLY_SERIAL: u8 = 5;
const DESTINATION: u8 = 6;
const SENDER: u8 = 7;
const SIGNATURE: u8 = 8;

pub(super) struct SessionBus {
    stream: UnixStream,
    serial: u32,
}

pub(super) struct BusCall<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    pub(super) arguments: BusArguments,
}

/// The answer to a call.
#[derive(Debug)]
pub(super) struct BusReply {
    /// The unique name of the program that answered.
    pub(super) sender: String,
    body: Marshalled,
}

/// Values in the encoding of D-Bus, with their types.
#[derive(Default)]
pub(super) struct BusArguments {
    signature: String,
    body: Encoder,
}

impl SessionBus {
    pub(super) async fn connect() -> Result<Self, String> {
        let stream = open().await.map_err(|error| format!("cannot connect to the session bus: {error}"))?;
        let mut bus = Self { stream, serial: 0 };
        bus.authenticate().await?;
        let bus_name = "org.freedesktop.DBus";
        let arguments = BusArguments::default();
        let hello = BusCall {
            destination: bus_name,
            path: "/org/freedesktop/DBus",
            interface: bus_name,
            member: "Hello",
            arguments,
        };
        bus.call(hello).await?;
        Ok(bus)
    }

    /// Identifies this process by its user. The kernel tells the bus the user, so there is no secret.
    async fn authenticate(&mut self) -> Result<(), String> {
        let uid = rustix::process::geteuid().as_raw().to_string();
        let hex: String = uid.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.write(format!("\0AUTH EXTERNAL {hex}\r\n").as_bytes()).await?;
        let answer = self.read_line().await?;
        if !answer.starts_with("OK ") {
            return Err("the session bus refuses this user".into());
        }
        self.write(b"BEGIN\r\n").await
    }

    async fn read_line(&mut self) -> Result<String, String> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            if line.len() >= MAX_LINE_BYTES {
                return Err("the session bus sends too long a line".into());
            }
            line.push(self.stream.read_u8().await.map_err(|error| closed(&error))?);
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// Calls a method and waits for its answer. Other messages are skipped.
    pub(super) async fn call(&mut self, call: BusCall<'_>) -> Result<BusReply, String> {
        self.serial += 1;
        let serial = self.serial;
        self.write(&call.encode(serial)).await?;
        loop {
            let message = self.read_message().await?;
            if message.reply_serial != Some(serial) {
                continue;
            }
            let sender = message.sender.unwrap_or_default();
            match message.kind {
                METHOD_RETURN => return Ok(BusReply { sender, body: message.body }),
                ERROR => return Err(format!("{}: {}", call.member, message.error_name.unwrap_or_default())),
                _ => {}
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).await.map_err(|error| closed(&error))
    }

    async fn read_message(&mut self) -> Result<BusMessage, String> {
        let mut start = [0; 16];
        self.stream.read_exact(&mut start).await.map_err(|error| closed(&error))?;
        let is_big_endian = start[0] == b'B';
        let mut fixed = Marshalled { bytes: start.to_vec(), at: 4, is_big_endian };
        let (body_length, _, fields_length) = (fixed.u32()?, fixed.u32()?, fixed.u32()?);
        let lengths = [body_length, fields_length].map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if lengths.iter().any(|length| *length > MAX_MESSAGE_BYTES) {
            return Err("the session bus sends too large a message".into());
        }
        let fields_end = 16 + lengths[1];
        let body_start = fields_end.next_multiple_of(8);
        let mut bytes = start.to_vec();
        bytes.resize(body_start + lengths[0], 0);
        self.stream.read_exact(&mut bytes[16..]).await.map_err(|error| closed(&error))?;
        let body = Marshalled { bytes: bytes.split_off(body_start), at: 0, is_big_endian };
        bytes.truncate(fields_end);
        let mut message = BusMessage { kind: start[1], body, sender: None, error_name: None, reply_serial: None };
        message.read_fields(Marshalled { bytes, at: 16, is_big_endian })?;
        Ok(message)
    }
}

fn closed(error: &std::io::Error) -> String {
    format!("the connection to the session bus broke: {error}")
}

/// Connects to the first address of the session bus that works.
async fn open() -> std::io::Result<UnixStream> {
    let addresses = std::env::var("DBUS_SESSION_BUS_ADDRESS").unwrap_or_default();
    let mut last = std::io::Error::other("there is none: DBUS_SESSION_BUS_ADDRESS and XDG_RUNTIME_DIR are not set");
    let default = || std::env::var_os("XDG_RUNTIME_DIR").map(|dir| BusAddress::Path(PathBuf::from(dir).join("bus")));
    for address in parse_addresses(&addresses).into_iter().chain(default()) {
        match address.connect().await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[derive(Debug, PartialEq, Eq)]
enum BusAddress {
    Path(PathBuf),
    Abstract(Vec<u8>),
}

impl BusAddress {
    async fn connect(&self) -> std::io::Result<UnixStream> {
        match self {
            Self::Path(path) => UnixStream::connect(path).await,
            #[cfg(target_os = "linux")]
            Self::Abstract(name) => {
                use std::os::linux::net::SocketAddrExt;
                let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
                let stream = std::os::unix::net::UnixStream::connect_addr(&address)?;
                stream.set_nonblocking(true)?;
                UnixStream::from_std(stream)
            }
            #[cfg(not(target_os = "linux"))]
            Self::Abstract(_) => Err(std::io::Error::from(std::io::ErrorKind::Unsupported)),
        }
    }
}

/// Parses addresses such as `unix:path=/run/user/1000/bus,guid=1f;unix:abstract=x`. Other transports are skipped.
fn parse_addresses(text: &str) -> Vec<BusAddress> {
    let keys = text.split(';').filter_map(|address| address.strip_prefix("unix:")).flat_map(|keys| keys.split(','));
    let parse = |key: &str| match key.split_once('=')? {
        ("path", path) => {
            use std::os::unix::ffi::OsStringExt;
            Some(BusAddress::Path(std::ffi::OsString::from_vec(unescape(path)).into()))
        }
        ("abstract", name) => Some(BusAddress::Abstract(unescape(name))),
        _ => None,
    };
    keys.filter_map(parse).collect()
}

/// Decodes `%41` in addresses.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%').then(|| std::str::from_utf8(tail.get(..2)?).ok()).flatten();
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

/// A received message.
struct BusMessage {
    kind: u8,
    body: Marshalled,
    sender: Option<String>,
    error_name: Option<String>,
    reply_serial: Option<u32>,
}

impl BusMessage {
    fn read_fields(&mut self, mut fields: Marshalled) -> Result<(), String> {
        while fields.at < fields.bytes.len() {
            fields.align(8);
            let code = fields.u8()?;
            match (code, fields.signature()?.as_str()) {
                (SENDER, "s") => self.sender = Some(fields.string()?),
                (ERROR_NAME, "s") => self.error_name = Some(fields.string()?),
                (REPLY_SERIAL, "u") => self.reply_serial = Some(fields.u32()?),
                (_, "s" | "o") => drop(fields.string()?),
                (_, "g") => drop(fields.signature()?),
                (_, "u") => drop(fields.u32()?),
                (_, other) => return Err(format!("the session bus sends a header of the unknown type '{other}'")),
            }
        }
        Ok(())
    }
}

/// Received values.
#[derive(Debug)]
struct Marshalled {
    bytes: Vec<u8>,
    at: usize,
    is_big_endian: bool,
}

impl Marshalled {
    fn take(&mut self, count: usize) -> Result<&[u8], String> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or("the session bus sends an incomplete message")?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn u8(&mut self) -> Result<u8, String> {
        self.take(1).map(|taken| taken[0])
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.align(4);
        let is_big_endian = self.is_big_endian;
        let taken = self.take(4)?;
        let bytes = [taken[0], taken[1], taken[2], taken[3]];
        Ok(if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn string(&mut self) -> Result<String, String> {
        let length = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.take(1)?;
        Ok(text)
    }

    fn signature(&mut self) -> Result<String, String> {
        let length = usize::from(self.u8()?);
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.take(1)?;
        Ok(text)
    }
}

impl BusReply {
    pub(super) fn first_u32(mut self) -> Result<u32, String> {
        self.body.u32()
    }

    /// The first value, which must be an array of strings.
    pub(super) fn strings(mut self) -> Result<Vec<String>, String> {
        let length = usize::try_from(self.body.u32()?).unwrap_or(usize::MAX);
        let end = self.body.at.saturating_add(length);
        let mut strings = Vec::new();
        while self.body.at < end {
            strings.push(self.body.string()?);
        }
        Ok(strings)
    }
}

/// Values to send, in little-endian order.
#[derive(Default)]
struct Encoder(Vec<u8>);

impl Encoder {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn u32(&mut self, value: u32) {
        self.align(4);
        self.0.extend(value.to_le_bytes());
    }

    fn string(&mut self, text: &str) {
        // D-Bus does not allow NUL in strings.
        let text = text.replace('\0', "");
        self.u32(u32::try_from(text.len()).unwrap_or_default());
        self.0.extend(text.bytes().chain([0]));
    }

    fn signature(&mut self, text: &str) {
        self.0.push(u8::try_from(text.len()).unwrap_or_default());
        self.0.extend(text.bytes().chain([0]));
    }

    fn field(&mut self, code: u8, kind: &str, value: &str) {
        self.align(8);
        self.0.push(code);
        self.signature(kind);
        match kind {
            "g" => self.signature(value),
            _ => self.string(value),
        }
    }
}

impl BusCall<'_> {
    fn encode(&self, serial: u32) -> Vec<u8> {
        let body = &self.arguments.body.0;
        let mut message = Encoder(vec![b'l', METHOD_CALL, 0, 1]);
        message.u32(u32::try_from(body.len()).unwrap_or_default());
        message.u32(serial);
        message.u32(0);
        message.field(PATH, "o", self.path);
        message.field(INTERFACE, "s", self.interface);
        message.field(MEMBER, "s", self.member);
        message.field(DESTINATION, "s", self.destination);
        if !self.arguments.signature.is_empty() {
            message.field(SIGNATURE, "g", &self.arguments.signature);
        }
        let fields_length = u32::try_from(message.0.len() - 16).unwrap_or_default();
        message.0[12..16].copy_from_slice(&fields_length.to_le_bytes());
        message.align(8);
        message.0.extend(body);
        message.0
    }
}

impl BusArguments {
    pub(super) fn string(mut self, text: &str) -> Self {
        self.signature.push('s');
        self.body.string(text);
        self
    }

    pub(super) fn u32(mut self, value: u32) -> Self {
        self.signature.push('u');
        self.body.u32(value);
        self
    }

    pub(super) fn i32(mut self, value: i32) -> Self {
        self.signature.push('i');
        self.body.u32(value.cast_unsigned());
        self
    }

    /// An empty array of strings.
    pub(super) fn no_strings(mut self) -> Self {
        self.signature.push_str("as");
        self.body.u32(0);
        self
    }

    /// An empty map from strings to any values.
    pub(super) fn no_hints(mut self) -> Self {
        self.signature.push_str("a{sv}");
        self.body.u32(0);
        self.body.align(8);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_other_transports_are_skipped() {
        let text = "tcp:host=x,port=1;unix:path=/run/user/1000/bus,guid=1f;unix:abstract=/tmp/a%2cb;unix:dir=/x";
        let expected = [BusAddress::Path("/run/user/1000/bus".into()), BusAddress::Abstract(b"/tmp/a,b".to_vec())];
        assert_eq!(parse_addresses(text), expected);
        assert_eq!(parse_addresses(""), []);
    }

    #[test]
    fn values_are_aligned() {
        let arguments = BusArguments::default().string("ab").u32(7).no_strings().no_hints().i32(-1);
        assert_eq!(arguments.signature, "suasa{sv}i");
        let expected: &[u8] = b"\x02\0\0\0ab\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff";
        assert_eq!(arguments.body.0, expected);
    }

    #[test]
    fn an_incomplete_message_is_an_error() {
        let mut body = Marshalled { bytes: b"\xff\0\0\0ab".to_vec(), at: 0, is_big_endian: false };
        assert!(body.string().is_err());
        let body = Marshalled { bytes: b"\x09\0\0\0\x01\0\0\0a\0".to_vec(), at: 0, is_big_endian: false };
        assert!(BusReply { sender: String::new(), body }.strings().is_err());
        let body = Marshalled { bytes: b"\0\0\0\x06\0\0\0\x01a\0".to_vec(), at: 0, is_big_endian: true };
        assert_eq!(BusReply { sender: String::new(), body }.strings(), Ok(vec!["a".into()]));
    }
}
