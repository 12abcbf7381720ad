use super::{BELLS, COMMAND, CWD, NO_RUN_YET, OWNER, OWNER_PID, PROJECT, RUN, TASK_PANE, TaskSessionOwner};
use crate::command::{Framing, TmuxCommand};

/// A session that can contain tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxTaskSession {
    pub server_pid: u32,
    pub server_start: i64,
    pub session: u32,
    pub name: String,
    pub owner: TaskSessionOwner,
    /// Whether a client is attached.
    pub attached: bool,
    /// The panes in tmux's order: by window index, then by pane index.
    pub panes: Vec<TaskPane>,
}

/// One pane of a task session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskPane {
    pub window: u32,
    pub window_name: String,
    pub pane: u32,
    pub pane_pid: u32,
    pub dead: bool,
    pub dead_status: Option<i32>,
    pub dead_signal: Option<i32>,
    pub bell: bool,
    /// The number of bells that the tmux hook has counted. If a program writes several bells at once, the hook counts
    /// one bell.
    pub bells: u64,
    /// The id of the last task run that agtmux started in the pane's window.
    pub run: Option<String>,
    /// agtmux created the window for a task and has not started the task yet.
    pub awaits_run: bool,
    /// agtmux started a task in this pane. Other panes of the window belong to the user.
    pub is_task_pane: bool,
    /// tmux keeps the pane after its program has ended.
    pub remain_on_exit: bool,
    pub task_command: Option<String>,
    pub task_cwd: Option<String>,
    pub current_command: String,
    pub title: String,
}

const PANE: char = 'p';

/// The fields of a row, in the order in which [`parse_row`] reads them. Names with `@` are user options.
const FIELDS: [&str; 24] = [
    "pid",
    "start_time",
    "session_id",
    "session_name",
    OWNER,
    PROJECT,
    OWNER_PID,
    "session_attached",
    "window_id",
    "window_name",
    "pane_id",
    "pane_pid",
    "pane_dead",
    "pane_dead_status",
    "pane_dead_signal",
    "window_bell_flag",
    BELLS,
    RUN,
    TASK_PANE,
    "remain-on-exit",
    COMMAND,
    CWD,
    "pane_current_command",
    "pane_title",
];

pub(super) fn list_command(framing: &Framing, session: Option<&str>) -> TmuxCommand {
    let command = TmuxCommand::new("list-panes");
    let command = match session {
        // Without the colon tmux would first match window names and then session prefixes.
        Some(name) => command.arg("-s").arg("-t").arg(format!("={name}:")),
        None => command.arg("-a"),
    };
    command.arg("-F").arg(framing.variables(PANE, &FIELDS.join(" ")))
}

/// Parses the sessions in the output of tmux. A window that several sessions share appears in each of these sessions.
pub(super) fn parse_sessions(framing: &Framing, answer: &[u8]) -> Vec<TmuxTaskSession> {
    let mut sessions: Vec<TmuxTaskSession> = Vec::new();
    for (empty, pane) in framing.records(PANE, answer).iter().filter_map(|fields| parse_row(fields)) {
        match sessions.iter_mut().find(|known| known.session == empty.session) {
            Some(known) => known.panes.push(pane),
            None => sessions.push(TmuxTaskSession { panes: vec![pane], ..empty }),
        }
    }
    sessions
}

fn parse_row(fields: &[&[u8]]) -> Option<(TmuxTaskSession, TaskPane)> {
    if fields.len() != FIELDS.len() {
        return None;
    }
    let mut texts = fields.iter().map(|field| String::from_utf8_lossy(field).into_owned());
    let mut next = || texts.next();
    let id = |text: String, sigil: char| text.strip_prefix(sigil)?.parse::<u32>().ok();
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    let session = TmuxTaskSession {
        server_pid: next()?.parse().ok()?,
        server_start: next()?.parse().ok()?,
        session: id(next()?, '$')?,
        name: next()?,
        owner: TaskSessionOwner { owner_id: next()?, project: next()?, process: next()? },
        attached: next()? != "0",
        panes: Vec::new(),
    };
    let pane = TaskPane {
        window: id(next()?, '@')?,
        window_name: next()?,
        pane: id(next()?, '%')?,
        pane_pid: next()?.parse().ok()?,
        dead: next()? == "1",
        dead_status: next()?.parse().ok(),
        dead_signal: next()?.parse().ok(),
        bell: next()? == "1",
        bells: next()?.parse().unwrap_or(0),
        run: given(next()?),
        awaits_run: false,
        is_task_pane: !next()?.is_empty(),
        remain_on_exit: next()? == "on",
        task_command: given(next()?),
        task_cwd: given(next()?),
        current_command: next()?,
        title: next()?,
    };
    let awaits_run = pane.run.as_deref() == Some(NO_RUN_YET);
    let run = pane.run.filter(|_| !awaits_run);
    Some((session, TaskPane { run, awaits_run, ..pane }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(session: &'a str, pane: &'a str, window_name: &'a str) -> Vec<&'a str> {
        let mut all = vec!["9", "100", session, "pi-x-1", "1000:a", "/p", "5.6", "0", "@3", window_name, pane, "42"];
        all.extend(["1", "7", "", "1", "3", "run", "run", "on", "make\nall", "/p", "sh", "t"]);
        all
    }

    #[test]
    fn panes_are_grouped_by_session() {
        let framing = Framing::fixed("W");
        let rows = [fields("$0", "%1", "a\n%9 b"), fields("$0", "%2", "b"), fields("$4", "%1", "a")];
        let answer: String = rows.iter().map(|row| framing.record(PANE, row) + "\n").collect();
        let sessions = parse_sessions(&framing, answer.as_bytes());
        let ids: Vec<_> = sessions.iter().map(|s| (s.session, s.panes.len())).collect();
        assert_eq!(ids, [(0, 2), (4, 1)]);
        let pane = &sessions[0].panes[0];
        assert!(pane.remain_on_exit);
        assert_eq!((pane.dead, pane.dead_status, pane.dead_signal, pane.bells), (true, Some(7), None, 3));
        assert_eq!((pane.window_name.as_str(), pane.task_command.as_deref()), ("a\n%9 b", Some("make\nall")));
        assert_eq!((sessions[0].owner.owner_id.as_str(), sessions[0].attached), ("1000:a", false));
    }

    #[test]
    fn an_incomplete_row_is_ignored() {
        let framing = Framing::fixed("W");
        let mut short = fields("$0", "%1", "a");
        short.pop();
        assert_eq!(parse_sessions(&framing, framing.record(PANE, &short).as_bytes()), []);
    }
}
