//! Decides what to do with task sessions left by earlier harness sessions.
//!
//! A session name does not prove which project owns the session: the sessions of project `foo-bar` also start with
//! `pi-foo-`, and two checkouts may have the same directory name. Therefore agtmux stores the owner and the project
//! with each session and decides by these two alone.

use super::session::TaskSessionName;
use super::snapshot::TaskSnapshot;
use crate::sanitize;

/// A title with more characters than this is cut.
const MAX_TITLE_CHARS: usize = 80;

/// The owner and project of a task session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionOwnership {
    /// Empty if no owner was stored.
    pub owner: String,
    /// The project's full path.
    pub project: String,
}

/// A task session found at startup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftoverSession<'a> {
    pub name: &'a str,
    pub owner: &'a SessionOwnership,
    /// Whether the owning process still runs. `None` if unknown.
    pub owner_alive: Option<bool>,
    /// Whether a tmux client is attached.
    pub attached: bool,
    pub tasks: &'a [TaskSnapshot],
    /// Names of windows with a live pane, including windows that are not tasks.
    pub live_windows: &'a [String],
}

/// The action to take on a leftover session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftoverAction {
    /// Leave the session alone and report nothing. The reason is one of these: the owner or project is unknown, or is
    /// not that of the starting harness session; the session is in use; the session has no tasks; the session belongs
    /// to the starting harness session.
    Keep,
    /// Remove the session, because it is unused and nothing runs in it.
    Remove,
    /// Report the session to the user. It is unused, but these tasks and windows still run.
    Report(Vec<String>),
}

impl LeftoverSession<'_> {
    /// Decides what to do with this session when a harness session starts. `current` and `current_session` are the
    /// ownership and the task session of the starting harness session.
    pub fn action(&self, current: &SessionOwnership, current_session: &TaskSessionName) -> LeftoverAction {
        let same_owner = !current.owner.is_empty() && self.owner == current;
        let in_use = self.attached || self.owner_alive != Some(false);
        if !same_owner || in_use || self.name == current_session.as_str() || self.tasks.is_empty() {
            return LeftoverAction::Keep;
        }
        let may_run = |task: &&TaskSnapshot| !(task.pane_state_known && task.dead);
        let tasks = self.tasks.iter().filter(may_run).map(|task| &task.window_name);
        let mut running: Vec<String> = Vec::new();
        for name in tasks.chain(self.live_windows) {
            if !running.contains(name) {
                running.push(name.clone());
            }
        }
        if running.is_empty() { LeftoverAction::Remove } else { LeftoverAction::Report(running) }
    }
}

/// The display title of a harness session: its title, or else its first user message.
pub fn session_title(title: Option<&str>, first_message: Option<&str>) -> Option<String> {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut names = [title, first_message].into_iter().flatten().map(one_line);
    names.find(|name| !name.is_empty()).map(|name| cut(sanitize::for_terminal(&name)))
}

fn cut(title: String) -> String {
    match title.char_indices().nth(MAX_TITLE_CHARS - 1) {
        Some((last, _)) if title.chars().count() > MAX_TITLE_CHARS => format!("{}…", &title[..last]),
        _ => title,
    }
}

/// The notice for a session with running tasks.
pub fn still_active_notice(session: &str, tasks: &[String], title: Option<&str>) -> String {
    let named = title.map(|title| format!(" ({title})")).unwrap_or_default();
    let count = match tasks.len() {
        1 => "1 task".to_owned(),
        count => format!("{count} tasks"),
    };
    format!("tmux session {session}{named} still has {count} running: {}", tasks.join(", "))
}

