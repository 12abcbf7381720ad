//! Properties that hold for any sequence of inputs.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::fixture::{SessionFixture, run};
use crate::ids::WindowId;
use crate::task::{ExitSignal, PlannedRemoval, TaskEvent, TaskEventKind, TaskExit, TaskInput};

/// One random step of the simulation. The first number of a step selects one of a few slots, except for `Wait`.
#[derive(Debug, Clone)]
enum PropertyStep {
    Launch(u32),
    Exit(u32, i32),
    /// Like `Exit`, but reports the exit as `ExitConfirmed`.
    Finish(u32, i32),
    /// The process ends. No input reports the exit; only snapshots show it.
    Die(u32, i32),
    Ring(u32, u64),
    /// The window is closed. If the flag is set, the exit of its process is reported too.
    Kill(u32, bool),
    Ask(u32, bool),
    Snapshot,
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
        1 => (slot.clone(), any::<bool>()).prop_map(|(slot, reported)| PropertyStep::Kill(slot, reported)),
        2 => (slot, any::<bool>()).prop_map(|(slot, shows_prompt)| PropertyStep::Ask(slot, shows_prompt)),
        5 => Just(PropertyStep::Snapshot),
        3 => (1..600i64).prop_map(PropertyStep::Wait),
        2 => Just(PropertyStep::Repeat),
        1 => Just(PropertyStep::Restart),
        1 => Just(PropertyStep::Prune),
        1 => Just(PropertyStep::KillAll),
    ]
}

/// What actually happened to a run.
#[derive(Debug, Default)]
struct ActualRun {
    code: Option<i32>,
    bells: u64,
    killed: bool,
    removed: bool,
}

struct PropertyRun {
    fixture: SessionFixture,
    truth: BTreeMap<String, ActualRun>,
    /// The run that is live in each slot.
    current: BTreeMap<u32, String>,
    facts: Vec<TaskInput>,
    events: Vec<TaskEvent>,
    launches: u32,
    /// The window of each slot. A slot whose window is gone gets a window with a new id, because tmux never reuses a
    /// window id.
    windows: BTreeMap<u32, u32>,
}

impl PropertyRun {
    fn new() -> Self {
        Self {
            fixture: SessionFixture::new(),
            truth: BTreeMap::new(),
            current: BTreeMap::new(),
            facts: Vec::new(),
            events: Vec::new(),
            launches: 0,
            windows: BTreeMap::new(),
        }
    }

    fn apply(&mut self, input: TaskInput) {
        self.events.extend(self.fixture.events(input));
    }

    fn fact(&mut self, input: TaskInput) {
        self.facts.push(input.clone());
        self.apply(input);
    }

