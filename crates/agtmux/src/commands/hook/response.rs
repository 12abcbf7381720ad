//! Parses the status line of an HTTP response. A hook needs no more of it.

use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookResponse {
    /// The daemon stored the event or rejected it permanently.
    Accepted,
    /// A temporary error of the daemon. If the event was stored after all, its dedupe key prevents a duplicate.
    NotStored,
}

impl HookResponse {
    /// `None` while the line is incomplete.
    pub(super) fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        const START: &[u8] = b"HTTP/1.";
        let known = bytes.len().min(START.len());
        if bytes[..known] != START[..known] {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not HTTP"));
        }
        let Some(status) = bytes.get(9..12) else { return Ok(None) };
        let status = std::str::from_utf8(status).ok().and_then(|status| status.parse::<u16>().ok());
        match status {
            Some(500..) => Ok(Some(Self::NotStored)),
            Some(_) => Ok(Some(Self::Accepted)),
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "an HTTP response without a status")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_status_code_is_used() {
        assert_eq!(HookResponse::parse(b"HTTP/1.1 202 Accepted\r\n").ok(), Some(Some(HookResponse::Accepted)));
        assert_eq!(HookResponse::parse(b"HTTP/1.1 400").ok(), Some(Some(HookResponse::Accepted)));
        for fault in ["500", "502", "503", "504", "599"] {
            let line = format!("HTTP/1.1 {fault} ");
            assert_eq!(HookResponse::parse(line.as_bytes()).ok(), Some(Some(HookResponse::NotStored)), "{line}");
        }
        assert_eq!(HookResponse::parse(b"HTTP/1.1 20").ok(), Some(None));
        assert_eq!(HookResponse::parse(b"").ok(), Some(None));
        assert!(HookResponse::parse(b"SSH-2.0").is_err() && HookResponse::parse(b"HTTP/1.1 abc").is_err());
    }
}
