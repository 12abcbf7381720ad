//! Probes a host once, right after a shell on the host has been opened.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::batch::{ShellBatch, ShellOutput};
use super::{ShellError, processes::ProcessSource};
use crate::version::{MIN_VERSION, TmuxVersion};

/// The programs and directories of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// The path of the tmux program.
    pub tmux: PathBuf,
    pub tmux_version: String,
    /// The directory that contains the sockets of the user's tmux servers.
    pub socket_dir: PathBuf,
    /// The name of the operating system, from `uname -s`.
    pub system: String,
    pub(crate) process_source: ProcessSource,
    /// Whether the host has the program `timeout`, which ends a command that takes too long.
    pub(crate) has_timeout: bool,
}

/// Directories to append to PATH. The PATH of an ssh login often lacks them. The shell expands the variables.
pub const EXTRA_PATH_DIRS: &str = "$HOME/.local/bin:$HOME/bin:$HOME/.cargo/bin:/usr/local/bin:/opt/homebrew/bin:\
    /opt/local/bin:/usr/pkg/bin:/home/linuxbrew/.linuxbrew/bin";

/// Shell commands that extend PATH, so that the shell finds agtmux if it is installed on the host. If agtmux is neither
/// in PATH nor in [`EXTRA_PATH_DIRS`], the commands ask the user's login shell where it is. The commands contain no
/// single quotes, so that they can be part of a word in single quotes.
pub fn find_agtmux_commands() -> String {
    format!(
        "PATH=\"$PATH:{EXTRA_PATH_DIRS}\"; export PATH; command -v agtmux >/dev/null 2>&1 || {{ \
         found=$(\"${{SHELL:-sh}}\" -lc \"command -v agtmux\" </dev/null 2>/dev/null | tail -n 1); \
         if [ -x \"$found\" ]; then PATH=\"$PATH:${{found%/*}}\"; fi; }}; "
    )
}

const PROBE_LINES: [&str; 11] = [
    // Collects what the login shell has printed, so that it does not mix with the output of the next lines.
    ":",
    "PATH=$PATH:EXTRA_PATH_DIRS; export PATH",
    "date +%s",
    "id -u",
    "printf %s \"${TMUX_TMPDIR:-/tmp}\"",
    "command -v tmux",
    "tmux -V",
    "uname -s",
    // `/proc` is faster and more precise than ps.
    "read -r agtmux_line </proc/self/stat && command -v grep >/dev/null && ps -axww -o pid=,args= >/dev/null 2>&1",
    "timeout -s KILL 5 true",
    "read -r agtmux_line </proc/self/stat && command -v grep",
];

pub(super) fn probe_batch() -> ShellBatch {
    let mut batch = ShellBatch::default();
    for line in PROBE_LINES {
        batch.add(line.replace("EXTRA_PATH_DIRS", EXTRA_PATH_DIRS));
    }
    batch
}

/// Parses the output of the probe. Returns the facts, and the time that the host's clock showed.
pub(super) fn parse_facts(answers: &[ShellOutput]) -> Result<(HostFacts, i64), ShellError> {
    let [_, _, clock, uid, tmpdir, tmux, version, system, proc_and_ps, timeout, proc_only] = answers else {
        return Err(ShellError::Unsupported("the shell on the host is not a POSIX shell".into()));
    };
    let unsupported = |what: &str| ShellError::Unsupported(format!("the shell on the host did not report {what}"));
    let clock: i64 = text(clock).parse().map_err(|_| unsupported("the time"))?;
    let uid: u32 = text(uid).parse().map_err(|_| unsupported("the user id"))?;
    if tmux.status != 0 || version.status != 0 {
        return Err(ShellError::Unsupported("tmux is not installed on the host".into()));
    }
    let tmux_version = text(version).trim_start_matches("tmux ").to_owned();
    if !TmuxVersion::parse(&tmux_version).is_supported() {
        let message = format!("tmux {tmux_version} on the host is too old; agtmux needs {MIN_VERSION} or newer");
        return Err(ShellError::Unsupported(message));
    }
    let path = |answer: &ShellOutput| PathBuf::from(OsString::from_vec(answer.stdout.trim_ascii_end().to_vec()));
    let tmux = Some(path(tmux)).filter(|path| path.is_absolute()).unwrap_or_else(|| "tmux".into());
    let base = PathBuf::from(OsString::from_vec(tmpdir.stdout.clone()));
    let base = if base.is_absolute() { base } else { "/tmp".into() };
    let processes = match (proc_and_ps.status, proc_only.status) {
        (0, _) => ProcessSource::Proc,
        (_, 0) => ProcessSource::ProcWithBusyboxPs,
        _ => ProcessSource::Ps,
    };
    let facts = HostFacts {
        tmux,
        tmux_version,
        socket_dir: base.join(format!("tmux-{uid}")),
        system: text(system),
        process_source: processes,
        has_timeout: timeout.status == 0,
    };
    Ok((facts, clock))
}

fn text(answer: &ShellOutput) -> String {
    String::from_utf8_lossy(&answer.stdout).trim().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(outputs: [(&str, i32); 11]) -> Vec<ShellOutput> {
        let answer = |(text, status): (&str, i32)| ShellOutput { stdout: text.into(), stderr: Vec::new(), status };
        outputs.into_iter().map(answer).collect()
    }

    const LINUX: [(&str, i32); 11] = [
        ("Welcome!\n", 0),
        ("", 0),
        ("1700000000\n", 0),
        ("1000\n", 0),
        ("/tmp", 0),
        ("/usr/bin/tmux\n", 0),
        ("tmux 3.3a\n", 0),
        ("Linux\n", 0),
        ("", 0),
        ("", 0),
        ("", 0),
    ];

    #[test]
    fn facts_are_parsed_from_the_probe() {
        let (facts, clock) = parse_facts(&answers(LINUX)).expect("complete");
        assert_eq!((clock, facts.socket_dir), (1_700_000_000, "/tmp/tmux-1000".into()));
        assert_eq!((facts.process_source, facts.has_timeout), (ProcessSource::Proc, true));
        let mut small = LINUX;
        (small[8].1, small[9].1) = (1, 127);
        let (facts, _) = parse_facts(&answers(small)).expect("complete");
        assert_eq!((facts.process_source, facts.has_timeout), (ProcessSource::ProcWithBusyboxPs, false));
        small[10].1 = 2;
        assert_eq!(parse_facts(&answers(small)).expect("complete").0.process_source, ProcessSource::Ps);
    }

    #[test]
    fn a_missing_or_old_tmux_is_unsupported() {
        let mut without = LINUX;
        without[5] = ("", 127);
        let mut old = LINUX;
        old[6] = ("tmux 2.9\n", 0);
        for (outputs, word) in [(without, "not installed"), (old, "3.2 or newer")] {
            let error = parse_facts(&answers(outputs)).expect_err("unsupported").to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
