//! From what the hooks are to what they should be.

use super::shown::{Arrays, Entries, Shown};
use super::{Hooks, hint_file_of};
use crate::command::Command;

/// Where we put ours: no user counts that far by hand.
const FIRST_INDEX: u32 = 4242;

/// One change to a hook array, `None` for the global one.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Set {
        session: Option<u32>,
        name: String,
        index: u32,
        command: String,
    },
    Unset {
        session: Option<u32>,
        name: String,
        index: u32,
    },
    /// An empty array of a session would still hide the global one.
    Forget {
        session: u32,
        name: String,
    },
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan(Vec<Step>);

impl Plan {
    pub(super) fn install(hooks: &Hooks, shown: &Shown) -> Self {
        let mut plan = Self::default();
        plan.settle(hooks, None, &shown.global, true);
        for (id, arrays) in &shown.sessions {
            plan.settle(hooks, Some(*id), arrays, true);
        }
        plan
    }

    pub(super) fn remove(hooks: &Hooks, shown: &Shown) -> Self {
        let mut plan = Self::default();
        plan.settle(hooks, None, &shown.global, false);
        for (id, arrays) in &shown.sessions {
            plan.settle(hooks, Some(*id), arrays, false);
        }
        plan
    }

    fn settle(&mut self, hooks: &Hooks, session: Option<u32>, arrays: &Arrays, wanted: bool) {
        for (name, entries) in arrays {
            let (ours, theirs): (Entries, Entries) = entries.clone().into_iter().partition(|(_, v)| hooks.is_ours(v));
            let abandoned: Vec<u32> = theirs.iter().filter(|(_, v)| is_abandoned(v)).map(|(n, _)| *n).collect();
            let others = theirs.len() - abandoned.len();
            if let Some(id) = session
                && others == 0
            {
                if !entries.is_empty() {
                    self.0.push(Step::Forget { session: id, name: name.clone() });
                }
                continue;
            }
            let keep = ours.keys().next().filter(|_| wanted);
            let surplus = ours.keys().filter(|n| Some(*n) != keep).copied().chain(abandoned);
            self.0.extend(surplus.map(|index| Step::Unset { session, name: name.clone(), index }));
            if wanted && keep.is_none() {
                let index = (FIRST_INDEX..).find(|n| !entries.contains_key(n)).unwrap_or(FIRST_INDEX);
                self.0.push(Step::Set { session, name: name.clone(), index, command: hooks.command.clone() });
            }
        }
    }

    pub(super) fn commands(self) -> Vec<Command> {
        self.0.into_iter().map(Step::command).collect()
    }
}

/// A hook of an agtmux whose files are gone: it can only cause errors.
fn is_abandoned(value: &str) -> bool {
    hint_file_of(value).is_some_and(|file| !file.exists())
}

impl Step {
    fn command(self) -> Command {
        let place = |session: Option<u32>, flags: &str| match session {
            None => Command::new("set-hook").arg(format!("-g{flags}")),
            Some(id) if flags.is_empty() => Command::new("set-hook").arg("-t").arg(format!("${id}")),
            Some(id) => Command::new("set-hook").arg(format!("-{flags}")).arg("-t").arg(format!("${id}")),
        };
        match self {
            Self::Set { session, name, index, command } => {
                place(session, "").arg(format!("{name}[{index}]")).arg(command)
            }
            Self::Unset { session, name, index } => place(session, "u").arg(format!("{name}[{index}]")),
            Self::Forget { session, name } => place(Some(session), "u").arg(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn hooks() -> Hooks {
        Hooks::new(Path::new("/state/a.agtmux-hint")).expect("a plain path")
    }

    fn arrays(entries: &[(u32, &str)]) -> Arrays {
        Arrays::from([("alert-bell".into(), entries.iter().map(|(n, v)| (*n, (*v).to_owned())).collect())])
    }

    fn set(session: Option<u32>, index: u32) -> Step {
        Step::Set { session, name: "alert-bell".into(), index, command: hooks().command }
    }

    #[test]
    fn ours_goes_beside_theirs_and_only_once() {
        let (hooks, ours) = (hooks(), hooks().command);
        let shown = |entries: &[(u32, &str)]| Shown { global: arrays(entries), ..Shown::default() };
        assert_eq!(Plan::install(&hooks, &shown(&[(0, "theirs")])).0, [set(None, 4242)]);
        assert_eq!(Plan::install(&hooks, &shown(&[(4242, "theirs")])).0, [set(None, 4243)]);
        assert_eq!(Plan::install(&hooks, &shown(&[(4242, &ours)])).0, []);
        let twice = Plan::install(&hooks, &shown(&[(4242, &ours), (4243, &ours)])).0;
        assert_eq!(twice, [Step::Unset { session: None, name: "alert-bell".into(), index: 4243 }]);
    }

    #[test]
    fn a_session_gets_ours_only_where_it_hides_the_global_one() {
        let (hooks, ours) = (hooks(), hooks().command);
        let shown = |entries: &[(u32, &str)]| Shown { global: Arrays::new(), sessions: [(3, arrays(entries))].into() };
        assert_eq!(Plan::install(&hooks, &shown(&[(0, "theirs")])).0, [set(Some(3), 4242)]);
        assert_eq!(Plan::install(&hooks, &shown(&[])).0, []);
        let alone = Plan::install(&hooks, &shown(&[(4242, &ours)])).0;
        assert_eq!(
            alone,
            [Step::Forget { session: 3, name: "alert-bell".into() }],
            "ours alone must not hide the global one"
        );
    }

    #[test]
    fn removal_takes_ours_and_what_was_abandoned() {
        let (hooks, ours) = (hooks(), hooks().command);
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("b.agtmux-hint");
        std::fs::write(&file, "").expect("written");
        let abandoned = Hooks::new(Path::new("/nowhere/at/all.agtmux-hint")).expect("a plain path").command;
        let alive = Hooks::new(&file).expect("a plain path").command;
        let global = arrays(&[(0, "theirs"), (4242, &ours), (4243, &abandoned), (4244, &alive)]);
        let plan = Plan::remove(&hooks, &Shown { global, ..Shown::default() });
        let unset = |index| Step::Unset { session: None, name: "alert-bell".into(), index };
        assert_eq!(plan.0, [unset(4242), unset(4243)], "another daemon's hooks stay");
    }
}
