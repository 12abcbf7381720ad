//! What is there: asked once, when the shell has been opened.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::batch::{ShellBatch, ShellOutput};
use super::{ShellError, processes::ProcessSource};
use crate::version::{MIN_VERSION, TmuxVersion};

/// What a host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// Its tmux.
    pub tmux: PathBuf,
    pub tmux_version: String,
    /// Where the user's tmux servers listen.
    pub socket_dir: PathBuf,
    /// Its system, as `uname -s` names it.
    pub system: String,
    pub(crate) process_source: ProcessSource,
    /// It can end a program that takes too long.
    pub(crate) has_timeout: bool,
}

/// Where people have their programs, also those whose login by ssh has a shorter PATH than they do. A shell reads it.
pub const EXTRA_PATH_DIRS: &str = "$HOME/.local/bin:$HOME/bin:$HOME/.cargo/bin:/usr/local/bin:/opt/homebrew/bin:\
    /opt/local/bin:/usr/pkg/bin:/home/linuxbrew/.linuxbrew/bin";

const PROBE_LINES: [&str; 10] = [
    // What the login shell has said so far ends here.
    ":",
    "PATH=$PATH:PLACES; export PATH",
    "date +%s",
    "id -u",
    "printf %s \"${TMUX_TMPDIR:-/tmp}\"",
    "command -v tmux",
    "tmux -V",
    "uname -s",
    // Reading it is quicker and more exact than ps, where it is there.
    "read -r agtmux_line </proc/self/stat && command -v grep >/dev/null && ps -axww -o pid=,args= >/dev/null 2>&1",
    "timeout -s KILL 5 true",
];

pub(super) fn probe_batch() -> ShellBatch {
    let mut question = ShellBatch::default();
    for line in PROBE_LINES {
        question.add(line.replace("PLACES", EXTRA_PATH_DIRS));
    }
    question.add("read -r agtmux_line </proc/self/stat && command -v grep");
    question
}

/// What there is, and the time there.
pub(super) fn parse_facts(answers: &[ShellOutput]) -> Result<(HostFacts, i64), ShellError> {
    let [_, _, clock, uid, tmpdir, tmux, version, system, proc_and_ps, timeout, proc_only] = answers else {
        return Err(ShellError::Unsupported("its shell did not answer as a POSIX shell does".into()));
    };
    let unfit = |what: &str| ShellError::Unsupported(format!("its shell did not tell {what}"));
    let clock: i64 = text(clock).parse().map_err(|_| unfit("the time"))?;
    let uid: u32 = text(uid).parse().map_err(|_| unfit("whose it is"))?;
    if tmux.status != 0 || version.status != 0 {
        return Err(ShellError::Unsupported("tmux is not installed there".into()));
    }
    let tmux_version = text(version).trim_start_matches("tmux ").to_owned();
    if !TmuxVersion::parse(&tmux_version).is_supported() {
        let message = format!("its tmux is {tmux_version}; agtmux needs {MIN_VERSION} or newer");
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

    fn answers(told: [(&str, i32); 11]) -> Vec<ShellOutput> {
        let answer = |(text, status): (&str, i32)| ShellOutput { stdout: text.into(), stderr: Vec::new(), status };
        told.into_iter().map(answer).collect()
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
    fn a_host_is_known_by_its_answers() {
        let (facts, clock) = parse_facts(&answers(LINUX)).expect("all there");
        assert_eq!((clock, facts.socket_dir), (1_700_000_000, "/tmp/tmux-1000".into()));
        assert_eq!((facts.process_source, facts.has_timeout), (ProcessSource::Proc, true));
        let mut small = LINUX;
        (small[8].1, small[9].1) = (1, 127);
        let (facts, _) = parse_facts(&answers(small)).expect("all there");
        assert_eq!((facts.process_source, facts.has_timeout), (ProcessSource::ProcWithBusyboxPs, false));
        small[10].1 = 2;
        assert_eq!(parse_facts(&answers(small)).expect("all there").0.process_source, ProcessSource::Ps);
    }

    #[test]
    fn one_without_a_tmux_that_we_know_says_so() {
        let mut without = LINUX;
        without[5] = ("", 127);
        let mut old = LINUX;
        old[6] = ("tmux 2.9\n", 0);
        for (told, word) in [(without, "not installed"), (old, "3.2 or newer")] {
            let error = parse_facts(&answers(told)).expect_err("unfit").to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
