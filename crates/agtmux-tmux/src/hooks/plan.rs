//! Computes the changes that turn the installed hooks into the wanted ones.

use super::installed::{HookArrays, HookEntries, InstalledHooks};
use super::{HintHooks, hint_file_of};
use crate::command::TmuxCommand;

/// The lowest index that agtmux uses for its hooks. Users do not choose such high indexes by hand.
const FIRST_INDEX: u32 = 4242;

/// One change of a hook array. If `session` is `None`, the change applies to the global array.
#[derive(Debug, PartialEq, Eq)]
struct HookChange {
    session: Option<u32>,
    /// The name of one entry, such as `alert-bell[3]`, or of a whole array. If the array of a session contains only
    /// entries of agtmux, the whole array is removed, because an empty array would still hide the global one.
    hook: String,
    /// `None` removes the hook.
    command: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HookPlan(Vec<HookChange>);

impl HookPlan {
    /// The changes that install the agtmux hooks. If `wanted` is false, the changes remove them.
    pub(super) fn new(hooks: &HintHooks, shown: &InstalledHooks, wanted: bool) -> Self {
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
            if session.is_some() && others == 0 {
                if !entries.is_empty() {
                    self.0.push(HookChange { session, hook: name.clone(), command: None });
                }
                continue;
            }
            let change = |index: u32, command| HookChange { session, hook: format!("{name}[{index}]"), command };
            let keep = ours.keys().next().filter(|_| wanted);
            let surplus = ours.keys().filter(|n| Some(*n) != keep).copied().chain(abandoned);
            self.0.extend(surplus.map(|index| change(index, None)));
            if wanted && keep.is_none() {
                let index = (FIRST_INDEX..).find(|n| !entries.contains_key(n)).unwrap_or(FIRST_INDEX);
                self.0.push(change(index, Some(hooks.command.clone())));
            }
        }
    }

    pub(super) fn commands(self) -> Vec<TmuxCommand> {
        self.0.into_iter().map(HookChange::command).collect()
    }
}

/// Whether this is an agtmux hook whose hint file is gone. No daemon uses such a hook any more.
fn is_abandoned(value: &str) -> bool {
    hint_file_of(value).is_some_and(|file| !file.exists())
}

impl HookChange {
    fn command(self) -> TmuxCommand {
        let unset = if self.command.is_none() { "u" } else { "" };
        let set_hook = match self.session {
            None => TmuxCommand::new("set-hook").arg(format!("-g{unset}")),
            Some(id) => TmuxCommand::new("set-hook").arg(format!("-{unset}t")).arg(format!("${id}")),
        };
        self.command.into_iter().fold(set_hook.arg(self.hook), TmuxCommand::arg)
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
        HookChange { session, hook: format!("alert-bell[{index}]"), command: Some(hooks().command) }
    }

    fn unset(index: u32) -> HookChange {
        HookChange { session: None, hook: format!("alert-bell[{index}]"), command: None }
    }

    #[test]
    fn install_adds_one_hook_next_to_the_users_hooks() {
        let (hooks, ours) = (hooks(), hooks().command);
        let shown = |entries: &[(u32, &str)]| InstalledHooks { global: arrays(entries), ..InstalledHooks::default() };
        assert_eq!(HookPlan::new(&hooks, &shown(&[(0, "theirs")]), true).0, [set(None, 4242)]);
        assert_eq!(HookPlan::new(&hooks, &shown(&[(4242, "theirs")]), true).0, [set(None, 4243)]);
        assert_eq!(HookPlan::new(&hooks, &shown(&[(4242, &ours)]), true).0, []);
        let twice = HookPlan::new(&hooks, &shown(&[(4242, &ours), (4243, &ours)]), true).0;
        assert_eq!(twice, [unset(4243)]);
    }

    #[test]
    fn a_session_gets_a_hook_only_if_it_has_its_own_array() {
        let (hooks, ours) = (hooks(), hooks().command);
        let shown = |entries: &[(u32, &str)]| InstalledHooks {
            global: HookArrays::new(),
            sessions: [(3, arrays(entries))].into(),
        };
        assert_eq!(HookPlan::new(&hooks, &shown(&[(0, "theirs")]), true).0, [set(Some(3), 4242)]);
        assert_eq!(HookPlan::new(&hooks, &shown(&[]), true).0, []);
        let alone = HookPlan::new(&hooks, &shown(&[(4242, &ours)]), true).0;
        assert_eq!(
            alone,
            [HookChange { session: Some(3), hook: "alert-bell".into(), command: None }],
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
        let plan = HookPlan::new(&hooks, &InstalledHooks { global, ..InstalledHooks::default() }, false);
        assert_eq!(plan.0, [unset(4242), unset(4243)], "hooks of another daemon stay");
    }
}
