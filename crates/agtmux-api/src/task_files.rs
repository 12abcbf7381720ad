//! The files of a running task. Three processes share them: the daemon, the supervisor that runs the program in the
//! pane, and the reader of the program's output. After a restart, the daemon learns from these files what happened
//! while it was stopped.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{open_no_follow, read_plain_no_follow};

/// The specification of a run of a task. It is written before the run starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    pub run_id: String,
    /// The tmux server's socket.
    pub socket: String,
    pub session: String,
    pub task: String,
    /// The shell command that the task runs.
    pub command: String,
    pub cwd: String,
    /// The maximum size of the output that is kept.
    pub log_bytes: u64,
    /// The type of the agent that started the task. None if no agent started it. Actions of the task count as actions
    /// of that agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The task could not be traced to an agent, but an agent may have started it.
    #[serde(default)]
    pub agent_is_assumed: bool,
}

/// How a run ended. The run's supervisor writes this record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Whether the process lost its terminal (SIGHUP) before it ended.
    pub hung_up: bool,
    /// Set if the supervisor could not write the end mark. Readers of the output then must not wait for the mark.
    #[serde(default)]
    pub unmarked: bool,
}

/// What the reader of a run's output has found so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct OutputStatus {
    pub bells: u64,
    pub bytes: u64,
    /// Whether the output has paused at a line that may be a prompt.
    pub quiet: bool,
    /// Whether the reader has read all output up to the program's end.
    pub ended: bool,
    /// The number of answered prompts. A line counts as an answered prompt if the output paused in this line, the line
    /// looked like a prompt, and the line was completed later.
    pub answers: u64,
}

impl OutputStatus {
    /// Formats the status as a line of fixed length, because each status overwrites the one before it in the file.
    fn to_line(self) -> String {
        let Self { bells, bytes, quiet, ended, answers } = self;
        let line = format!("{bells:020} {bytes:020} {} {} {answers:020} ", u8::from(quiet), u8::from(ended));
        let sum = checksum(line.as_bytes());
        format!("{line}{sum:010}\n")
    }

    /// Parses a status line. Returns `None` if the line was written only partly.
    fn parse_line(line: &str) -> Option<Self> {
        let (line, sum) = line.trim_end_matches('\n').rsplit_once(' ')?;
        let line = format!("{line} ");
        if sum.parse::<u32>().ok()? != checksum(line.as_bytes()) {
            return None;
        }
        let mut words = line.split_whitespace();
        let (bells, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let mut flag = || words.next().map(|word| word == "1");
        let (quiet, ended) = (flag()?, flag()?);
        // Readers started by older versions do not write this field.
        let answers = words.next().map_or(Some(0), |word| word.parse().ok())?;
        Some(Self { bells, bytes, quiet, ended, answers })
    }
}

/// The status of the process that reads a run's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderStatus {
    NotStarted,
    Active,
    /// The reader reached the end of the output, or no longer exists.
    Finished,
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// The files of one run, next to its specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFiles {
    spec: PathBuf,
}

