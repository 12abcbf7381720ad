use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

use super::{BELLS, COMMAND, CWD, NO_RUN_YET, OWNER, OWNER_PID, PROJECT, RUN, TASK_PANE, TaskSessionOwner};
use crate::command::{Framing, QUOTED_NEWLINE, TmuxCommand};
use crate::input::{and, is_before, server_matches};
use crate::listing::{parse_id, parse_number};
use crate::tap::{escape_formats, exec_line};

/// The program that runs in a new window or pane until the task or shared terminal is started there. If neither is
/// started in time, this program ends, and the window or pane closes.
pub(crate) const PLACEHOLDER_PROGRAM: [&str; 2] = ["sleep", "30"];

/// The tmux hook that counts bells. The user's own hooks are unlikely to have so high an index. The daemon's other
/// hooks have the index 4242.
const BELL_HOOK: &str = "alert-bell[4243]";

/// The maximum size of a text that agtmux stores in a window option. The limit applies to the quoted command of a task,
/// and to its quoted directory. tmux accepts at most 16 KiB per call.
const MAX_SHOWN_BYTES: usize = 4 << 10;

/// The character that agtmux appends to a text that it has cut.
pub const TRUNCATION_MARK: char = '…';

/// A task to start, and its window.
#[derive(Debug, Clone)]
pub struct TaskLaunch<'a> {
    pub server_pid: u32,
    pub server_start: i64,
    pub session: u32,
    pub session_name: &'a str,
    pub window: u32,
    pub pane: u32,
    pub run: &'a str,
    pub command: &'a str,
    pub cwd: &'a str,
    /// The process that owns the session from now on; `None` keeps the current owner.
    pub owner_process: Option<&'a str>,
    /// The command line of the wrapper that runs the task. The wrapper is the pane's process.
    pub program: &'a [OsString],
    /// The command line of the program that reads the pane's output.
    pub reader: &'a [OsString],
}

/// The window and pane of a started task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchedPane {
    pub window: u32,
    pub pane: u32,
    pub pane_pid: u32,
}

pub(crate) const DONE: char = 'd';
const NEW_WINDOW: char = 'm';

pub(super) fn new_session(session: &str, task: &str, owner: &TaskSessionOwner) -> Vec<TmuxCommand> {
    let new = TmuxCommand::new("new-session").arg("-d").arg("-s").arg(session).arg("-n").arg(task);
    let new = new.arg("-x").arg("200").arg("-y").arg("50");
    let option = |name: &str, value: &str| {
        TmuxCommand::new("set-option").arg("-t").arg(format!("={session}:")).arg(name).arg(value)
    };
    vec![
        PLACEHOLDER_PROGRAM.iter().fold(new, TmuxCommand::arg),
        mark_without_run(&format!("={session}:")),
        option(OWNER, &owner.owner_id),
        option(PROJECT, &owner.project),
        option(OWNER_PID, &owner.process),
    ]
}

pub(super) fn new_window(framing: &Framing, session: &str, task: &str) -> Vec<TmuxCommand> {
    let last = format!("={session}:{{end}}");
    let new = TmuxCommand::new("new-window").arg("-d").arg("-a").arg("-t").arg(&last).arg("-n").arg(task);
    let new = new.arg("-P").arg("-F").arg(framing.record(NEW_WINDOW, &["#{window_id}"]));
    vec![PLACEHOLDER_PROGRAM.iter().fold(new, TmuxCommand::arg), mark_without_run(&last)]
}

/// Marks a window in which agtmux has not started a task yet. The daemon does not list such a window as a task, even if
/// the task never starts.
fn mark_without_run(window: &str) -> TmuxCommand {
    TmuxCommand::new("set-option").arg("-w").arg("-t").arg(window).arg(RUN).arg(NO_RUN_YET)
}

pub(super) fn parse_new_window(framing: &Framing, answer: &[u8]) -> Option<u32> {
    let records = framing.records(NEW_WINDOW, answer);
    parse_id(b'@', records.first()?.first()?)
}

