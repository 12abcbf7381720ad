//! What becomes of the task sessions that earlier sessions of a harness have left.
//!
//! A session's name proves nothing: `pi-foo-` is also how those of project `foo-bar` begin, and two checkouts may share a name. What
//! counts is what was written down with the session when it was made.

use super::session::TaskSessionName;
use super::snapshot::TaskSnapshot;
use crate::sanitize;

/// A title is cut to so many characters.
const MAX_TITLE_CHARS: usize = 80;

/// Whose a task session is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionOwnership {
    /// Empty where nobody has written it down.
    pub owner: String,
    /// The whole path.
    pub project: String,
}

/// A task session that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftoverSession<'a> {
    pub name: &'a str,
    pub owner: &'a SessionOwnership,
    /// Whether the program that it was made for still runs. None if that cannot be told.
    pub owner_alive: Option<bool>,
    /// Somebody looks at it.
    pub attached: bool,
    pub tasks: &'a [TaskSnapshot],
    /// The windows in which any pane lives, also one that is nobody's task.
    pub live_windows: &'a [String],
}

/// What is to be done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftoverAction {
    /// It is somebody else's, or in use, or that cannot be told: it is not touched and not spoken of.
    Keep,
    /// Nobody uses it and nothing runs in it.
    Remove,
    /// Nobody uses it, and these tasks still run in it.
    Report(Vec<String>),
}

impl LeftoverSession<'_> {
    pub fn action(&self, asking: &SessionOwnership, asking_session: &TaskSessionName) -> LeftoverAction {
        let is_ours = !asking.owner.is_empty() && self.owner == asking;
        let in_use = self.attached || self.owner_alive != Some(false);
        if !is_ours || in_use || self.name == asking_session.as_str() || self.tasks.is_empty() {
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

/// How a harness session is named to a person: its title, else the first thing that the user said in it.
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

/// What the person is told of a session in which something still runs.
pub fn still_active_notice(session: &str, tasks: &[String], title: Option<&str>) -> String {
    let named = title.map(|title| format!(" ({title})")).unwrap_or_default();
    let count = match tasks.len() {
        1 => "1 task".to_owned(),
        count => format!("{count} tasks"),
    };
    format!("tmux session {session}{named} still has {count} running: {}", tasks.join(", "))
}

/// What the person is told of sessions that were cleaned up.
pub fn removed_notice(sessions: &[String]) -> Option<String> {
    let what = if sessions.len() == 1 { "session" } else { "sessions" };
    (!sessions.is_empty()).then(|| format!("removed inactive tmux {what} {}", sessions.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::WindowId;

    fn keeper(owner: &str, project: &str) -> SessionOwnership {
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
        }
    }

    fn fate(name: &str, of: &SessionOwnership, keeper_lives: Option<bool>, tasks: &[TaskSnapshot]) -> LeftoverAction {
        let here: TaskSessionName = "pi-foo-1".parse().expect("a name");
        found(name, of, keeper_lives, tasks).action(&keeper("me", "/w/foo"), &here)
    }

    fn found<'a>(
        name: &'a str,
        of: &'a SessionOwnership,
        keeper_lives: Option<bool>,
        tasks: &'a [TaskSnapshot],
    ) -> LeftoverSession<'a> {
        LeftoverSession { name, owner: of, owner_alive: keeper_lives, attached: false, tasks, live_windows: &[] }
    }

    #[test]
    fn what_lives_beside_an_ended_task_is_left_alone() {
        let (ours, dead) = (keeper("me", "/w/foo"), [task("a", true, true), task("b", true, true)]);
        let here: TaskSessionName = "pi-foo-1".parse().expect("a name");
        let left = found("pi-foo-0", &ours, Some(false), &dead);
        let lives = LeftoverSession { live_windows: &["b".into(), "mine".into()], ..left.clone() };
        assert_eq!(lives.action(&ours, &here), LeftoverAction::Report(vec!["b".into(), "mine".into()]));
        assert_eq!(LeftoverSession { attached: true, ..left }.action(&ours, &here), LeftoverAction::Keep);
    }

    #[test]
    fn what_is_over_is_removed_and_what_runs_is_reported() {
        let ours = keeper("me", "/w/foo");
        let dead = [task("a", true, true), task("b", true, true)];
        assert_eq!(fate("pi-foo-0", &ours, Some(false), &dead), LeftoverAction::Remove);
        let mixed = [task("a", true, true), task("b", false, true)];
        assert_eq!(fate("pi-foo-0", &ours, Some(false), &mixed), LeftoverAction::Report(vec!["b".into()]));
        // What cannot be read may run.
        let unknown = [task("a", true, false)];
        assert_eq!(fate("pi-foo-0", &ours, Some(false), &unknown), LeftoverAction::Report(vec!["a".into()]));
    }

    #[test]
    fn what_is_not_proved_to_be_ours_and_left_is_not_touched() {
        let dead = [task("a", true, true)];
        let ours = keeper("me", "/w/foo");
        for strange in [
            keeper("me", "/w/foo-bar"),
            keeper("me", "/elsewhere/foo"),
            keeper("you", "/w/foo"),
            keeper("", "/w/foo"),
            keeper("", ""),
        ] {
            assert_eq!(fate("pi-foo-0", &strange, Some(false), &dead), LeftoverAction::Keep, "{strange:?}");
        }
        assert_eq!(fate("pi-foo-1", &ours, Some(false), &dead), LeftoverAction::Keep);
        assert_eq!(fate("pi-foo-0", &ours, Some(true), &dead), LeftoverAction::Keep);
        assert_eq!(fate("pi-foo-0", &ours, None, &dead), LeftoverAction::Keep);
        assert_eq!(fate("pi-foo-0", &ours, Some(false), &[]), LeftoverAction::Keep);
        let nameless = keeper("", "");
        let nobody = found("pi-foo-0", &nameless, Some(false), &dead);
        let here = "pi-foo-1".parse().expect("a name");
        assert_eq!(nobody.action(&keeper("", ""), &here), LeftoverAction::Keep);
    }

    #[test]
    fn a_session_is_called_by_its_title_else_by_its_first_message() {
        assert_eq!(session_title(Some("Fix the build"), Some("please fix")).as_deref(), Some("Fix the build"));
        assert_eq!(session_title(Some("  "), Some("please\n\tfix  it")).as_deref(), Some("please fix it"));
        assert_eq!(session_title(None, None), None);
        let long = session_title(None, Some(&"wörd ".repeat(40))).expect("a title");
        assert_eq!(long.chars().count(), 80);
        assert!(long.ends_with('…'), "{long}");
        // As many characters, however wide they are and however many bytes they have.
        let wide = "語".repeat(80);
        assert_eq!(session_title(Some(&wide), None), Some(wide.clone()));
        assert_eq!(session_title(Some(&format!("{wide}語")), None), Some(format!("{}…", "語".repeat(79))));
        assert_eq!(session_title(Some("a\u{1b}[31m"), None).as_deref(), Some("a\\x1b[31m"));
    }

    #[test]
    fn notices_say_what_was_found() {
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
