//! Types into a pane, but only if the pane is still the expected one.
//!
//! The tmux server checks the pane and types in the same step, so nothing can change in between. The server also checks
//! the time: a stopped server that continues would otherwise run commands after their callers have given up.

mod key;
mod respawn;

use std::fmt::Display;
use std::time::{Duration, SystemTime};

use crate::command::{Framing, TmuxCommand};
use crate::server::TmuxError;

pub use key::{InvalidKey, TmuxKey};
pub(crate) use respawn::respawn;

/// The identity of the expected pane: the server generation, the pane's id and the pid of the pane's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaneGuard {
    pub server_pid: u32,
    pub server_start: i64,
    pub pane: u32,
    pub pane_pid: u32,
}

/// The input to send to a pane.
#[derive(Debug, Clone, Copy)]
pub enum PaneInput<'a> {
    /// A text that is pasted. tmux adds the codes of a bracketed paste if the program in the pane has asked for them.
    /// Newlines are kept.
    Paste(&'a str),
    /// A text that tmux pastes unchanged. The caller has already added the codes of a bracketed paste.
    Bracketed(&'a str),
    Keys(&'a [TmuxKey]),
    /// Bytes that tmux sends unchanged and all at once, such as the codes of keys for which tmux has no name.
    Bytes(&'a [u8]),
    /// Makes the pane leave copy mode, or any other tmux mode. Nothing is typed.
    LeaveMode,
}

/// The reason why tmux typed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TypeRefusal {
    #[error("the pane is gone")]
    NoPane,
    #[error("another tmux server listens on that socket now")]
    OtherServer,
    #[error("another program was started in the pane")]
    OtherProcess,
    #[error("the pane's program has ended")]
    Dead,
    #[error("the pane is in copy mode and does not accept input")]
    InMode,
    #[error("the window's panes are synchronized: input would go to all of them")]
    Synchronized,
    #[error("input to the pane is disabled (select-pane -d)")]
    InputOff,
    #[error("tmux received the input too late and did not enter it")]
    TooLate,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    #[error(transparent)]
    Refused(#[from] TypeRefusal),
    #[error(transparent)]
    Tmux(#[from] TmuxError),
}

pub(crate) const DONE: char = 'd';
const FACTS: char = 'f';
const FIELDS: [&str; 7] = [
    "#{pid}",
    "#{start_time}",
    "#{pane_pid}",
    "#{pane_dead}",
    "#{pane_in_mode}",
    "#{pane_synchronized}",
    "#{pane_input_off}",
];

/// A format that prints the Unix time in seconds, by the clock of the tmux server.
pub(crate) const SERVER_TIME: &str = "#{T:#{l:%s}}";

/// The part of an input that one tmux call sends.
pub(crate) struct TypeStep<'a> {
    command: String,
    /// The name of a paste buffer, and the text to load into it.
    pub(crate) paste: Option<(String, &'a [u8])>,
    leaves_mode: bool,
}

/// Splits an input into steps. Each step needs one tmux call.
pub(crate) fn steps<'a>(pane: u32, typing: PaneInput<'a>) -> Vec<TypeStep<'a>> {
    let plain = |command: String| TypeStep { command, paste: None, leaves_mode: false };
    match typing {
        PaneInput::Paste(text) | PaneInput::Bracketed(text) => {
            let brackets = if matches!(typing, PaneInput::Paste(_)) { "-p " } else { "" };
            let buffer = format!("agtmux-{}", uuid::Uuid::new_v4().simple());
            let command = paste_unchanged(&format!("{brackets}-r -d -b {buffer} -t %{pane}"));
            vec![TypeStep { paste: Some((buffer, text.as_bytes())), ..plain(command) }]
        }
        PaneInput::Keys(keys) => {
            keys.iter().map(|key| plain(format!("send-keys {} -t %{pane} {}", key.flags(), key.argument()))).collect()
        }
        PaneInput::Bytes(bytes) => vec![plain(format!("send-keys -H -t %{pane} {}", key::hexadecimal(bytes)))],
        PaneInput::LeaveMode => vec![TypeStep { leaves_mode: true, ..plain(format!("copy-mode -q -t %{pane}")) }],
    }
}

/// Patterns for tmux versions whose `paste-buffer` has no option `-S`. These versions never change the pasted text.
const PASTES_UNCHANGED: [&str; 3] = ["3.[0-6]", "3.[0-6][a-z]", "next-3.[0-7]"];

/// A command that pastes the buffer unchanged. Without the option `-S`, `paste-buffer` of tmux 3.7 makes control
/// characters visible (`^[` instead of Escape), even in the codes of a bracketed paste. Older versions reject this
/// option.
fn paste_unchanged(options: &str) -> String {
    let is_old = |pattern: &str| format!("#{{m:{pattern},#{{version}}}}");
    let any = |one: String, other: String| format!("#{{||:{one},{other}}}");
    let condition = PASTES_UNCHANGED.map(is_old).into_iter().reduce(any).unwrap_or_default();
    format!("if-shell -F '{condition}' 'paste-buffer {options}' 'paste-buffer -S {options}'")
}

/// A format that is true only if the pane's process and the server generation are the expected ones.
pub(crate) fn pane_matches(guard: PaneGuard) -> String {
    and(server_matches(guard.server_pid, guard.server_start), is("pane_pid", guard.pane_pid))
}

/// A format that is true only on this server generation.
pub(crate) fn server_matches(pid: u32, start: i64) -> String {
    and(is("pid", pid), is("start_time", start))
}

/// A format that is true if the variable has this value.
fn is(variable: &str, value: impl Display) -> String {
    format!("#{{==:#{{{variable}}},{value}}}")
}

/// A format that is true if both given formats are true.
pub(crate) fn and(one: String, other: String) -> String {
    format!("#{{&&:{one},{other}}}")
}

/// A format that is true until the server's clock reaches this second.
pub(crate) fn is_before(until: u64) -> String {
    format!("#{{<:{SERVER_TIME},{until}}}")
}

/// A command that prints facts about the pane. From these facts, agtmux finds out why the server did not type.
pub(crate) fn print_facts(framing: &Framing, target: &str, before_deadline: &str) -> String {
    let facts = framing.record(FACTS, &[&FIELDS[..], &[before_deadline]].concat());
    format!("display-message -p -t {target} '{facts}'")
}

impl TypeStep<'_> {
    /// The commands of this step. They type nothing if the server's clock has reached `until`.
    pub(crate) fn commands(&self, framing: &Framing, guard: PaneGuard, until: u64) -> Vec<TmuxCommand> {
        let Some((buffer, _)) = &self.paste else { return vec![self.guarded(framing, guard, until, "")] };
        let load = TmuxCommand::new("load-buffer").arg("-b").arg(buffer).arg("-");
        vec![load, self.guarded(framing, guard, until, &format!("delete-buffer -b {buffer} ; "))]
    }

    /// A tmux command that runs this step if the pane is the expected one and the deadline has not passed. Otherwise it
    /// prints facts about the pane.
    fn guarded(&self, framing: &Framing, guard: PaneGuard, until: u64, cleanup: &str) -> TmuxCommand {
        let target = format!("%{}", guard.pane);
        let before_deadline = is_before(until);
        let mut condition = and(and(pane_matches(guard), is("pane_dead", 0)), before_deadline.clone());
        if !self.leaves_mode {
            let accepts_keys = ["pane_in_mode", "pane_synchronized", "pane_input_off"].map(|mode| is(mode, 0));
            condition = accepts_keys.into_iter().fold(condition, and);
        }
        let done = format!("{} ; display-message -p '{}'", self.command, framing.record(DONE, &[]));
        let report = format!("{cleanup}{}", print_facts(framing, &target, &before_deadline));
        TmuxCommand::new("if-shell").arg("-F").arg("-t").arg(&target).arg(condition).arg(done).arg(report)
    }
}

/// When the caller gives up a call that starts at `now`, as Unix time in seconds. The result is always in a later
/// second than `now`.
pub(crate) fn deadline_second(now: SystemTime, timeout: Duration) -> u64 {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (now + timeout).as_secs().max(now.as_secs() + 1)
}

/// Parses the output of one tmux call. Returns why nothing was typed if the call was refused.
pub(crate) fn parse_outcome(framing: &Framing, guard: PaneGuard, answer: &[u8]) -> Result<(), TypeError> {
    if !framing.records(DONE, answer).is_empty() {
        return Ok(());
    }
    let facts = framing.records(FACTS, answer);
    let texts = facts.first().map(|fields| fields.iter().map(|f| String::from_utf8_lossy(f)).collect::<Vec<_>>());
    match texts.as_deref() {
        Some([pid, start, pane_pid, dead, mode, synchronized, off, before_deadline]) => {
            Err(TypeError::Refused(match () {
                () if **pid != guard.server_pid.to_string() => TypeRefusal::OtherServer,
                () if **start != guard.server_start.to_string() => TypeRefusal::OtherServer,
                () if pane_pid.is_empty() => TypeRefusal::NoPane,
                () if **pane_pid != guard.pane_pid.to_string() => TypeRefusal::OtherProcess,
                () if dead != "0" => TypeRefusal::Dead,
                () if mode != "0" => TypeRefusal::InMode,
                () if synchronized != "0" => TypeRefusal::Synchronized,
                () if off != "0" => TypeRefusal::InputOff,
                () if before_deadline != "1" => TypeRefusal::TooLate,
                // The pane changed between the check and the report.
                () => TypeRefusal::OtherProcess,
            }))
        }
        _ => Err(TypeError::Tmux(TmuxError::Unreadable("the result of the input is missing".into()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: PaneGuard = PaneGuard { server_pid: 9, server_start: 100, pane: 3, pane_pid: 42 };

    fn refusal(fields: [&str; 8]) -> TypeRefusal {
        let framing = Framing::fixed("W");
        match parse_outcome(&framing, GUARD, framing.record(FACTS, &fields).as_bytes()) {
            Err(TypeError::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_refusal_names_the_first_difference() {
        assert_eq!(refusal(["8", "100", "42", "0", "0", "0", "0", "1"]), TypeRefusal::OtherServer);
        assert_eq!(refusal(["9", "101", "42", "0", "0", "0", "0", "1"]), TypeRefusal::OtherServer);
        assert_eq!(refusal(["9", "100", "", "", "", "", "", "1"]), TypeRefusal::NoPane);
        assert_eq!(refusal(["9", "100", "43", "0", "0", "0", "0", "1"]), TypeRefusal::OtherProcess);
        assert_eq!(refusal(["9", "100", "42", "1", "0", "0", "0", "1"]), TypeRefusal::Dead);
        assert_eq!(refusal(["9", "100", "42", "0", "1", "0", "0", "1"]), TypeRefusal::InMode);
        assert_eq!(refusal(["9", "100", "42", "0", "0", "1", "0", "1"]), TypeRefusal::Synchronized);
        assert_eq!(refusal(["9", "100", "42", "0", "0", "0", "1", "1"]), TypeRefusal::InputOff);
        assert_eq!(refusal(["9", "100", "42", "0", "0", "0", "0", "0"]), TypeRefusal::TooLate);
    }

    #[test]
    fn a_paste_asks_new_versions_of_tmux_not_to_change_the_text() {
        let [step] = &steps(3, PaneInput::Bracketed("a"))[..] else { panic!("one step") };
        let (old, new) = step.command.rsplit_once("' 'paste-buffer -S -r -d -b ").expect("two commands");
        assert!(old.starts_with("if-shell -F '#{||:") && old.contains("#{m:3.[0-6],#{version}}"), "{old}");
        assert!(old.contains("' 'paste-buffer -r -d -b agtmux-") && new.ends_with(" -t %3'"), "{old} {new}");
    }

    #[test]
    fn bytes_are_typed_in_one_step() {
        let [step] = &steps(3, PaneInput::Bytes(b"\x1b[24~"))[..] else { panic!("one step") };
        assert_eq!(step.command.trim(), "send-keys -H -t %3 1b 5b 32 34 7e");
    }

    #[test]
    fn an_empty_answer_is_an_error() {
        let framing = Framing::fixed("W");
        assert!(matches!(parse_outcome(&framing, GUARD, b""), Err(TypeError::Tmux(_))));
        assert_eq!(parse_outcome(&framing, GUARD, framing.record(DONE, &[]).as_bytes()), Ok(()));
    }

    #[test]
    fn the_deadline_is_within_the_timeout_but_at_least_one_second_away() {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        assert_eq!(deadline_second(at(10_900), Duration::from_secs(5)), 15);
        assert_eq!(deadline_second(at(10_100), Duration::from_secs(5)), 15);
        assert_eq!(deadline_second(at(10_100), Duration::from_millis(300)), 11);
    }
}
