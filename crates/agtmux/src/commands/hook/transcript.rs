//! Adds the last record of the agent's transcript to the payload of a hook.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use agtmux_agents::{add_last_record, transcript_path};
use agtmux_api::files;
use serde_json::Value;

const TAIL_BYTES: u64 = 64 * 1024;

pub(super) fn complete(agent: &str, event: &str, payload: &mut Value) {
    let path = transcript_path(agent, event, payload).map(Path::new);
    if let Some(tail) = path.and_then(tail) {
        add_last_record(payload, &tail);
    }
}

/// Returns the complete lines in the last `TAIL_BYTES` bytes of the file. Ignores links, pipes and files of other
/// users.
fn tail(path: &Path) -> Option<Vec<u8>> {
    let mut file = files::open_no_follow(path).ok()?;
    let start = file.metadata().ok()?.len().saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    // Unless the whole file was read, the first line is incomplete.
    let whole = if start == 0 { 0 } else { tail.iter().position(|byte| *byte == b'\n')? + 1 };
    Some(tail.split_off(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_at_the_end_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("chat.jsonl");
        std::fs::write(&file, format!("{}\nlast\n", "u".repeat(100_000))).expect("written");
        assert_eq!(tail(&file).as_deref(), Some(&b"last\n"[..]));
        std::fs::write(&file, "first\nlast").expect("written");
        assert_eq!(tail(&file).as_deref(), Some(&b"first\nlast"[..]));
    }

    #[test]
    fn only_regular_files_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let (target, link) = (dir.path().join("t"), dir.path().join("l"));
        std::fs::write(&target, "x").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        assert!(tail(&target).is_some() && tail(&link).is_none() && tail(dir.path()).is_none());
    }
}
