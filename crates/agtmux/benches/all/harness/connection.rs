//! One persistent connection with a minimal HTTP client, which uses little CPU time.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

pub(crate) struct LoadConnection(BufReader<UnixStream>);

impl LoadConnection {
    pub(crate) fn open(socket: &Path) -> io::Result<Self> {
        UnixStream::connect(socket).map(BufReader::new).map(Self)
    }

    /// Posts an event and returns the status of the response.
    pub(crate) fn post(&mut self, body: &str) -> io::Result<u16> {
        let request =
            format!("POST /v1/events HTTP/1.1\r\nhost: agtmux\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        self.0.get_mut().write_all(request.as_bytes())?;
        let (first, _) = read_message(&mut self.0)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        first.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Reads the first line and the body of a request or response. None if the other end has closed the connection.
pub(crate) fn read_message(from: &mut impl BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut first = String::new();
    if from.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        from.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap_or(0),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some((first, body)))
}
