//! The file into which the hooks write.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Past this the file is emptied once it has been read.
const LARGEST: u64 = 64 << 10;

/// Which hook fired, for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub hook: String,
    pub session: Option<u32>,
    pub window: Option<u32>,
    pub pane: Option<u32>,
}

/// Reads what came since the last time.
#[derive(Debug)]
pub struct Notes {
    file: File,
    read_up_to: u64,
}

impl Notes {
    /// Starts at the end: what was noted before nobody watched is history.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        file.set_len(0)?;
        Ok(Self { file, read_up_to: 0 })
    }

    pub fn fresh(&mut self) -> io::Result<Vec<Note>> {
        let size = self.file.metadata()?.len();
        if size < self.read_up_to {
            self.read_up_to = 0;
        }
        self.file.seek(SeekFrom::Start(self.read_up_to))?;
        let mut bytes = Vec::new();
        (&self.file).take(1 << 20).read_to_end(&mut bytes)?;
        // The last line may still be on its way.
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        self.read_up_to += whole as u64;
        if self.read_up_to > LARGEST && whole == bytes.len() {
            self.file.set_len(0)?;
            self.read_up_to = 0;
        }
        Ok(bytes[..whole].split(|b| *b == b'\n').filter_map(parse).collect())
    }
}

fn parse(line: &[u8]) -> Option<Note> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let hook = words.next().filter(|h| !h.is_empty() && h.len() < 64)?.to_owned();
    let mut id = |sigil: char| words.next().and_then(|w| w.strip_prefix(sigil)).and_then(|n| n.parse().ok());
    Some(Note { hook, session: id('$'), window: id('@'), pane: id('%') })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn each_note_is_read_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("notes");
        std::fs::write(&path, "alert-bell $0 @0 \n").expect("written");
        let mut notes = Notes::open(&path).expect("opened");
        assert_eq!(notes.fresh().expect("read"), [], "history does not count");
        let mut writer = OpenOptions::new().append(true).open(&path).expect("opened");
        write!(writer, "window-renamed  @3 \npane-exited").expect("written");
        let note = Note { hook: "window-renamed".into(), session: None, window: Some(3), pane: None };
        assert_eq!(notes.fresh().expect("read"), [note]);
        writeln!(writer, "  @4 %9").expect("written");
        let note = Note { hook: "pane-exited".into(), session: None, window: Some(4), pane: Some(9) };
        assert_eq!(notes.fresh().expect("read"), [note]);
    }

    #[test]
    fn the_file_does_not_grow_for_ever() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("notes");
        let mut notes = Notes::open(&path).expect("opened");
        let mut writer = OpenOptions::new().append(true).open(&path).expect("opened");
        for _ in 0..5000 {
            writer.write_all(b"alert-bell $0 @0 %1\n").expect("written");
        }
        assert_eq!(notes.fresh().expect("read").len(), 5000);
        assert_eq!(std::fs::metadata(&path).expect("there").len(), 0);
        writer.write_all(b"alert-bell $0 @0 %1\n").expect("written");
        assert_eq!(notes.fresh().expect("read").len(), 1);
    }
}