/// The notice for removed sessions.
pub fn removed_notice(sessions: &[String]) -> Option<String> {
    let noun = if sessions.len() == 1 { "session" } else { "sessions" };
    (!sessions.is_empty()).then(|| format!("removed inactive tmux {noun} {}", sessions.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::WindowId;

    fn ownership(owner: &str, project: &str) -> SessionOwnership {
        SessionOwnership { owner: owner.into(), project: project.into() }
    }

    fn task(name: &str, dead: bool, known: bool) -> TaskSnapshot {
        TaskSnapshot {
            window_id: WindowId(1),
            window_name: name.into(),
            pane_id: None,
            pane_state_known: known,
            current_command: None,
            task_cwd: None,
            dead,
            exit_code: None,
            signal: None,
            bell: false,
            bell_count: 0,
            output_preview: String::new(),
            run: None,
            cursor_line: None,
            cursor_row: None,
            answers: 0,
            awaits_launch: false,
        }
    }

    fn action_for(
        name: &str,
        owner: &SessionOwnership,
        owner_alive: Option<bool>,
        tasks: &[TaskSnapshot],
    ) -> LeftoverAction {
        let current: TaskSessionName = "pi-foo-1".parse().expect("a name");
        leftover(name, owner, owner_alive, tasks).action(&ownership("me", "/w/foo"), &current)
    }

    fn leftover<'a>(
        name: &'a str,
        owner: &'a SessionOwnership,
        owner_alive: Option<bool>,
        tasks: &'a [TaskSnapshot],
    ) -> LeftoverSession<'a> {
        LeftoverSession { name, owner, owner_alive, attached: false, tasks, live_windows: &[] }
    }

    #[test]
    fn a_session_with_a_live_window_is_not_removed() {
        let (ours, dead) = (ownership("me", "/w/foo"), [task("a", true, true), task("b", true, true)]);
        let current: TaskSessionName = "pi-foo-1".parse().expect("a name");
        let unused = leftover("pi-foo-0", &ours, Some(false), &dead);
        let with_live_window = LeftoverSession { live_windows: &["b".into(), "mine".into()], ..unused.clone() };
        assert_eq!(with_live_window.action(&ours, &current), LeftoverAction::Report(vec!["b".into(), "mine".into()]));
        assert_eq!(LeftoverSession { attached: true, ..unused }.action(&ours, &current), LeftoverAction::Keep);
    }

    #[test]
    fn ended_sessions_are_removed_and_running_ones_reported() {
        let ours = ownership("me", "/w/foo");
        let dead = [task("a", true, true), task("b", true, true)];
        assert_eq!(action_for("pi-foo-0", &ours, Some(false), &dead), LeftoverAction::Remove);
        let mixed = [task("a", true, true), task("b", false, true)];
        assert_eq!(action_for("pi-foo-0", &ours, Some(false), &mixed), LeftoverAction::Report(vec!["b".into()]));
        // A task whose state cannot be read may still run.
        let unknown = [task("a", true, false)];
        assert_eq!(action_for("pi-foo-0", &ours, Some(false), &unknown), LeftoverAction::Report(vec!["a".into()]));
    }

    #[test]
    fn a_session_without_proof_of_ownership_is_kept() {
        let dead = [task("a", true, true)];
        let ours = ownership("me", "/w/foo");
        for other_owner in [
            ownership("me", "/w/foo-bar"),
            ownership("me", "/elsewhere/foo"),
            ownership("you", "/w/foo"),
            ownership("", "/w/foo"),
            ownership("", ""),
        ] {
            assert_eq!(
                action_for("pi-foo-0", &other_owner, Some(false), &dead),
                LeftoverAction::Keep,
                "{other_owner:?}"
            );
        }
        assert_eq!(action_for("pi-foo-1", &ours, Some(false), &dead), LeftoverAction::Keep);
        assert_eq!(action_for("pi-foo-0", &ours, Some(true), &dead), LeftoverAction::Keep);
        assert_eq!(action_for("pi-foo-0", &ours, None, &dead), LeftoverAction::Keep);
        assert_eq!(action_for("pi-foo-0", &ours, Some(false), &[]), LeftoverAction::Keep);
        let nameless = ownership("", "");
        let ownerless = leftover("pi-foo-0", &nameless, Some(false), &dead);
        let current = "pi-foo-1".parse().expect("a name");
        assert_eq!(ownerless.action(&ownership("", ""), &current), LeftoverAction::Keep);
    }

    #[test]
    fn session_title_is_the_title_or_the_first_message() {
        assert_eq!(session_title(Some("Fix the build"), Some("please fix")).as_deref(), Some("Fix the build"));
        assert_eq!(session_title(Some("  "), Some("please\n\tfix  it")).as_deref(), Some("please fix it"));
        assert_eq!(session_title(None, None), None);
        let long = session_title(None, Some(&"wörd ".repeat(40))).expect("a title");
        assert_eq!(long.chars().count(), 80);
        assert!(long.ends_with('…'), "{long}");
        // The limit counts characters, not columns or bytes.
        let wide = "語".repeat(80);
        assert_eq!(session_title(Some(&wide), None), Some(wide.clone()));
        assert_eq!(session_title(Some(&format!("{wide}語")), None), Some(format!("{}…", "語".repeat(79))));
        assert_eq!(session_title(Some("a\u{1b}[31m"), None).as_deref(), Some("a\\x1b[31m"));
    }

    #[test]
    fn notices_name_sessions_and_tasks() {
        let tasks = ["api".to_owned(), "tests".to_owned()];
        assert_eq!(
            still_active_notice("pi-foo-0", &tasks, Some("Fix the build")),
            "tmux session pi-foo-0 (Fix the build) still has 2 tasks running: api, tests"
        );
        assert_eq!(
            still_active_notice("pi-foo-0", &tasks[..1], None),
            "tmux session pi-foo-0 still has 1 task running: api"
        );
        assert_eq!(removed_notice(&[]), None);
        assert_eq!(removed_notice(&["a".into()]).as_deref(), Some("removed inactive tmux session a"));
    }
}
