//! The first line of an HTTP answer: more of it is of no use to a hook.

use std::io;

const SERVICE_UNAVAILABLE: u16 = 503;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Stored, or refused for good.
    Taken,
    NotStored,
}

impl Answer {
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
            Some(SERVICE_UNAVAILABLE) => Ok(Some(Self::NotStored)),
            Some(_) => Ok(Some(Self::Taken)),
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "an HTTP answer without a status")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_all_that_counts() {
        assert_eq!(Answer::parse(b"HTTP/1.1 202 Accepted\r\n").ok(), Some(Some(Answer::Taken)));
        assert_eq!(Answer::parse(b"HTTP/1.1 400").ok(), Some(Some(Answer::Taken)));
        assert_eq!(Answer::parse(b"HTTP/1.1 503 ").ok(), Some(Some(Answer::NotStored)));
        assert_eq!(Answer::parse(b"HTTP/1.1 20").ok(), Some(None));
        assert_eq!(Answer::parse(b"").ok(), Some(None));
        assert!(Answer::parse(b"SSH-2.0").is_err() && Answer::parse(b"HTTP/1.1 abc").is_err());
    }
}
