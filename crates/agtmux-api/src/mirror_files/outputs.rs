//! The outputs of commands. The beginning of each output is in one file, and its end in a log of bounded size.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::MirrorFiles;
use crate::files::open_no_follow;
use crate::task_files::{BoundedLog, create_fresh, older_log, read_log, write_atomically};

/// The maximum number of bytes that are kept from the beginning and from the end of an output.
const MAX_HEAD_BYTES: u64 = 32 << 20;
const MAX_TAIL_BYTES: u64 = 32 << 20;
/// The maximum number of outputs that are kept, and their maximum total size.
const MAX_OUTPUTS: usize = 256;
const MAX_TOTAL_BYTES: u64 = 256 << 20;

/// The output of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorOutput {
    head: PathBuf,
}

impl MirrorFiles {
    /// The output of the command with this number.
    pub fn output(&self, number: u64) -> MirrorOutput {
        MirrorOutput { head: self.outputs_dir().join(number.to_string()) }
    }
}

impl MirrorOutput {
    /// The file with the output, or with the beginning of a long output.
    pub fn path(&self) -> &std::path::Path {
        &self.head
    }

    fn tail(&self) -> PathBuf {
        self.head.with_extension("log")
    }

    /// The size of the file with the beginning of the output.
    pub fn head_bytes(&self) -> u64 {
        fs::metadata(&self.head).map_or(0, |data| data.len())
    }

    /// Reads at most `max_bytes` bytes from the file with the beginning of the output, starting at `from`.
    pub fn read_head(&self, from: u64, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match open_no_follow(&self.head) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(bytes),
            file => {
                let mut file = file?;
                file.seek(SeekFrom::Start(from))?;
                file.take(max_bytes).read_to_end(&mut bytes)?;
            }
        }
        Ok(bytes)
    }

    /// The end of a long output, as far as it was kept. Empty if the file with the beginning contains the whole output.
    pub fn read_tail(&self) -> io::Result<Vec<u8>> {
        read_log(&self.tail(), MAX_TAIL_BYTES)
    }

    /// The size of the whole output, including parts that were not kept.
    pub fn total_bytes(&self) -> u64 {
        let written = fs::read_to_string(self.size_file()).ok().and_then(|size| size.trim().parse().ok());
        written.unwrap_or_else(|| self.head_bytes())
    }

    /// The file that contains the size of a long output as a number.
    fn size_file(&self) -> PathBuf {
        self.head.with_extension("size")
    }

    /// Whether the output was too long for the file with its beginning.
    pub fn is_long(&self) -> bool {
        self.tail().exists()
    }

    fn remove(&self) {
        for path in [older_log(&self.tail()), self.tail(), self.size_file(), self.head.clone()] {
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes the outputs of commands. If there are too many outputs, removes the oldest ones.
#[derive(Debug)]
pub struct MirrorOutputWriter {
    files: MirrorFiles,
    /// The numbers of the finished commands and the sizes of their outputs, oldest first.
    kept: VecDeque<(u64, u64)>,
    current: Option<CurrentOutput>,
}

#[derive(Debug)]
struct CurrentOutput {
    number: u64,
    head: File,
    tail: Option<BoundedLog>,
    bytes: u64,
}

impl MirrorOutputWriter {
    pub fn new(files: MirrorFiles) -> Self {
        let names = fs::read_dir(files.outputs_dir()).into_iter().flatten().flatten();
        let mut numbers: Vec<u64> = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        let kept = numbers.into_iter().map(|number| (number, files.output(number).head_bytes())).collect();
        Self { files, kept, current: None }
    }

    pub fn start(&mut self, number: u64) -> io::Result<()> {
        self.finish();
        self.remove_oldest();
        let head = create_fresh(self.files.output(number).path())?;
        self.current = Some(CurrentOutput { number, head, tail: None, bytes: 0 });
        Ok(())
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let room = usize::try_from(MAX_HEAD_BYTES.saturating_sub(current.bytes)).unwrap_or(usize::MAX);
        let (head, tail) = bytes.split_at(bytes.len().min(room));
        current.head.write_all(head)?;
        current.bytes += bytes.len() as u64;
        if tail.is_empty() {
            return Ok(());
        }
        if current.tail.is_none() {
            let path = self.files.output(current.number).tail();
            current.tail = Some(BoundedLog::create(&path, MAX_TAIL_BYTES)?);
        }
        current.tail.as_mut().map_or(Ok(()), |log| log.append(tail))
    }

    pub fn finish(&mut self) {
        if let Some(CurrentOutput { number, bytes, tail, .. }) = self.current.take() {
            if tail.is_some() {
                // If this write fails, only the reported size of the output is wrong.
                let _ = write_atomically(&self.files.output(number).size_file(), bytes.to_string().as_bytes());
            }
            self.kept.push_back((number, bytes.min(MAX_HEAD_BYTES + MAX_TAIL_BYTES)));
        }
    }

    fn remove_oldest(&mut self) {
        let mut total: u64 = self.kept.iter().map(|(_, bytes)| bytes).sum();
        while self.kept.len() >= MAX_OUTPUTS || total > MAX_TOTAL_BYTES {
            let Some((number, bytes)) = self.kept.pop_front() else { return };
            self.files.output(number).remove();
            total -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(name: &str) -> MirrorFiles {
        let dir = std::env::temp_dir().join(format!("agtmux-mirror-{name}-{}", std::process::id()));
        let files = MirrorFiles::at(&dir);
        files.create().expect("created");
        files
    }

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let files = files("long");
        let mut writer = MirrorOutputWriter::new(files.clone());
        writer.start(1).expect("started");
        let part = vec![b'a'; 1 << 20];
        for _ in 0..100 {
            writer.write(&part).expect("written");
        }
        writer.write(b"end").expect("written");
        writer.finish();
        let output = files.output(1);
        assert_eq!(output.total_bytes(), (100 << 20) + 3);
        assert!(output.is_long() && output.head_bytes() == MAX_HEAD_BYTES);
        let tail = output.read_tail().expect("read");
        assert!(tail.ends_with(b"aend") && tail.len() as u64 <= MAX_TAIL_BYTES, "{}", tail.len());
        assert_eq!(output.read_head(MAX_HEAD_BYTES - 2, 9).expect("read"), b"aa");
        files.remove();
    }

    #[test]
    fn old_outputs_are_removed() {
        let files = files("old");
        let mut writer = MirrorOutputWriter::new(files.clone());
        for number in 1..=MAX_OUTPUTS as u64 + 5 {
            writer.start(number).expect("started");
            writer.write(b"x").expect("written");
        }
        assert_eq!(files.output(1).head_bytes(), 0);
        assert_eq!(files.output(MAX_OUTPUTS as u64).head_bytes(), 1);
        assert_eq!(MirrorOutputWriter::new(files.clone()).kept.len(), MAX_OUTPUTS);
        files.remove();
    }
}
