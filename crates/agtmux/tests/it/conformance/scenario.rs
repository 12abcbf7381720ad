//! The scenarios as data: the steps, the state after each step, and the states that agtmux may report before it.

use agtmux_testkit::model::ModelFailure;
use agtmux_testkit::real_agents::states::ReportedState::{
    self, Approval, Completed, Error, Idle, Input, NoAgent, Running,
};
use agtmux_testkit::real_agents::states::{AfterFailure, EvidenceMode, ScreenState};
use agtmux_testkit::real_agents::{ConformanceAgent, DialogReply, LaunchMode, SlashCommand};
use rustix::process::Signal;

use super::failure_scenarios;

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Whether `make test` runs it.
    pub(crate) in_core: bool,
    pub(crate) start_condition: StartCondition,
    /// The agents that support the scenario. Empty means all.
    pub(crate) only_agents: &'static [&'static str],
    /// The failure of the model in the scenario, and what the agents that run it do then.
    pub(crate) failure: Option<(ModelFailure, AfterFailure)>,
    pub(crate) steps: Vec<ScenarioStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StartCondition {
    /// The agent has been started and is ready.
    Ready(LaunchMode),
    /// Only a shell runs; the first step starts the agent.
    Shell { launch: LaunchMode, trusted: bool },
}