/// The maximum size of a task file that agtmux reads. Valid files are far smaller.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl RunFiles {
    /// The files of a run in the directory that the daemon watches.
    pub fn in_dir(dir: &Path, run_id: &str) -> Self {
        Self { spec: dir.join(format!("{run_id}.run")) }
    }

    pub fn at(spec: &Path) -> Self {
        Self { spec: spec.to_owned() }
    }

    pub fn spec(&self) -> &Path {
        &self.spec
    }

    pub fn exit(&self) -> PathBuf {
        self.spec.with_extension("exit")
    }

    pub fn output(&self) -> PathBuf {
        self.spec.with_extension("out")
    }

    /// The log file. It is not in the directory that the daemon watches, so that writes to the log do not wake the
    /// daemon.
    pub fn log(&self) -> PathBuf {
        let name = self.spec.with_extension("log");
        let name = name.file_name().map(ToOwned::to_owned).unwrap_or_default();
        self.spec.with_file_name("logs").join(name)
    }

    pub fn write_spec(&self, spec: &RunSpec) -> io::Result<()> {
        write_atomically(&self.spec, &serde_json::to_vec(spec)?)
    }

    pub fn read_spec(&self) -> io::Result<RunSpec> {
        self.read_spec_from(&self.spec)
    }

    /// Reads a specification. Fails if its run id does not match the file name.
    fn read_spec_from(&self, path: &Path) -> io::Result<RunSpec> {
        let spec: RunSpec = serde_json::from_str(&read_plain_no_follow(path, MAX_FILE_BYTES)?)?;
        match self.spec.file_stem().is_some_and(|name| name == spec.run_id.as_str()) {
            true => Ok(spec),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "belongs to another run")),
        }
    }

    /// Stores a copy of the specification next to the log, so that the task can be restarted. The copy is kept as long
    /// as the log.
    pub fn keep_spec(&self, spec: &RunSpec) -> io::Result<()> {
        write_atomically(&self.kept_spec(), &serde_json::to_vec(spec)?)
    }

    pub fn read_kept_spec(&self) -> io::Result<RunSpec> {
        self.read_spec_from(&self.kept_spec())
    }

    fn kept_spec(&self) -> PathBuf {
        self.log().with_extension("spec")
    }

    pub fn write_exit(&self, exit: &ExitRecord) -> io::Result<()> {
        write_atomically(&self.exit(), &serde_json::to_vec(exit)?)
    }

    pub fn read_exit(&self) -> Option<ExitRecord> {
        serde_json::from_str(&read_plain_no_follow(&self.exit(), MAX_FILE_BYTES).ok()?).ok()
    }

    pub fn read_output(&self) -> Option<OutputStatus> {
        OutputStatus::parse_line(&read_plain_no_follow(&self.output(), MAX_FILE_BYTES).ok()?)
    }

    /// Determines the status of the reader from the lock on the status file. The reader holds this lock until the
    /// reader ends.
    pub fn reader_status(&self) -> ReaderStatus {
        if self.read_output().is_some_and(|status| status.ended) {
            return ReaderStatus::Finished;
        }
        match open_no_follow(&self.output()).map(|file| file.try_lock_shared()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => ReaderStatus::NotStarted,
            Ok(Err(_)) => ReaderStatus::Active,
            // No reader holds the lock, or the path is not a status file. In both cases no reader will continue.
            Ok(Ok(())) | Err(_) => ReaderStatus::Finished,
        }
    }

    /// The size of the newer one of the run's two log files. The size changes while the reader writes output.
    pub fn log_size(&self) -> u64 {
        fs::metadata(self.log()).map_or(0, |data| data.len())
    }

    /// Removes the files of the run, except the log and the specification that is kept next to the log.
    pub fn remove(&self) {
        for path in [&self.spec, &self.exit(), &self.output()] {
            let _ = fs::remove_file(path);
        }
    }

    pub fn remove_log(&self) {
        let log = self.log();
        let _ = fs::remove_file(self.kept_spec());
        let _ = fs::remove_file(older_log(&log));
        let _ = fs::remove_file(log);
    }
}

/// The file with the status of a run's output. Each new status overwrites the old one in place.
#[derive(Debug)]
pub struct OutputStatusFile(File);

impl OutputStatusFile {
    /// Creates the file, and locks it before it appears at `path`. The file stays locked until the process that writes
    /// it ends.
    pub fn create(path: &Path) -> io::Result<Self> {
        let draft = draft_path(path);
        let file = create_fresh(&draft)?;
        file.lock()?;
        let status = Self(file);
        status.write(OutputStatus::default())?;
        fs::rename(&draft, path)?;
        Ok(status)
    }

    pub fn write(&self, status: OutputStatus) -> io::Result<()> {
        self.0.write_all_at(status.to_line().as_bytes(), 0)
    }
}