/// A tmux format that is true if the server has this pid and start time, and if it is not yet `until` by the server's
/// clock.
pub(crate) fn server_matches_before(pid: u32, start: i64, until: u64) -> String {
    and(server_matches(pid, start), is_before(until))
}

pub(super) fn launch_command(framing: &Framing, until: u64, launch: &TaskLaunch<'_>) -> TmuxCommand {
    let (window, pane) = (format!("@{}", launch.window), format!("%{}", launch.pane));
    let option = |name: &str, value: &OsStr| {
        TmuxCommand::new("set-option").literal("-w").literal("-t").literal(&window).literal(name).literal(value)
    };
    let text = |name: &str, value: &str| option(name, OsStr::new(value));
    let ids = framing.record(DONE, &["#{window_id}", "#{pane_id}", "#{pane_pid}"]);
    let before = [
        text("remain-on-exit", "on"),
        text("automatic-rename", "off"),
        text("allow-rename", "off"),
        text(COMMAND, &truncate_shown(launch.command)),
        text(CWD, &truncate_shown(launch.cwd)),
        text(RUN, launch.run),
        mark_task_pane(&pane, launch.run),
        bell_hook(launch.session),
    ];
    let start = [
        respawn_command(&pane, launch),
        pipe_command(&pane, launch.reader),
        TmuxCommand::new("display-message").literal("-p").literal("-t").literal(&pane).literal(ids),
    ];
    let set_owner = launch.owner_process.map(|owner| set_owner_process(launch.session, owner));
    let commands = before.into_iter().chain(set_owner).chain(start);
    let lines: Vec<Vec<u8>> = commands.map(|command| command.line().into_vec()).collect();
    let server_check = server_matches_before(launch.server_pid, launch.server_start, until);
    // Start nothing if the window is gone, if its id belongs to a window of a new server, or if the caller has given
    // up.
    let condition = and(server_check, format!("#{{==:#{{window_id}},{window}}}"));
    let launch_all = OsString::from_vec(lines.join(b" ; ".as_slice()));
    TmuxCommand::new("if-shell").arg("-F").arg("-t").arg(&pane).arg(condition).arg(launch_all)
}

fn mark_task_pane(pane: &str, run: &str) -> TmuxCommand {
    TmuxCommand::new("set-option").literal("-p").literal("-t").literal(pane).literal(TASK_PANE).literal(run)
}

/// If the quoted text is longer than `MAX_SHOWN_BYTES`, cuts the text and appends `TRUNCATION_MARK`.
fn truncate_shown(text: &str) -> String {
    let mut size = 0;
    let is_too_much = |c: char| {
        size += match c {
            '\'' => r"'\''".len(),
            '\n' => QUOTED_NEWLINE.len(),
            c => c.len_utf8(),
        };
        size > MAX_SHOWN_BYTES
    };
    match text.find(is_too_much) {
        Some(end) => format!("{}{TRUNCATION_MARK}", &text[..end]),
        None => text.to_owned(),
    }
}

fn set_owner_process(session: u32, owner: &str) -> TmuxCommand {
    TmuxCommand::new("set-option").literal("-t").literal(format!("${session}:")).literal(OWNER_PID).literal(owner)
}

/// A tmux hook that counts bells and stores the count in a window option. agtmux uses this count for panes whose output
/// it does not read through a pipe.
fn bell_hook(session: u32) -> TmuxCommand {
    let count = format!("set-option -wF {BELLS} '#{{e|+:0#{{{BELLS}}},1}}'");
    TmuxCommand::new("set-hook").literal("-t").literal(format!("${session}:")).literal(BELL_HOOK).literal(count)
}

