//! Computes the changes from the installed hooks to the wanted ones.

use super::installed::{HookArrays, HookEntries, InstalledHooks};
use super::{HintHooks, hint_file_of};
use crate::command::TmuxCommand;

/// The first index for our hooks, higher than users choose by hand.
const FIRST_INDEX: u32 = 4242;

/// One change of a hook array. `session: None` means the global array.
#[derive(Debug, PartialEq, Eq)]
enum HookChange {
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
    RemoveArray {
        session: u32,
        name: String,
    },
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HookPlan(Vec<HookChange>);

impl HookPlan {
    pub(super) fn install(hooks: &HintHooks, shown: &InstalledHooks) -> Self {
        Self::new(hooks, shown, true)
    }

    pub(super) fn remove(hooks: &HintHooks, shown: &InstalledHooks) -> Self {
        Self::new(hooks, shown, false)
    }

    fn new(hooks: &HintHooks, shown: &InstalledHooks, wanted: bool) -> Self {
        let mut plan = Self::default();
        plan.add_changes(hooks, None, &shown.global, wanted);
        for (id, arrays) in &shown.sessions {
            plan.add_changes(hooks, Some(*id), arrays, wanted);
        }
        plan
    }

    fn add_changes(&mut self, hooks: &HintHooks, session: Option<u32>, arrays: &HookArrays, wanted: bool) {
        for (name, entries) in arrays {
            let (ours, theirs): (HookEntries, HookEntries) =
                entries.clone().into_iter().partition(|(_, v)| hooks.is_ours(v));
            let abandoned: Vec<u32> = theirs.iter().filter(|(_, v)| is_abandoned(v)).map(|(n, _)| *n).collect();
            let others = theirs.len() - abandoned.len();
            if let Some(id) = session
                && others == 0
            {
                if !entries.is_empty() {
                    self.0.push(HookChange::RemoveArray { session: id, name: name.clone() });
                }
                continue;
            }
            let keep = ours.keys().next().filter(|_| wanted);
            let surplus = ours.keys().filter(|n| Some(*n) != keep).copied().chain(abandoned);
            self.0.extend(surplus.map(|index| HookChange::Unset { session, name: name.clone(), index }));
            if wanted && keep.is_none() {
                let index = (FIRST_INDEX..).find(|n| !entries.contains_key(n)).unwrap_or(FIRST_INDEX);
                self.0.push(HookChange::Set { session, name: name.clone(), index, command: hooks.command.clone() });
            }
        }
    }

    pub(super) fn commands(self) -> Vec<TmuxCommand> {
        self.0.into_iter().map(HookChange::command).collect()
    }
}

/// An agtmux hook whose file is gone. It can only cause errors.
fn is_abandoned(value: &str) -> bool {
    hint_file_of(value).is_some_and(|file| !file.exists())
}

impl HookChange {
    fn command(self) -> TmuxCommand {
        let set_hook = |session: Option<u32>, flags: &str| match session {
            None => TmuxCommand::new("set-hook").arg(format!("-g{flags}")),
            Some(id) if flags.is_empty() => TmuxCommand::new("set-hook").arg("-t").arg(format!("${id}")),
            Some(id) => TmuxCommand::new("set-hook").arg(format!("-{flags}")).arg("-t").arg(format!("${id}")),
        };
        match self {
            Self::Set { session, name, index, command } => {
                set_hook(session, "").arg(format!("{name}[{index}]")).arg(command)
            }
            Self::Unset { session, name, index } => set_hook(session, "u").arg(format!("{name}[{index}]")),
            Self::RemoveArray { session, name } => set_hook(Some(session), "u").arg(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn hooks() -> HintHooks {
        HintHooks::new(Path::new("/state/a.agtmux-hint")).expect("a plain path")
    }

    fn arrays(entries: &[(u32, &str)]) -> HookArrays {
        HookArrays::from([("alert-bell".into(), entries.iter().map(|(n, v)| (*n, (*v).to_owned())).collect())])
    }

    fn set(session: Option<u32>, index: u32) -> HookChange {
        HookChange::Set { session, name: "alert-bell".into(), index, command: hooks().command }
    }

    #[test]
    fn install_adds_one_hook_next_to_the_users_hooks() {
        let (hooks, ours) = (hooks(), hooks().command);
        let shown = |entries: &[(u32, &str)]| InstalledHooks { global: arrays(entries), ..InstalledHooks::default() };
        assert_eq!(HookPlan::install(&hooks, &shown(&[(0, "theirs")])).0, [set(None, 4242)]);
        assert_eq!(HookPlan::install(&hooks, &shown(&[(4242, "theirs")])).0, [set(None, 4243)]);
        assert_eq!(HookPlan::install(&hooks, &shown(&[(4242, &ours)])).0, []);
        let twice = HookPlan::install(&hooks, &shown(&[(4242, &ours), (4243, &ours)])).0;
        assert_eq!(twice, [HookChange::Unset { session: None, name: "alert-bell".into(), index: 4243 }]);
    }

    #[test]
    fn a_session_gets_a_hook_only_if_it_has_its_own_array() {
        let (hooks, ours) = (hooks(), hooks().command);
        let shown = |entries: &[(u32, &str)]| InstalledHooks {
            global: HookArrays::new(),
            sessions: [(3, arrays(entries))].into(),
        };
        assert_eq!(HookPlan::install(&hooks, &shown(&[(0, "theirs")])).0, [set(Some(3), 4242)]);
        assert_eq!(HookPlan::install(&hooks, &shown(&[])).0, []);
        let alone = HookPlan::install(&hooks, &shown(&[(4242, &ours)])).0;
        assert_eq!(
            alone,
            [HookChange::RemoveArray { session: 3, name: "alert-bell".into() }],
            "our hook alone must not hide the global array"
        );
    }

    #[test]
    fn remove_deletes_own_and_abandoned_hooks() {
        let (hooks, ours) = (hooks(), hooks().command);
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("b.agtmux-hint");
        std::fs::write(&file, "").expect("written");
        let abandoned = HintHooks::new(Path::new("/nowhere/at/all.agtmux-hint")).expect("a plain path").command;
        let alive = HintHooks::new(&file).expect("a plain path").command;
        let global = arrays(&[(0, "theirs"), (4242, &ours), (4243, &abandoned), (4244, &alive)]);
        let plan = HookPlan::remove(&hooks, &InstalledHooks { global, ..InstalledHooks::default() });
        let unset = |index| HookChange::Unset { session: None, name: "alert-bell".into(), index };
        assert_eq!(plan.0, [unset(4242), unset(4243)], "hooks of another daemon stay");
    }
}
