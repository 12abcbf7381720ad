//! `agtmux mirror-log DIR`: reads the output of a shared terminal from a pipe, and writes the events of the shell and
//! the output of each command to files. It runs as long as the pane exists, even if no daemon is running.

use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use agtmux_api::mirror_files::{MirrorEventLine, MirrorEventWriter, MirrorFiles, MirrorOutputWriter};
use agtmux_core::mirror::{ShellEvent, ShellTracker, TrackedPiece};
use agtmux_tmux::platform;
use jiff::Timestamp;

/// How long, and at which interval, to wait for the end of the shell after the end of its output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(10);

pub(super) fn run(dir: &Path) {
    // There is no caller to report an error to.
    let _ = read_all(&MirrorFiles::at(dir));
}

fn read_all(files: &MirrorFiles) -> io::Result<()> {
    let _lock = files.lock_reader()?;
    let spec = files.read_spec()?;
    let (events, last_number) = MirrorEventWriter::open(&files.events())?;
    let mut tracker = ShellTracker::new(spec.nonce, last_number);
    let mut recorder = StreamRecorder::new(events, MirrorOutputWriter::new(files.clone()));
    let mut stdin = io::stdin().lock();
    let mut buffer = vec![0; 64 << 10];
    loop {
        // tmux keeps in memory all output that this process has not read, so the pipe is always read to its end.
        match stdin.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) | Ok(0) => break,
            Ok(length) => tracker.push(&buffer[..length], &mut |piece| recorder.take(piece)),
        }
        recorder.write();
    }
    tracker.finish(is_pane_gone(files), &mut |piece| recorder.take(piece));
    recorder.write();
    Ok(())
}

/// Whether the stream has ended because the pane is gone, and not because its pipe was closed. tmux ends the pipe of a
/// closed pane before the shell has ended.
fn is_pane_gone(files: &MirrorFiles) -> bool {
    let Some((pid, start)) = files.read_spec().ok().and_then(|spec| spec.process) else { return true };
    let processes = platform::process_table(false);
    let until = Instant::now() + EXIT_TIMEOUT;
    while processes.start_time(pid) == Some(start) && !processes.process(pid).is_some_and(|process| process.zombie) {
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(EXIT_CHECK_INTERVAL);
    }
    true
}

/// Writes what the tracker reports. A full disk loses events and output, but never stops the reader.
struct StreamRecorder {
    events: MirrorEventWriter,
    outputs: MirrorOutputWriter,
    pending_output: Vec<u8>,
    pending_events: Vec<MirrorEventLine>,
}

impl StreamRecorder {
    fn new(events: MirrorEventWriter, outputs: MirrorOutputWriter) -> Self {
        Self { events, outputs, pending_output: Vec::new(), pending_events: Vec::new() }
    }

    fn take(&mut self, piece: TrackedPiece<'_>) {
        match piece {
            TrackedPiece::Output(bytes) => self.pending_output.extend_from_slice(bytes),
            TrackedPiece::Event(event) => {
                self.write_output();
                match &event {
                    ShellEvent::Started { number, .. } => drop(self.outputs.start(*number)),
                    ShellEvent::Ended { .. } => self.outputs.finish(),
                    _ => {}
                }
                self.pending_events.push(MirrorEventLine { at: Timestamp::now(), event });
            }
        }
    }

    /// Writes the output of a command before the event that reports its end, so that a reader of this event finds all
    /// output.
    fn write(&mut self) {
        self.write_output();
        if !self.pending_events.is_empty() {
            let _ = self.events.write(&self.pending_events);
            self.pending_events.clear();
        }
    }

    fn write_output(&mut self) {
        if !self.pending_output.is_empty() {
            let _ = self.outputs.write(&self.pending_output);
            self.pending_output.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_outputs_are_written() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let files = MirrorFiles::in_dir(dir.path(), "m");
        files.create().expect("created");
        let (events, _) = MirrorEventWriter::open(&files.events()).expect("opened");
        let mut recorder = StreamRecorder::new(events, MirrorOutputWriter::new(files.clone()));
        let mut tracker = ShellTracker::new("n", 0);
        let mark = |content: &str| format!("\x1b]133;{content}\x07");
        let stream = [
            mark("A;agt=n;1;q='/'"),
            mark("B;agt=n;1;0"),
            mark("C;agt=n;1"),
            "out\r\n".into(),
            mark("D;4;agt=n;1;r=1"),
        ];
        tracker.push(stream.concat().as_bytes(), &mut |piece| recorder.take(piece));
        recorder.write();
        assert_eq!(files.output(1).read_head(0, 99).expect("read"), b"out\r\n");
        let mut follower = agtmux_api::mirror_files::MirrorEventFollower::new(files.events());
        let events: Vec<ShellEvent> = follower.read_new().expect("read").into_iter().map(|line| line.event).collect();
        assert_eq!(events.last(), Some(&ShellEvent::Ended { number: 1, code: Some(4), text: None, bytes: 5 }));
    }
}