/// A log with bounded size, in two files. When the newer file is full, it takes the place of the older file, and a new
/// file is created.
#[derive(Debug)]
pub struct BoundedLog {
    path: PathBuf,
    file: File,
    size: u64,
    max_part_bytes: u64,
}

impl BoundedLog {
    pub fn create(path: &Path, max_bytes: u64) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: create_fresh(path)?, size: 0, max_part_bytes: (max_bytes / 2).max(1) })
    }

    pub fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.size >= self.max_part_bytes {
                fs::rename(&self.path, older_log(&self.path))?;
                (self.file, self.size) = (create_fresh(&self.path)?, 0);
            }
            let room = usize::try_from(self.max_part_bytes - self.size).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.file.write_all(now)?;
            self.size += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }
}

/// Reads at most `max_bytes` bytes from the end of the log, oldest first.
pub fn read_log(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let newer = read_tail(path, max_bytes)?;
    let mut bytes = read_tail(&older_log(path), max_bytes - newer.len() as u64)?;
    bytes.extend(newer);
    Ok(bytes)
}

/// Reads at most `max_bytes` bytes from the end of a file. A missing file counts as empty.
fn read_tail(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = match open_no_follow(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let size = file.metadata()?.len();
    let take = size.min(max_bytes);
    file.seek(SeekFrom::Start(size - take))?;
    let mut bytes = Vec::new();
    file.take(take).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The path of the file with the older part of a log.
pub fn older_log(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

/// Creates a new file. First removes any file at this path, so that a link or FIFO at this path is never opened.
pub(crate) fn create_fresh(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path),
    }
}

/// Replaces a file that only the current user can read.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = draft_path(path);
    let mut file = create_fresh(&draft)?;
    file.write_all(bytes)?;
    drop(file);
    fs::rename(&draft, path)
}

fn draft_path(path: &Path) -> PathBuf {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".draft");
    draft.into()
}

