//! The files of a task that runs: what the daemon, the one who watches over the program in the pane, and the reader of its
//! output leave for each other. They are what tells a daemon that was away what happened meanwhile.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{open_no_follow, read_plain_no_follow};

/// What is to be run, written before it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    pub run_id: String,
    /// Of the tmux server.
    pub socket: String,
    pub session: String,
    pub task: String,
    /// As a shell reads it.
    pub command: String,
    pub cwd: String,
    /// How much of the output is kept.
    pub log_bytes: u64,
    /// The kind of the agent that has had it started, if it was one: what the task does counts as done by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// How it ended, written by the one who waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Its terminal was taken away from it first.
    pub hung_up: bool,
    /// The end could not be marked in the output: its reader will not come upon it.
    #[serde(default)]
    pub unmarked: bool,
}

/// What is known of the output.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct OutputStatus {
    pub bells: u64,
    pub bytes: u64,
    /// Nothing has come for a moment, and the last line may ask for something.
    pub quiet: bool,
    /// Everything up to the end of the program has been read.
    pub ended: bool,
    /// How many lines were ended where it had stopped at what may be a prompt.
    pub answers: u64,
}

impl OutputStatus {
    /// Always as long, so that it can be written over.
    fn to_line(self) -> String {
        let Self { bells, bytes, quiet, ended, answers } = self;
        let line = format!("{bells:020} {bytes:020} {} {} {answers:020} ", u8::from(quiet), u8::from(ended));
        let sum = checksum(line.as_bytes());
        format!("{line}{sum:010}\n")
    }

    /// None for what is not whole: it is being written just now.
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
        // Readers that were started by an agtmux before this one do not count them.
        let answers = words.next().map_or(Some(0), |word| word.parse().ok())?;
        Some(Self { bells, bytes, quiet, ended, answers })
    }
}

/// How far the reader of an output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderStatus {
    NotStarted,
    Active,
    /// It has come to the end, or there is no reader any more.
    Finished,
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// The files of one run, all beside its specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFiles {
    spec: PathBuf,
}

/// More than any specification has.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl RunFiles {
    /// In the directory that the daemon watches.
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

    /// Not beside the others: what is written to it is told to nobody.
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

    /// A file that speaks of another run than its name does is none of this one's.
    fn read_spec_from(&self, path: &Path) -> io::Result<RunSpec> {
        let spec: RunSpec = serde_json::from_str(&read_plain_no_follow(path, MAX_FILE_BYTES)?)?;
        match self.spec.file_stem().is_some_and(|name| name == spec.run_id.as_str()) {
            true => Ok(spec),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "is of another run")),
        }
    }

    /// Kept beside the log and as long as that: what it takes to start the same once more.
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

    /// Asks the status file itself: its writer holds it as long as it lives.
    pub fn reader_status(&self) -> ReaderStatus {
        if self.read_output().is_some_and(|status| status.ended) {
            return ReaderStatus::Finished;
        }
        match open_no_follow(&self.output()).map(|file| file.try_lock_shared()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => ReaderStatus::NotStarted,
            Ok(Err(_)) => ReaderStatus::Active,
            // Also where something else lies in its place: no reader of ours will come to its end there.
            Ok(Ok(())) | Err(_) => ReaderStatus::Finished,
        }
    }

    /// How large the newest part of the log is: it changes as long as somebody reads.
    pub fn log_size(&self) -> u64 {
        fs::metadata(self.log()).map_or(0, |data| data.len())
    }

    /// What nobody needs any more once the end is stored. The log stays.
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

/// The status as it is written over and over.
#[derive(Debug)]
pub struct OutputStatusFile(File);

impl OutputStatusFile {
    /// Locked before anybody can see it, and until its writer ends in whichever way.
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

/// The output that is kept: the newest, in two files of which the older one makes room.
#[derive(Debug)]
pub struct BoundedLog {
    path: PathBuf,
    file: File,
    size: u64,
    max_part_bytes: u64,
}

impl BoundedLog {
    pub fn create(path: &Path, most: u64) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: create_fresh(path)?, size: 0, max_part_bytes: (most / 2).max(1) })
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

/// What is kept, the oldest first, and at most this much of it from its end.
pub fn read_log(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let newer = read_tail(path, most)?;
    let mut bytes = read_tail(&older_log(path), most - newer.len() as u64)?;
    bytes.extend(newer);
    Ok(bytes)
}

/// No more than that is read, however long the file is. None is an empty one.
fn read_tail(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = match open_no_follow(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let size = file.metadata()?.len();
    let take = size.min(most);
    file.seek(SeekFrom::Start(size - take))?;
    let mut bytes = Vec::new();
    file.take(take).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where the part of a log is that was put aside when the other one was full.
pub fn older_log(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

/// A new file in the place of whatever has its name: nothing that lies there is written to, or waited for.
fn create_fresh(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path),
    }
}

/// There whole, or not at all.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
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

/// What the one who watches over the program writes to its terminal after the program's last word. tmux shows nothing of it, and
/// the reader knows by it that it has everything.
pub fn end_marker(run_id: &str) -> Vec<u8> {
    format!("\x1b]7502;agtmux-end;{run_id}\x1b\\").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_comes_back_whole_or_not_at_all() {
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
            "of a reader before this one"
        );
    }

    #[test]
    fn whatever_lies_in_the_place_of_a_file_is_not_written_to_and_not_waited_for() {
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
            "nor for the one who reads it"
        );
        fs::remove_file(files.output()).expect("removed");
        std::os::unix::fs::symlink(&other, files.output()).expect("linked");
        fifo(&files.log());
        assert!(read_log(&files.log(), 10).is_err(), "nobody waits for a fifo");
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
    fn a_specification_of_another_run_is_none() {
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
    fn a_reader_that_ends_in_whichever_way_is_known_to_have() {
        let dir = std::env::temp_dir().join(format!("agtmux-reading-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("made");
        let files = RunFiles::in_dir(&dir, "run");
        assert_eq!(files.reader_status(), ReaderStatus::NotStarted);
        let status = OutputStatusFile::create(&files.output()).expect("made");
        assert_eq!((files.reader_status(), files.read_output()), (ReaderStatus::Active, Some(OutputStatus::default())));
        status.write(OutputStatus { bytes: 5, ..OutputStatus::default() }).expect("written");
        assert_eq!(files.reader_status(), ReaderStatus::Active);
        drop(status);
        assert_eq!(files.reader_status(), ReaderStatus::Finished, "killed in the middle of it");
        let status = OutputStatusFile::create(&files.output()).expect("made");
        status.write(OutputStatus { ended: true, ..OutputStatus::default() }).expect("written");
        assert_eq!(files.reader_status(), ReaderStatus::Finished, "at its end, and still there");
        fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn a_log_keeps_the_newest_and_is_bounded() {
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
        for most in 0..kept.len() {
            assert_eq!(read_log(&path, most as u64).expect("read"), kept[kept.len() - most..], "{most}");
        }
        assert_eq!(read_log(&dir.join("none.log"), 4).expect("no log is an empty one"), b"");
        fs::remove_dir_all(&dir).expect("removed");
    }
}
