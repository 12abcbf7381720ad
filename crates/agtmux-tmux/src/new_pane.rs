//! Opens a new pane with the user's shell: in a new window, in a new session, or beside another pane.

use std::ffi::OsString;

use crate::command::{Framing, TmuxCommand};
use crate::listing::{parse_id, parse_number};
use crate::server::{TmuxError, TmuxServer};

const OPENED: char = 'o';
const FACTS: [&str; 4] = ["#{pid}", "#{start_time}", "#{window_id}", "#{pane_id}"];

/// The size of a new session that no client shows yet.
const COLUMNS: &str = "200";
const ROWS: &str = "50";

/// Where a new pane is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanePlace<'a> {
    /// In a new window at the end of this session. The session is created if it does not exist.
    Session(&'a str),
    /// In a new window after the window of this pane.
    AfterWindow(u32),
    /// In the window of this pane, beside it.
    Beside(u32),
}

/// A pane that was just opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedPane {
    pub server_pid: u32,
    pub server_start: i64,
    pub window: u32,
    pub pane: u32,
}

impl TmuxServer {
    /// Opens a pane that runs the shell of the user's tmux settings. The pane is not selected, so that the windows that
    /// people look at do not change.
    pub async fn open_pane(
        &self,
        place: PanePlace<'_>,
        cwd: &str,
        window_name: Option<&str>,
    ) -> Result<OpenedPane, TmuxError> {
        let framing = Framing::fresh();
        let window = match place {
            PanePlace::AfterWindow(pane) => Some(self.window_of(pane).await?),
            _ => None,
        };
        let open = open_command(&framing, place, window, cwd, window_name);
        let answer = match (place, self.run_with_session_path(&[open]).await) {
            (PanePlace::Session(name), Err(error)) if is_missing(&error) => {
                let new = [session_command(&framing, name, cwd, window_name)];
                match self.run_with_session_path(&new).await {
                    // The new server gets its environment, and so its PATH, from this call.
                    Err(TmuxError::NoServer) => self.run_or_start_server(&new).await?,
                    answer => answer?,
                }
            }
            (_, answer) => answer?,
        };
        parse_opened(&framing, &answer).ok_or_else(|| TmuxError::Unreadable("the id of the new pane is missing".into()))
    }
}

impl TmuxServer {
    /// The window of a pane. `new-window` accepts no pane id.
    async fn window_of(&self, pane: u32) -> Result<u32, TmuxError> {
        let framing = Framing::fresh();
        let answer = self
            .run(&[TmuxCommand::display(&framing.record(OPENED, &["#{pane_id}", "#{window_id}"]), Some(pane))])
            .await?;
        let records = framing.records(OPENED, &answer);
        let ids = records.first().and_then(|fields| match fields.as_slice() {
            &[found, window] => Some((parse_id(b'%', found)?, parse_id(b'@', window)?)),
            _ => None,
        });
        // If the pane is gone, tmux may print the ids of another one.
        let window = ids.filter(|(found, _)| *found == pane).map(|(_, window)| window);
        window.ok_or_else(|| TmuxError::Failed(format!("can't find pane: %{pane}")))
    }
}

/// Whether the session, or the whole server, does not exist.
fn is_missing(error: &TmuxError) -> bool {
    match error {
        TmuxError::NoServer => true,
        TmuxError::Failed(message) => message.contains("can't find session") || error.means_no_session(),
        _ => false,
    }
}

/// `window` is the window of the pane, if the new window is to stand after it.
fn open_command(
    framing: &Framing,
    place: PanePlace<'_>,
    window: Option<u32>,
    cwd: &str,
    window_name: Option<&str>,
) -> TmuxCommand {
    let (open, has_window) = match place {
        PanePlace::Session(name) => {
            (TmuxCommand::new("new-window").arg("-d").arg("-a").arg("-t").arg(format!("={name}:{{end}}")), true)
        }
        PanePlace::AfterWindow(_) => {
            let after = window.map_or_else(String::new, |window| format!("@{window}"));
            (TmuxCommand::new("new-window").arg("-d").arg("-a").arg("-t").arg(after), true)
        }
        PanePlace::Beside(pane) => {
            (TmuxCommand::new("split-window").arg("-d").arg("-h").arg("-t").arg(format!("%{pane}")), false)
        }
    };
    with_facts(framing, open, cwd, window_name.filter(|_| has_window))
}

fn session_command(framing: &Framing, name: &str, cwd: &str, window_name: Option<&str>) -> TmuxCommand {
    let new = TmuxCommand::new("new-session").arg("-d").arg("-s").arg(name).arg("-x").arg(COLUMNS).arg("-y").arg(ROWS);
    with_facts(framing, new, cwd, window_name)
}

fn with_facts(framing: &Framing, open: TmuxCommand, cwd: &str, window_name: Option<&str>) -> TmuxCommand {
    // tmux reads the directory as a format.
    let open = open.arg("-c").arg(OsString::from(cwd.replace('#', "##")));
    let open = window_name.into_iter().fold(open, |open, name| open.arg("-n").arg(name));
    open.arg("-P").arg("-F").arg(framing.record(OPENED, &FACTS))
}

fn parse_opened(framing: &Framing, answer: &[u8]) -> Option<OpenedPane> {
    let records = framing.records(OPENED, answer);
    let &[pid, start, window, pane] = records.first()?.as_slice() else { return None };
    Some(OpenedPane {
        server_pid: parse_number(pid)?,
        server_start: std::str::from_utf8(start).ok()?.parse().ok()?,
        window: parse_id(b'@', window)?,
        pane: parse_id(b'%', pane)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(place: PanePlace<'_>) -> String {
        let command = open_command(&Framing::fixed("W"), place, Some(7), "/a b/#{x}", Some("fix"));
        let words: Vec<String> = command.words().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ")
    }

    #[test]
    fn a_pane_is_opened_at_its_place_without_being_selected() {
        let session = words(PanePlace::Session("work"));
        assert!(session.starts_with("new-window -d -a -t =work:{end} -c /a b/##{x} -n fix -P -F "), "{session}");
        assert!(words(PanePlace::AfterWindow(3)).starts_with("new-window -d -a -t @7 -c "));
        let split = words(PanePlace::Beside(3));
        assert!(
            split.starts_with("split-window -d -h -t %3 -c /a b/##{x} -P"),
            "a split window keeps its name: {split}"
        );
    }

    #[test]
    fn an_answer_needs_all_its_facts() {
        let framing = Framing::fixed("W");
        let answer = framing.record(OPENED, &["9", "100", "@2", "%4"]);
        let opened = OpenedPane { server_pid: 9, server_start: 100, window: 2, pane: 4 };
        assert_eq!(parse_opened(&framing, answer.as_bytes()), Some(opened));
        assert_eq!(parse_opened(&framing, framing.record(OPENED, &["9", "100", "", "%4"]).as_bytes()), None);
    }

    #[test]
    fn a_missing_session_or_server_is_recognised() {
        assert!(is_missing(&TmuxError::NoServer));
        assert!(is_missing(&TmuxError::Failed("can't find session: work".into())));
        assert!(!is_missing(&TmuxError::Failed("create window failed".into())));
    }
}