/// The end mark, which the supervisor writes to the terminal after the program's last output. The mark tells the reader
/// that the output is complete. tmux does not display the mark.
pub fn end_marker(run_id: &str) -> Vec<u8> {
    format!("\x1b]7502;agtmux-end;{run_id}\x1b\\").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_status_line_is_rejected() {
        let status = OutputStatus { bells: 12, bytes: 9_000_000, quiet: true, ended: false, answers: 4 };
        let line = status.to_line();
        assert_eq!(line.len(), OutputStatus { bells: u64::MAX, ..OutputStatus::default() }.to_line().len());
        assert_eq!(OutputStatus::parse_line(&line), Some(status));
        let torn = format!("{}{}", &line[..20], &OutputStatus { bells: 13, ..status }.to_line()[20..]);
        assert_eq!(OutputStatus::parse_line(&torn), None);
        assert_eq!(OutputStatus::parse_line(""), None);
        let old = format!("{:020} {:020} 1 0 ", 12, 9_000_000);
        let old = format!("{old}{:010}\n", checksum(old.as_bytes()));
        assert_eq!(
            OutputStatus::parse_line(&old),
            Some(OutputStatus { answers: 0, ..status }),
            "written by an older reader"
        );
    }

    #[test]
    fn links_and_fifos_at_a_file_path_are_neither_written_nor_waited_for() {
        let dir = std::env::temp_dir().join(format!("agtmux-taskplace-{}", std::process::id()));
        fs::create_dir_all(dir.join("logs")).expect("made");
        let (files, other) = (RunFiles::in_dir(&dir, "r1"), dir.join("other"));
        fs::write(&other, "kept").expect("written");
        let fifo = |path: &Path| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).expect("a fifo");
        std::os::unix::fs::symlink(&other, dir.join("r1.exit.draft")).expect("linked");
        fifo(&files.output());
        assert_eq!(
            (files.read_output(), files.reader_status()),
            (None, ReaderStatus::Finished),
            "a FIFO is not waited for"
        );
        fs::remove_file(files.output()).expect("removed");
        std::os::unix::fs::symlink(&other, files.output()).expect("linked");
        fifo(&files.log());
        assert!(read_log(&files.log(), 10).is_err(), "a FIFO is rejected");
        let exit = ExitRecord { code: Some(3), signal: None, hung_up: false, unmarked: false };
        files.write_exit(&exit).expect("written");
        assert_eq!(files.read_exit(), Some(exit));
        OutputStatusFile::create(&files.output())
            .and_then(|file| file.write(OutputStatus::default()))
            .expect("written");
        assert_eq!(files.read_output(), Some(OutputStatus::default()));
        BoundedLog::create(&files.log(), 100).and_then(|mut log| log.append(b"out")).expect("written");
        assert_eq!(read_log(&files.log(), 10).expect("read"), b"out");
        assert_eq!(fs::read_to_string(&other).expect("there"), "kept");
        fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn a_specification_of_another_run_is_rejected() {
        let dir = std::env::temp_dir().join(format!("agtmux-taskspec-{}", std::process::id()));
        fs::create_dir_all(dir.join("logs")).expect("made");
        let text = |name: &str| name.to_owned();
        let spec = RunSpec {
            run_id: text("r1"),
            socket: text("/s"),
            session: text("pi-x-1"),
            task: text("t"),
            command: text("make"),
            cwd: text("/p"),
            log_bytes: 1,
            agent: None,
            agent_is_assumed: false,
        };
        RunFiles::in_dir(&dir, "r1").write_spec(&spec).expect("written");
        assert_eq!(RunFiles::in_dir(&dir, "r1").read_spec().expect("read"), spec);
        RunFiles::in_dir(&dir, "r2").write_spec(&spec).expect("written");
        assert!(RunFiles::in_dir(&dir, "r2").read_spec().is_err());
        RunFiles::in_dir(&dir, "r2").keep_spec(&spec).expect("written");
        assert!(RunFiles::in_dir(&dir, "r2").read_kept_spec().is_err());
        fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn the_end_of_a_reader_is_detected() {
        let dir = std::env::temp_dir().join(format!("agtmux-reading-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("made");
        let files = RunFiles::in_dir(&dir, "run");
        assert_eq!(files.reader_status(), ReaderStatus::NotStarted);
        let status = OutputStatusFile::create(&files.output()).expect("made");
        assert_eq!((files.reader_status(), files.read_output()), (ReaderStatus::Active, Some(OutputStatus::default())));
        status.write(OutputStatus { bytes: 5, ..OutputStatus::default() }).expect("written");
        assert_eq!(files.reader_status(), ReaderStatus::Active);
        drop(status);
        assert_eq!(files.reader_status(), ReaderStatus::Finished, "the reader was killed");
        let status = OutputStatusFile::create(&files.output()).expect("made");
        status.write(OutputStatus { ended: true, ..OutputStatus::default() }).expect("written");
        assert_eq!(files.reader_status(), ReaderStatus::Finished, "the output ended and the reader still runs");
        fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn a_log_is_bounded_and_keeps_the_newest_output() {
        let dir = std::env::temp_dir().join(format!("agtmux-tasklog-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("made");
        let path = dir.join("a.log");
        let mut log = BoundedLog::create(&path, 100).expect("made");
        for n in 0..100 {
            log.append(format!("line {n:03}\n").as_bytes()).expect("written");
        }
        let kept = read_log(&path, u64::MAX).expect("read");
        assert!((50..=100).contains(&kept.len()), "{}", kept.len());
        assert!(kept.ends_with(b"line 098\nline 099\n"));
        assert_eq!(read_log(&path, 4).expect("read"), b"099\n");
        for max_bytes in 0..kept.len() {
            assert_eq!(read_log(&path, max_bytes as u64).expect("read"), kept[kept.len() - max_bytes..], "{max_bytes}");
        }
        assert_eq!(read_log(&dir.join("none.log"), 4).expect("a missing log is empty"), b"");
        fs::remove_dir_all(&dir).expect("removed");
    }
}
