//! What holds whatever happens, in whatever order it is heard of.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::fixture::{SessionFixture, run};
use crate::ids::WindowId;
use crate::task::{ExitSignal, PlannedRemoval, TaskEvent, TaskEventKind, TaskExit, TaskInput};

/// Something that happens to one of a few slots.
#[derive(Debug, Clone)]
enum PropertyStep {
    Launch(u32),
    Exit(u32, i32),
    /// The same, known to have come of itself.
    Finish(u32, i32),
    /// An end of which the process itself tells nothing.
    Die(u32, i32),
    Ring(u32, u64),
    /// The window is closed; the process may be heard to have ended by that.
    Kill(u32, bool),
    Ask(u32, bool),
    Look,
    Wait(i64),
    Repeat,
    Restart,
    Prune,
    KillAll,
}

fn step() -> impl Strategy<Value = PropertyStep> {
    let slot = 0..4u32;
    prop_oneof![
        4 => slot.clone().prop_map(PropertyStep::Launch),
        4 => (slot.clone(), 0..256i32).prop_map(|(slot, code)| PropertyStep::Exit(slot, code)),
        4 => (slot.clone(), 0..256i32).prop_map(|(slot, code)| PropertyStep::Finish(slot, code)),
        2 => (slot.clone(), 0..256i32).prop_map(|(slot, code)| PropertyStep::Die(slot, code)),
        3 => (slot.clone(), 1..4u64).prop_map(|(slot, bells)| PropertyStep::Ring(slot, bells)),
        1 => (slot.clone(), any::<bool>()).prop_map(|(slot, heard)| PropertyStep::Kill(slot, heard)),
        2 => (slot, any::<bool>()).prop_map(|(slot, asks)| PropertyStep::Ask(slot, asks)),
        5 => Just(PropertyStep::Look),
        3 => (1..600i64).prop_map(PropertyStep::Wait),
        2 => Just(PropertyStep::Repeat),
        1 => Just(PropertyStep::Restart),
        1 => Just(PropertyStep::Prune),
        1 => Just(PropertyStep::KillAll),
    ]
}

/// What really happened to a run.
#[derive(Debug, Default)]
struct ExpectedRun {
    code: Option<i32>,
    bells: u64,
    killed: bool,
    taken: bool,
}

struct PropertyRun {
    scene: SessionFixture,
    truth: BTreeMap<String, ExpectedRun>,
    /// The run in each slot, until it ends.
    current: BTreeMap<u32, String>,
    facts: Vec<TaskInput>,
    events: Vec<TaskEvent>,
    launches: u32,
    /// The window of each slot. tmux gives no id twice.
    windows: BTreeMap<u32, u32>,
}

impl PropertyRun {
    fn new() -> Self {
        Self {
            scene: SessionFixture::new(),
            truth: BTreeMap::new(),
            current: BTreeMap::new(),
            facts: Vec::new(),
            events: Vec::new(),
            launches: 0,
            windows: BTreeMap::new(),
        }
    }

    fn tell(&mut self, input: TaskInput) {
        self.events.extend(self.scene.events(input));
    }

    fn fact(&mut self, input: TaskInput) {
        self.facts.push(input.clone());
        self.tell(input);
    }

    fn launch(&mut self, slot: u32) {
        if self.current.contains_key(&slot) {
            return;
        }
        self.launches += 1;
        let id = format!("r{}", self.launches);
        let reused = self.windows.get(&slot).filter(|id| self.scene.windows.iter().any(|w| w.window_id.0 == **id));
        let window = reused.copied().unwrap_or(100 + self.launches);
        self.windows.insert(slot, window);
        self.scene.close(window);
        self.scene.windows.push(super::fixture::window(window, "t"));
        self.scene.window(window).run = Some(run(&id));
        self.truth.insert(id.clone(), ExpectedRun::default());
        self.fact(TaskInput::Started(crate::task::LaunchedRun {
            run: run(&id),
            server: self.scene.server,
            window: WindowId(window),
            pane: crate::ids::PaneId(window),
            task: "t".into(),
        }));
        self.current.insert(slot, id);
    }

    fn end(&mut self, slot: u32, code: i32, fact: bool) {
        let Some(id) = self.current.remove(&slot) else { return };
        let truth = self.truth.get_mut(&id).expect("known");
        truth.code = Some(code);
        let bells = truth.bells;
        let window = self.windows[&slot];
        self.scene.die(window, TaskExit::with_code(code));
        self.scene.window(window).bell_count = bells;
        if fact {
            self.fact(TaskInput::Exited {
                run: run(&id),
                exit: TaskExit::with_code(code),
                bells,
                output: String::new(),
            });
        }
        // Whoever takes the slot next has looked at it before.
        let look = self.scene.snapshot();
        self.tell(TaskInput::Snapshot(look));
    }