    fn launch(&mut self, slot: u32) {
        if self.current.contains_key(&slot) {
            return;
        }
        self.launches += 1;
        let id = format!("r{}", self.launches);
        let reused = self.windows.get(&slot).filter(|id| self.fixture.windows.iter().any(|w| w.window_id.0 == **id));
        let window = reused.copied().unwrap_or(100 + self.launches);
        self.windows.insert(slot, window);
        self.fixture.close(window);
        self.fixture.windows.push(super::fixture::window(window, "t"));
        self.fixture.window(window).run = Some(run(&id));
        self.truth.insert(id.clone(), ActualRun::default());
        self.fact(TaskInput::Started(crate::task::LaunchedRun {
            run: run(&id),
            server: self.fixture.server,
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
        self.fixture.die(window, TaskExit::with_code(code));
        self.fixture.window(window).bell_count = bells;
        if fact {
            self.fact(TaskInput::Exited {
                run: run(&id),
                exit: TaskExit::with_code(code),
                bells,
                output: String::new(),
            });
        }
        // Apply a snapshot that shows the exit before the slot is used again.
        let snapshot = self.fixture.snapshot();
        self.apply(TaskInput::Snapshot(snapshot));
    }

    fn exit_confirmed(&mut self, slot: u32, code: i32) {
        let Some(id) = self.current.remove(&slot) else { return };
        let truth = self.truth.get_mut(&id).expect("known");
        truth.code = Some(code);
        let bells = truth.bells;
        let window = self.windows[&slot];
        self.fixture.die(window, TaskExit::with_code(code));
        self.fixture.window(window).bell_count = bells;
        self.fact(TaskInput::ExitConfirmed {
            run: run(&id),
            exit: TaskExit::with_code(code),
            bells,
            output: String::new(),
        });
    }

    fn apply_step(&mut self, step: PropertyStep) {
        match step {
            PropertyStep::Launch(slot) => self.launch(slot),
            PropertyStep::Exit(slot, code) => self.end(slot, code, true),
            PropertyStep::Die(slot, code) => self.end(slot, code, false),
            PropertyStep::Finish(slot, code) => self.exit_confirmed(slot, code),
            PropertyStep::Ring(slot, bells) => {
                let Some(id) = self.current.get(&slot).cloned() else { return };
                let truth = self.truth.get_mut(&id).expect("known");
                truth.bells += bells;
                let bells = truth.bells;
                self.fact(TaskInput::BellRang { run: run(&id), bells, output: String::new() });
            }
            PropertyStep::Kill(slot, reported) => {
                let Some(id) = self.current.remove(&slot) else { return };
                self.truth.get_mut(&id).expect("known").killed = true;
                self.fixture.close(self.windows[&slot]);
                if reported {
                    let exit = TaskExit::by_signal(ExitSignal(1));
                    self.fact(TaskInput::Exited { run: run(&id), exit, bells: 0, output: String::new() });
                    self.apply_step(PropertyStep::Snapshot);
                }
            }
            PropertyStep::Ask(slot, shows_prompt) => {
                if self.current.contains_key(&slot) {
                    self.fixture
                        .show_prompt(self.windows[&slot], if shows_prompt { "Proceed? [y/N] " } else { "working" });
                }
            }
            PropertyStep::Snapshot => {
                let snapshot = self.fixture.snapshot();
                self.apply(TaskInput::Snapshot(snapshot));
            }
            PropertyStep::Wait(millis) => {
                self.fixture.wait(millis);
                self.apply(TaskInput::Tick);
            }
            PropertyStep::Repeat => self.facts.clone().into_iter().for_each(|fact| self.apply(fact)),
            PropertyStep::Restart => self.fixture.restart(),
            PropertyStep::Prune => {
                let dead = self.fixture.windows.iter().filter(|window| window.dead);
                let dead: Vec<WindowId> = dead.map(|window| window.window_id).collect();
                self.apply(TaskInput::RemovalPlanned(PlannedRemoval::PruneDead(dead)));
                self.fixture.windows.retain(|window| !window.dead);
            }
            PropertyStep::KillAll => {
                // Apply a snapshot that shows earlier kills before all windows are killed.
                self.apply_step(PropertyStep::Snapshot);
                self.apply(TaskInput::RemovalPlanned(PlannedRemoval::KillAll));
                self.fixture.windows.clear();
                for (_, id) in std::mem::take(&mut self.current) {
                    self.truth.get_mut(&id).expect("known").removed = true;
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
    fn every_run_is_reported_as_it_happened(steps in proptest::collection::vec(step(), 1..60)) {
        let mut simulation = PropertyRun::new();
        for step in steps {
            simulation.apply_step(step);
        }
        for _ in 0..3 {
            simulation.apply_step(PropertyStep::Snapshot);
            simulation.apply_step(PropertyStep::Wait(1500));
        }
        for (id, truth) in &simulation.truth {
            prop_assert_eq!(simulation.of(id, TaskEventKind::Started).len(), 1, "starts of {}", id);
            let exits: Vec<_> = simulation.of(id, TaskEventKind::Exited).iter().map(|event| event.exit_code).collect();
            let expected: Vec<_> = truth.code.map(Some).into_iter().collect();
            prop_assert_eq!(exits, expected, "exits of {}", id);
            let gone = simulation.of(id, TaskEventKind::Disappeared).len();
            prop_assert_eq!(gone, usize::from(truth.killed), "disappearances of {}", id);
            let bells = simulation.of(id, TaskEventKind::Notify).iter().filter_map(|event| event.bell_count).max();
            prop_assert_eq!(bells.unwrap_or(0), truth.bells, "bells of {}", id);
        }
        order_holds(&simulation)?;
    }
}

/// No event of a run precedes its start or follows its end.
fn order_holds(simulation: &PropertyRun) -> Result<(), TestCaseError> {
    for id in simulation.truth.keys() {
        let kinds: Vec<_> =
            simulation.events.iter().filter(|event| event.run_id == Some(run(id))).map(|event| event.kind).collect();
        prop_assert_eq!(kinds.first(), Some(&TaskEventKind::Started));
        let ends = [TaskEventKind::Exited, TaskEventKind::Disappeared];
        if let Some(end) = kinds.iter().position(|kind| ends.contains(kind)) {
            prop_assert_eq!(end, kinds.len() - 1, "{:?}", kinds);
        }
    }
    Ok(())
}