fn respawn_command(pane: &str, launch: &TaskLaunch<'_>) -> TmuxCommand {
    let respawn = TmuxCommand::new("respawn-pane").literal("-k").literal("-t").literal(pane);
    let respawn = ["PI_TMUX_SESSION", "AGTMUX_SESSION"]
        .iter()
        .fold(respawn, |command, name| command.literal("-e").literal(format!("{name}={}", launch.session_name)));
    launch.program.iter().fold(respawn, TmuxCommand::literal)
}

/// Sends the pane's output to the reader. With `-I`, tmux notices at once that the reader has ended. `-I` would also
/// type the reader's output into the pane, so this output is discarded.
pub(crate) fn pipe_command(pane: &str, reader: &[OsString]) -> TmuxCommand {
    let line = OsString::from_vec(escape_formats(&exec_line(reader)));
    TmuxCommand::new("pipe-pane").literal("-IO").literal("-t").literal(pane).literal(line)
}

pub(crate) fn parse_launched(framing: &Framing, answer: &[u8]) -> Option<LaunchedPane> {
    let records = framing.records(DONE, answer);
    let &[window, pane, pid] = records.first()?.as_slice() else { return None };
    Some(LaunchedPane { window: parse_id(b'@', window)?, pane: parse_id(b'%', pane)?, pane_pid: parse_number(pid)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_directories_are_quoted() {
        let (program, reader) = (["/a b/agtmux".into(), "x".into()], ["/r".into(), "50%#{x}".into()]);
        let launch_of = TaskLaunch {
            server_pid: 9,
            server_start: 100,
            session: 1,
            session_name: "pi-x-1",
            window: 3,
            pane: 4,
            run: "r1",
            command: "it's; kill-server #(x)",
            cwd: "/p;",
            owner_process: Some("5.6"),
            program: &program,
            reader: &reader,
        };
        let command = launch_command(&Framing::fixed("W"), 77, &launch_of);
        let words: Vec<String> = command.words().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let line = &words[5];
        assert!(line.contains(r"'@pi_task_command' 'it'\''s; kill-server #(x)' ; "), "{line}");
        assert!(line.contains("'@pi_task_cwd' '/p;' ; "), "{line}");
        assert!(line.contains("'-p' '-t' '%4' '@agtmux_task_pane' 'r1' ; "), "{line}");
        assert!(line.contains("'respawn-pane' '-k' '-t' '%4' '-e' 'PI_TMUX_SESSION=pi-x-1'"), "{line}");
        assert!(line.contains(r"50%%##{x}"), "{line}");
        assert!(words[4].contains("#{==:#{window_id},@3}"), "{}", words[4]);
        assert!(words[4].contains("#{<:#{T:#{l:%s}},77}"), "{}", words[4]);
        assert!(line.contains("'-t' '$1:' '@agtmux_owner_pid' '5.6' ; "), "{line}");
        let command = launch_command(&Framing::fixed("W"), 77, &TaskLaunch { owner_process: None, ..launch_of });
        assert!(!command.words()[5].to_string_lossy().contains(OWNER_PID), "the owner is unchanged");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(truncate_shown("make"), "make");
        assert_eq!(truncate_shown(&"x".repeat(MAX_SHOWN_BYTES)).len(), MAX_SHOWN_BYTES);
        for much in ["é'", "a\n"] {
            let cut = truncate_shown(&much.repeat(MAX_SHOWN_BYTES));
            let quoted = TmuxCommand::new("x").literal(&cut).line().len() - "'x' ".len();
            assert!(cut.ends_with(TRUNCATION_MARK) && quoted <= MAX_SHOWN_BYTES + 5, "{quoted}");
        }
    }

    #[test]
    fn an_answer_without_ids_is_rejected() {
        let framing = Framing::fixed("W");
        assert_eq!(parse_launched(&framing, b""), None);
        let answer = framing.record(DONE, &["@3", "%4", "55"]);
        assert_eq!(
            parse_launched(&framing, answer.as_bytes()),
            Some(LaunchedPane { window: 3, pane: 4, pane_pid: 55 })
        );
    }
}