    fn finish(&mut self, slot: u32, code: i32) {
        let Some(id) = self.current.remove(&slot) else { return };
        let truth = self.truth.get_mut(&id).expect("known");
        truth.code = Some(code);
        let bells = truth.bells;
        let window = self.windows[&slot];
        self.scene.die(window, TaskExit::with_code(code));
        self.scene.window(window).bell_count = bells;
        self.fact(TaskInput::ExitConfirmed {
            run: run(&id),
            exit: TaskExit::with_code(code),
            bells,
            output: String::new(),
        });
    }

    fn play(&mut self, step: PropertyStep) {
        match step {
            PropertyStep::Launch(slot) => self.launch(slot),
            PropertyStep::Exit(slot, code) => self.end(slot, code, true),
            PropertyStep::Die(slot, code) => self.end(slot, code, false),
            PropertyStep::Finish(slot, code) => self.finish(slot, code),
            PropertyStep::Ring(slot, bells) => {
                let Some(id) = self.current.get(&slot).cloned() else { return };
                let truth = self.truth.get_mut(&id).expect("known");
                truth.bells += bells;
                let bells = truth.bells;
                self.fact(TaskInput::BellRang { run: run(&id), bells, output: String::new() });
            }
            PropertyStep::Kill(slot, heard) => {
                let Some(id) = self.current.remove(&slot) else { return };
                self.truth.get_mut(&id).expect("known").killed = true;
                self.scene.close(self.windows[&slot]);
                if heard {
                    let exit = TaskExit::by_signal(ExitSignal(1));
                    self.fact(TaskInput::Exited { run: run(&id), exit, bells: 0, output: String::new() });
                    self.play(PropertyStep::Look);
                }
            }
            PropertyStep::Ask(slot, asks) => {
                if self.current.contains_key(&slot) {
                    self.scene.show_prompt(self.windows[&slot], if asks { "Proceed? [y/N] " } else { "working" });
                }
            }
            PropertyStep::Look => {
                let look = self.scene.snapshot();
                self.tell(TaskInput::Snapshot(look));
            }
            PropertyStep::Wait(millis) => {
                self.scene.wait(millis);
                self.tell(TaskInput::Tick);
            }
            PropertyStep::Repeat => self.facts.clone().into_iter().for_each(|fact| self.tell(fact)),
            PropertyStep::Restart => self.scene.restart(),
            PropertyStep::Prune => {
                let dead = self.scene.windows.iter().filter(|window| window.dead);
                let dead: Vec<WindowId> = dead.map(|window| window.window_id).collect();
                self.tell(TaskInput::RemovalPlanned(PlannedRemoval::PruneDead(dead)));
                self.scene.windows.retain(|window| !window.dead);
            }
            PropertyStep::KillAll => {
                // What was killed before is seen before.
                self.play(PropertyStep::Look);
                self.tell(TaskInput::RemovalPlanned(PlannedRemoval::KillAll));
                self.scene.windows.clear();
                for (_, id) in std::mem::take(&mut self.current) {
                    self.truth.get_mut(&id).expect("known").taken = true;
                }
            }
        }
    }

    fn of(&self, id: &str, kind: TaskEventKind) -> Vec<&TaskEvent> {
        self.events.iter().filter(|event| event.kind == kind && event.run_id == Some(run(id))).collect()
    }
}

proptest! {
    #[test]
    fn every_run_is_told_as_it_was(steps in proptest::collection::vec(step(), 1..60)) {
        let mut play = PropertyRun::new();
        for step in steps {
            play.play(step);
        }
        for _ in 0..3 {
            play.play(PropertyStep::Look);
            play.play(PropertyStep::Wait(1500));
        }
        for (id, truth) in &play.truth {
            prop_assert_eq!(play.of(id, TaskEventKind::Started).len(), 1, "starts of {}", id);
            let exits: Vec<_> = play.of(id, TaskEventKind::Exited).iter().map(|event| event.exit_code).collect();
            let expected: Vec<_> = truth.code.map(Some).into_iter().collect();
            prop_assert_eq!(exits, expected, "exits of {}", id);
            let gone = play.of(id, TaskEventKind::Disappeared).len();
            prop_assert_eq!(gone, usize::from(truth.killed), "disappearances of {}", id);
            let bells = play.of(id, TaskEventKind::Notify).iter().filter_map(|event| event.bell_count).max();
            prop_assert_eq!(bells.unwrap_or(0), truth.bells, "bells of {}", id);
        }
        order_holds(&play)?;
    }
}

/// Nothing is told of a run before its start, and nothing but the collapsed pair after its end.
fn order_holds(play: &PropertyRun) -> Result<(), TestCaseError> {
    for id in play.truth.keys() {
        let kinds: Vec<_> =
            play.events.iter().filter(|event| event.run_id == Some(run(id))).map(|event| event.kind).collect();
        prop_assert_eq!(kinds.first(), Some(&TaskEventKind::Started));
        let ends = [TaskEventKind::Exited, TaskEventKind::Disappeared];
        if let Some(end) = kinds.iter().position(|kind| ends.contains(kind)) {
            prop_assert_eq!(end, kinds.len() - 1, "{:?}", kinds);
        }
    }
    Ok(())
}
