//! What becomes of the task sessions that earlier sessions of a harness have left.
//!
//! A session's name proves nothing: `pi-foo-` is also how those of project `foo-bar` begin, and two checkouts may share a name. What
//! counts is what was written down with the session when it was made.

use super::look::TaskLook;
use super::session::TaskSession;
use crate::sanitize;

/// A title is cut to so many characters.
const TITLE: usize = 80;

/// Whose a task session is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keeper {
    /// Empty where nobody has written it down.
    pub owner: String,
    /// The whole path.
    pub project: String,
}

/// A task session that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSession<'a> {
    pub name: &'a str,
    pub keeper: &'a Keeper,
    /// Whether the program that it was made for still runs. None if that cannot be told.
    pub keeper_lives: Option<bool>,
    /// Somebody looks at it.
    pub attached: bool,
    pub tasks: &'a [TaskLook],
    /// The windows in which any pane lives, also one that is nobody's task.
    pub live: &'a [String],
}

/// What is to be done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is somebody else's, or in use, or that cannot be told: it is not touched and not spoken of.
    Left,
    /// Nobody uses it and nothing runs in it.
    Removed,
    /// Nobody uses it, and these tasks still run in it.
    Reported(Vec<String>),
}

impl FoundSession<'_> {
    pub fn fate(&self, asking: &Keeper, asking_session: &TaskSession) -> Fate {
        let is_ours = !asking.owner.is_empty() && self.keeper == asking;
        let in_use = self.attached || self.keeper_lives != Some(false);
        if !is_ours || in_use || self.name == asking_session.as_str() || self.tasks.is_empty() {
            return Fate::Left;
        }
        let may_run = |task: &&TaskLook| !(task.pane_state_known && task.dead);
        let tasks = self.tasks.iter().filter(may_run).map(|task| &task.window_name);
        let mut running: Vec<String> = Vec::new();
        for name in tasks.chain(self.live) {
            if !running.contains(name) {
                running.push(name.clone());
            }
        }
        if running.is_empty() { Fate::Removed } else { Fate::Reported(running) }
    }
}

/// How a harness session is named to a person: its title, else the first thing that the user said in it.
pub fn session_title(title: Option<&str>, first_message: Option<&str>) -> Option<String> {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut names = [title, first_message].into_iter().flatten().map(one_line);
    names.find(|name| !name.is_empty()).map(|name| cut(sanitize::for_terminal(&name)))
}

fn cut(title: String) -> String {
    match title.char_indices().nth(TITLE - 1) {
        Some((last, _)) if title.chars().count() > TITLE => format!("{}…", &title[..last]),
        _ => title,
    }
}

/// What the person is told of a session in which something still runs.
pub fn still_active(session: &str, tasks: &[String], title: Option<&str>) -> String {
    let named = title.map(|title| format!(" ({title})")).unwrap_or_default();
    let count = match tasks.len() {
        1 => "1 task".to_owned(),
        count => format!("{count} tasks"),
    };
    format!("tmux session {session}{named} still has {count} running: {}", tasks.join(", "))
}

/// What the person is told of sessions that were cleaned up.
pub fn removed(sessions: &[String]) -> Option<String> {
    let what = if sessions.len() == 1 { "session" } else { "sessions" };
    (!sessions.is_empty()).then(|| format!("removed inactive tmux {what} {}", sessions.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::WindowId;

    fn keeper(owner: &str, project: &str) -> Keeper {
        Keeper { owner: owner.into(), project: project.into() }
    }

    fn task(name: &str, dead: bool, known: bool) -> TaskLook {
        TaskLook {
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

    fn fate(name: &str, of: &Keeper, keeper_lives: Option<bool>, tasks: &[TaskLook]) -> Fate {
        let here: TaskSession = "pi-foo-1".parse().expect("a name");
        found(name, of, keeper_lives, tasks).fate(&keeper("me", "/w/foo"), &here)
    }

    fn found<'a>(name: &'a str, of: &'a Keeper, keeper_lives: Option<bool>, tasks: &'a [TaskLook]) -> FoundSession<'a> {
        FoundSession { name, keeper: of, keeper_lives, attached: false, tasks, live: &[] }
    }

    #[test]
    fn what_lives_beside_an_ended_task_is_left_alone() {
        let (ours, dead) = (keeper("me", "/w/foo"), [task("a", true, true), task("b", true, true)]);
        let here: TaskSession = "pi-foo-1".parse().expect("a name");
        let left = found("pi-foo-0", &ours, Some(false), &dead);
        let lives = FoundSession { live: &["b".into(), "mine".into()], ..left.clone() };
        assert_eq!(lives.fate(&ours, &here), Fate::Reported(vec!["b".into(), "mine".into()]));
        assert_eq!(FoundSession { attached: true, ..left }.fate(&ours, &here), Fate::Left);
    }

    #[test]
    fn what_is_over_is_removed_and_what_runs_is_reported() {
        let ours = keeper("me", "/w/foo");
        let dead = [task("a", true, true), task("b", true, true)];
        assert_eq!(fate("pi-foo-0", &ours, Some(false), &dead), Fate::Removed);
        let mixed = [task("a", true, true), task("b", false, true)];
        assert_eq!(fate("pi-foo-0", &ours, Some(false), &mixed), Fate::Reported(vec!["b".into()]));
        // What cannot be read may run.
        let unknown = [task("a", true, false)];
        assert_eq!(fate("pi-foo-0", &ours, Some(false), &unknown), Fate::Reported(vec!["a".into()]));
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
            assert_eq!(fate("pi-foo-0", &strange, Some(false), &dead), Fate::Left, "{strange:?}");
        }
        assert_eq!(fate("pi-foo-1", &ours, Some(false), &dead), Fate::Left);
        assert_eq!(fate("pi-foo-0", &ours, Some(true), &dead), Fate::Left);
        assert_eq!(fate("pi-foo-0", &ours, None, &dead), Fate::Left);
        assert_eq!(fate("pi-foo-0", &ours, Some(false), &[]), Fate::Left);
        let nameless = keeper("", "");
        let nobody = found("pi-foo-0", &nameless, Some(false), &dead);
        let here = "pi-foo-1".parse().expect("a name");
        assert_eq!(nobody.fate(&keeper("", ""), &here), Fate::Left);
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
            still_active("pi-foo-0", &tasks, Some("Fix the build")),
            "tmux session pi-foo-0 (Fix the build) still has 2 tasks running: api, tests"
        );
        assert_eq!(still_active("pi-foo-0", &tasks[..1], None), "tmux session pi-foo-0 still has 1 task running: api");
        assert_eq!(removed(&[]), None);
        assert_eq!(removed(&["a".into()]).as_deref(), Some("removed inactive tmux session a"));
    }
}