#[derive(Debug, Clone)]
pub(crate) struct ScenarioStep {
    pub(crate) name: &'static str,
    pub(crate) action: StepAction,
    pub(crate) ground_truth: GroundTruth,
    /// The states that agtmux may report after the step. The first one is the best.
    pub(crate) expected: Vec<ReportedState>,
    /// Further states that agtmux may report without hooks, because the agent shows nothing that distinguishes them
    /// from the expected states.
    pub(crate) expected_without_hooks: &'static [ReportedState],
    /// The states that agtmux may report before the expected one.
    pub(crate) allowed_before: Vec<ReportedState>,
    /// Whether the state ends too soon to check that agtmux keeps reporting it.
    pub(crate) transient: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepAction {
    Launch,
    Prompt(&'static str),
    /// A prompt that makes the model fail this way.
    FailingPrompt(ModelFailure),
    Reply(DialogReply),
    SlashCommand(SlashCommand),
    /// A slash command that only one agent has.
    Command(&'static str),
    Signal(Signal),
    Wait,
}

impl StepAction {
    /// The prompt that the step submits.
    pub(crate) fn prompt(&self) -> Option<&'static str> {
        match self {
            Self::Prompt(text) => Some(text),
            Self::FailingPrompt(failure) => Some(failure.prompt()),
            Self::Launch | Self::Reply(_) | Self::SlashCommand(_) | Self::Command(_) | Self::Signal(_) | Self::Wait => {
                None
            }
        }
    }
}

/// The evidence, independent of agtmux, that the agent has reached the state of the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GroundTruth {
    /// The agent's screen shows this state.
    Screen(ScreenState),
    /// The screen shows this state below the last row with this text.
    BelowPrompt(&'static str, ScreenState),
    /// The model has received this text.
    ModelAsked(&'static str),
    /// The model has received this text more than once.
    ModelAskedAgain(&'static str),
    /// The model has answered this text in full, and the screen shows this state.
    ModelAnswered(&'static str, ScreenState),
    /// A command run by the agent has created this file.
    FileCreated(&'static str),
    /// The agent's process has ended.
    ProcessEnded,
}

impl GroundTruth {
    fn screen_state(&self) -> Option<ScreenState> {
        match self {
            Self::Screen(state) | Self::BelowPrompt(_, state) | Self::ModelAnswered(_, state) => Some(*state),
            Self::ModelAsked(_) | Self::ModelAskedAgain(_) | Self::FileCreated(_) | Self::ProcessEnded => None,
        }
    }
}

impl ScenarioStep {
    pub(crate) fn accepted(&self, mode: EvidenceMode) -> Vec<ReportedState> {
        let more = if mode == EvidenceMode::NoHooks { self.expected_without_hooks } else { &[] };
        self.expected.iter().chain(more).copied().collect()
    }
}

impl Scenario {
    /// Whether the agent supports every step of the scenario.
    pub(crate) fn is_for(&self, agent: &dyn ConformanceAgent) -> bool {
        let plan_screen =
            matches!(self.start_condition, StartCondition::Ready(LaunchMode::Plan)).then_some(ScreenState::ReadyToPlan);
        let has = |state: ScreenState| agent.screen_pattern(state).is_some();
        (self.only_agents.is_empty() || self.only_agents.contains(&agent.name()))
            && !agent.unsupported_scenarios().contains(&self.name)
            && self.failure.is_none_or(|(failure, outcome)| agent.after_failure(failure) == outcome)
            && plan_screen
                .into_iter()
                .chain(self.steps.iter().filter_map(|step| step.ground_truth.screen_state()))
                .all(has)
    }
}

pub(super) fn step(
    name: &'static str,
    action: StepAction,
    ground_truth: GroundTruth,
    expected: &[ReportedState],
    allowed_before: &[ReportedState],
) -> ScenarioStep {
    ScenarioStep {
        name,
        action,
        ground_truth,
        expected: expected.to_vec(),
        expected_without_hooks: &[],
        allowed_before: allowed_before.to_vec(),
        transient: false,
    }
}

impl ScenarioStep {
    fn or_without_hooks(mut self, more: &'static [ReportedState]) -> Self {
        self.expected_without_hooks = more;
        self
    }
}

pub(super) fn scenario(name: &'static str, steps: Vec<ScenarioStep>) -> Scenario {
    Scenario {
        name,
        in_core: false,
        start_condition: StartCondition::Ready(LaunchMode::Plain),
        only_agents: &[],
        failure: None,
        steps,
    }
}

impl Scenario {
    fn core(mut self) -> Self {
        self.in_core = true;
        self
    }

    fn only(mut self, agents: &'static [&'static str]) -> Self {
        self.only_agents = agents;
        self
    }

    fn starting_from(mut self, start_condition: StartCondition) -> Self {
        self.start_condition = start_condition;
        self
    }
}

/// Submits the prompt; the agent works as soon as the model receives it.
fn starts_working(name: &'static str, prompt: &'static str) -> ScenarioStep {
    step(name, StepAction::Prompt(prompt), GroundTruth::ModelAsked(prompt), &[Running], &[Idle, Completed, Error])
}

/// Waits until the agent has finished the turn that this prompt started.
pub(super) fn turn_ends(prompt: &'static str, allowed_before: &[ReportedState]) -> ScenarioStep {
    let ground_truth = GroundTruth::ModelAnswered(prompt, ScreenState::Done);
    step("done", StepAction::Wait, ground_truth, &[Completed], allowed_before).or_without_hooks(&[Idle])
}

fn opens_dialog(prompt: &'static str, state: ScreenState, expected: &[ReportedState]) -> ScenarioStep {
    let allowed_before = [Idle, Completed, Error, Running];
    step("asked", StepAction::Prompt(prompt), GroundTruth::Screen(state), expected, &allowed_before)
}

pub(crate) fn all() -> Vec<Scenario> {
    let mut all = vec![start_scenario(), trust_scenario()];
    all.extend(turn_scenarios());
    all.extend(dialog_scenarios());
    all.extend(failure_scenarios::all());
    all.extend(stop_scenarios());
    all.extend(other_scenarios());
    all.extend(end_scenarios());
    all
}

fn start_scenario() -> Scenario {
    let start_condition = StartCondition::Shell { launch: LaunchMode::Plain, trusted: true };
    scenario(
        "start",
        vec![step("ready", StepAction::Launch, GroundTruth::Screen(ScreenState::Ready), &[Idle], &[NoAgent])],
    )
    .core()
    .starting_from(start_condition)
}

fn trust_scenario() -> Scenario {
    // Codex shows its input box briefly before the dialog.
    let asked = step(
        "asked",
        StepAction::Launch,
        GroundTruth::Screen(ScreenState::Trust),
        &[Approval, Input],
        &[NoAgent, Idle],
    );
    let trusted = step(
        "trusted",
        StepAction::Reply(DialogReply::Trust),
        GroundTruth::Screen(ScreenState::Ready),
        &[Idle],
        // Gemini restarts itself.
        &[Approval, Input, NoAgent],
    );
    let start_condition = StartCondition::Shell { launch: LaunchMode::Plain, trusted: false };
    scenario("trust", vec![asked, trusted]).only(&["claude", "codex", "gemini", "pi"]).starting_from(start_condition)
}

fn turn_scenarios() -> [Scenario; 5] {
    let free = "DO ./free-tool 5";
    let tool = step(
        "tool",
        StepAction::Prompt(free),
        GroundTruth::FileCreated("free-tool.began"),
        &[Running],
        &[Idle, Completed, Error],
    );
    [
        scenario("running", vec![starts_working("streaming", "SLOW 5"), turn_ends("SLOW 5", &[Running])]).core(),
        scenario("thinking", vec![starts_working("thinking", "THINK 5"), turn_ends("THINK 5", &[Running])]),
        scenario("tool", vec![tool, turn_ends(free, &[Running])]),
        scenario(
            "complete",
            vec![ScenarioStep {
                action: StepAction::Prompt("SAY hello there"),
                ..turn_ends("SAY hello there", &[Idle, Completed, Error, Running])
            }],
        )
        .core(),
        scenario(
            "quoted",
            vec![ScenarioStep {
                action: StepAction::Prompt("QUOTE"),
                ground_truth: GroundTruth::ModelAnswered("QUOTE", ScreenState::Quoted),
                ..turn_ends("QUOTE", &[Idle, Completed, Running])
            }],
        ),
    ]
}

fn dialog_scenarios() -> [Scenario; 5] {
    let touch = "RUN touch wanted.txt";
    let long = "RUN ./asked-tool 6";
    let approved = step(
        "approved",
        StepAction::Reply(DialogReply::Approve),
        GroundTruth::FileCreated("asked-tool.began"),
        &[Running],
        &[Approval],
    );
    let denied = step(
        "denied",
        StepAction::Reply(DialogReply::Deny),
        GroundTruth::Screen(ScreenState::Denied),
        &[Idle],
        &[Approval, Running],
    );
    let chosen = step(
        "answered",
        StepAction::Reply(DialogReply::Choose),
        GroundTruth::ModelAnswered("ASK", ScreenState::Done),
        &[Completed],
        &[Input, Running],
    );
    let accepted = step(
        "accepted",
        StepAction::Reply(DialogReply::AcceptPlan),
        GroundTruth::ModelAnswered("PLAN", ScreenState::Done),
        &[Completed],
        &[Approval, Running],
    );
    [
        scenario(
            "approval",
            vec![
                opens_dialog(touch, ScreenState::Approval, &[Approval]),
                ScenarioStep {
                    action: StepAction::Reply(DialogReply::Approve),
                    ..turn_ends(touch, &[Approval, Running])
                },
            ],
        )
        .core(),
        scenario(
            "approved",
            vec![opens_dialog(long, ScreenState::Approval, &[Approval]), approved, turn_ends(long, &[Running])],
        )
        .core(),
        scenario(
            "denied",
            vec![
                opens_dialog("RUN touch unwanted.txt", ScreenState::Approval, &[Approval]),
                denied.or_without_hooks(&[Completed]),
            ],
        )
        .core(),
        scenario(
            "question",
            vec![opens_dialog("ASK", ScreenState::Question, &[Input]), chosen.or_without_hooks(&[Idle])],
        )
        .starting_from(StartCondition::Ready(LaunchMode::Plan)),
        scenario(
            "plan",
            vec![opens_dialog("PLAN", ScreenState::Plan, &[Approval]), accepted.or_without_hooks(&[Idle])],
        )
        .only(&["claude"])
        .starting_from(StartCondition::Ready(LaunchMode::Plan)),
    ]
}

fn stop_scenarios() -> [Scenario; 2] {
    let retrying = step(
        "retrying",
        StepAction::Prompt("FAIL 500"),
        GroundTruth::Screen(ScreenState::Retrying),
        &[Running],
        &[Idle, Completed, Error],
    );
    let stopped = |allowed_before: &[ReportedState]| {
        let ground_truth = GroundTruth::Screen(ScreenState::Interrupted);
        step("interrupted", StepAction::Reply(DialogReply::Interrupt), ground_truth, &[Idle], allowed_before)
            .or_without_hooks(&[Completed])
    };
    [
        scenario("retry", vec![ScenarioStep { transient: true, ..retrying }]),
        scenario("interrupt", vec![starts_working("streaming", "SLOW 30"), stopped(&[Running])]).core(),
    ]
}

fn other_scenarios() -> [Scenario; 6] {
    let shell = "BG ./free-tool 8";
    let background = step(
        "background",
        StepAction::Prompt(shell),
        GroundTruth::Screen(ScreenState::Background),
        &[Running],
        &[Idle, Completed, Running],
    );
    let finishes = step(
        "done",
        StepAction::Wait,
        GroundTruth::ModelAnswered("<task-notification>", ScreenState::Done),
        &[Completed],
        &[Running],
    );
    let starts_subagent = step(
        "subagent",
        StepAction::Prompt("TASK SLOW 6"),
        GroundTruth::ModelAsked("SLOW 6"),
        &[Running],
        &[Idle, Running],
    );
    let waits_for_subagent =
        step("waiting", StepAction::Wait, GroundTruth::Screen(ScreenState::Subagent), &[Running], &[Running]);
    let delegated_prompt = "RUN touch below.txt";
    let answered = ScenarioStep {
        action: StepAction::Reply(DialogReply::Approve),
        ..turn_ends(delegated_prompt, &[Approval, Running])
    };
    let queues_prompt =
        step("queued", StepAction::Prompt("SLOW 4"), GroundTruth::Screen(ScreenState::Queued), &[Running], &[Running]);
    // The agent stays at rest while the transcript is cleared, so both states are correct.
    let cleared = step(
        "cleared",
        StepAction::SlashCommand(SlashCommand::Clear),
        GroundTruth::Screen(ScreenState::Ready),
        &[Idle, Completed],
        &[Completed, Idle, Running],
    );
    let first_turn = ScenarioStep {
        action: StepAction::Prompt("SAY hello there"),
        ..turn_ends("SAY hello there", &[Idle, Running])
    };
    let compacted = step(
        "compacted",
        StepAction::Command("/compact"),
        GroundTruth::Screen(ScreenState::Compacted),
        &[Idle, Completed],
        &[Running],
    );
    [
        scenario("compact", vec![first_turn.clone(), compacted]).only(&["claude"]),
        scenario("background", vec![background, finishes.or_without_hooks(&[Idle])]).only(&["claude"]),
        scenario("subagent", vec![starts_subagent, waits_for_subagent, turn_ends("SLOW 6", &[Running])]),
        scenario(
            "delegated",
            vec![opens_dialog("TASK RUN touch below.txt", ScreenState::Approval, &[Approval]), answered],
        )
        .only(&["copilot", "opencode", "qwen"]),
        scenario("queued", vec![starts_working("streaming", "SLOW 5"), queues_prompt, turn_ends("SLOW 4", &[Running])]),
        scenario("clear", vec![first_turn, cleared]),
    ]
}

fn end_scenarios() -> [Scenario; 4] {
    let exit = step(
        "exited",
        StepAction::SlashCommand(SlashCommand::Exit),
        GroundTruth::ProcessEnded,
        &[NoAgent],
        &[Idle, Completed],
    );
    let ended =
        |signal| step("ended", StepAction::Signal(signal), GroundTruth::ProcessEnded, &[NoAgent], &[Running, Idle]);
    let runs_headless =
        step("working", StepAction::Launch, GroundTruth::ModelAsked("SLOW 12"), &[Running], &[NoAgent, Idle]);
    let finishes = step("ended", StepAction::Wait, GroundTruth::ProcessEnded, &[NoAgent], &[Running, Completed, Idle]);
    [
        scenario("exit", vec![exit]),
        scenario("sigterm", vec![starts_working("streaming", "SLOW 30"), ended(Signal::TERM)]),
        scenario("headless", vec![runs_headless, finishes])
            .starting_from(StartCondition::Shell { launch: LaunchMode::Headless("SLOW 12"), trusted: true }),
        // The last core scenario, because the agent is dead afterwards.
        scenario("sigkill", vec![starts_working("streaming", "SLOW 30"), ended(Signal::KILL)]).core(),
    ]
}
