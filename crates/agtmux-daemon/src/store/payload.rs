//! Event payloads as they are stored: compressed. Rows that an older agtmux wrote have uncompressed text in another
//! column.

use std::cell::RefCell;
use std::io;

use rusqlite::Row;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::get_frame_content_size;

/// Typical payloads. A payload is short and repeats known keys, so it compresses well only with a dictionary. Stored
/// payloads need exactly these bytes: never edit the file. A better dictionary needs a new format number.
const DICTIONARY: &[u8] = include_bytes!("payload_dictionary.jsonl");

/// The first byte of a stored payload. It says how the rest of the payload is encoded.
const ZSTD_WITH_DICTIONARY: u8 = 1;

const LEVEL: i32 = 3;

/// The largest payload. No payload exceeds this size, because the size of a request is limited.
const MAX_BYTES: u64 = 64 << 20;

thread_local! {
    /// The writer thread compresses all payloads, so it keeps its compressor.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

pub(super) fn compress(text: &str) -> rusqlite::Result<Vec<u8>> {
    COMPRESSOR
        .with_borrow_mut(|cached| {
            let mut compressor = match cached.take() {
                Some(compressor) => compressor,
                None => Compressor::with_dictionary(LEVEL, DICTIONARY)?,
            };
            let mut stored = vec![ZSTD_WITH_DICTIONARY];
            stored.extend(compressor.compress(text.as_bytes())?);
            *cached = Some(compressor);
            Ok(stored)
        })
        .map_err(|error: io::Error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// The text of a payload, for programs that read the database.
pub fn decompress(stored: &[u8]) -> io::Result<String> {
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let Some((&ZSTD_WITH_DICTIONARY, compressed)) = stored.split_first() else {
        return Err(invalid("a payload has an unknown format"));
    };
    let size = get_frame_content_size(compressed).ok().flatten().filter(|size| *size <= MAX_BYTES);
    let size =
        size.and_then(|size| usize::try_from(size).ok()).ok_or_else(|| invalid("a payload has no valid size"))?;
    let bytes = Decompressor::with_dictionary(DICTIONARY)?.decompress(compressed, size)?;
    String::from_utf8(bytes).map_err(|_| invalid("a payload is not text"))
}

/// The payload of a row. It is in the column `compressed`, or in the next column if an older version wrote the row.
pub(super) fn column(row: &Row<'_>, compressed: usize) -> rusqlite::Result<Option<String>> {
    let failed = |error: io::Error| {
        rusqlite::Error::FromSqlConversionFailure(compressed, rusqlite::types::Type::Blob, Box::new(error))
    };
    match row.get::<_, Option<Vec<u8>>>(compressed)? {
        Some(stored) => decompress(&stored).map(Some).map_err(failed),
        None => row.get(compressed + 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A payload that an earlier build stored.
    const RECORDED: &str = "0128b52ffd204e1d0100607b7265636f72646564227d7d0600e4850588e20c708e2701315180619c0e04097105";

    proptest! {
        #[test]
        fn every_text_is_read_back_unchanged(text in any::<String>()) {
            let stored = compress(&text).expect("compressed");
            prop_assert_eq!(decompress(&stored).expect("readable"), text);
        }

        #[test]
        fn a_damaged_payload_is_an_error_or_a_bounded_text(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for stored in [bytes.clone(), [&[ZSTD_WITH_DICTIONARY], &bytes[..]].concat()] {
                prop_assert!(decompress(&stored).map_or(0, |text| text.len() as u64) <= MAX_BYTES);
            }
        }

        #[test]
        fn a_payload_that_was_cut_is_an_error(text in "[a-z]{40,400}", cut in 1..30_usize) {
            let stored = compress(&text).expect("compressed");
            prop_assert!(decompress(&stored[..stored.len().saturating_sub(cut)]).is_err());
        }
    }

    #[test]
    fn payloads_of_earlier_builds_stay_readable() {
        let byte = |at: usize| u8::from_str_radix(&RECORDED[at..at + 2], 16).expect("a byte");
        let stored: Vec<u8> = (0..RECORDED.len()).step_by(2).map(byte).collect();
        let text = decompress(&stored).expect("readable");
        assert_eq!(text, r#"{"event_type":"Stop","payload":{"hook_event_name":"Stop","prompt":"recorded"}}"#);
    }

    #[test]
    fn a_typical_payload_shrinks_to_a_third() {
        let hook = include_str!("../../../agtmux-agents/evidence/hooks/claude/PermissionRequest.json");
        let payload: serde_json::Value = serde_json::from_str(hook).expect("JSON");
        let body = serde_json::json!({
            "cwd": "/srv/project/proj", "dedupe_key": "b0c2a7d8e9f00112233445566778899a", "event_type": "PermissionRequest",
            "event_time": "2026-11-15T09:00:00.123456789Z", "pane": "%7", "payload": payload, "pids": [4711, 4712, 815],
            "pid_starts": [991, 990, 989], "socket": "/tmp/tmux-1000/default", "source": "hook", "runtime_id": null,
        })
        .to_string();
        let stored = compress(&body).expect("compressed").len();
        assert!(stored * 3 <= body.len(), "{} bytes became {stored}", body.len());
    }
}
