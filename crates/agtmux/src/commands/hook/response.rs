//! The first line of an HTTP answer: more of it is of no use to a hook.

use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookResponse {
    /// Stored, or refused for good.
    Accepted,
    /// A fault that is not the event's, and may pass. If it was stored after all, its key tells.
    NotStored,
}

impl HookResponse {
    /// None while the line is not complete.
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
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "an HTTP answer without a status")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_all_that_counts() {
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
