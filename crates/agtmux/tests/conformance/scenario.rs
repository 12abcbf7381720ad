//! What is played: steps, what must be so after each, and what agtmux may say on the way. Data only.

use rustix::process::Signal;

use super::agents::{ConformanceAgent, DialogReply, LaunchMode, SlashCommand};
use super::states::ReportedState::{self, Approval, Completed, Error, Idle, Input, NoAgent, Running};
use super::states::{EvidenceMode, ScreenState};

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Whether `make test` plays it.
    pub(crate) in_core: bool,
    pub(crate) start_condition: StartCondition,
    /// The agents that know such a thing; all if it is empty.
    pub(crate) only_agents: &'static [&'static str],
    pub(crate) steps: Vec<ScenarioStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StartCondition {
    /// The agent has been started and is ready.
    Ready(LaunchMode),
    /// There is a shell; the first step starts the agent.
    Shell { launch: LaunchMode, trusted: bool },
}

#[derive(Debug, Clone)]
pub(crate) struct ScenarioStep {
    pub(crate) name: &'static str,
    pub(crate) action: StepAction,
    pub(crate) ground_truth: GroundTruth,
    /// What agtmux must say then. The first is what it should say.
    pub(crate) expected: Vec<ReportedState>,
    /// What it may say instead without hooks: the agent gives no evidence that tells these apart.
    pub(crate) expected_without_hooks: &'static [ReportedState],
    /// What it may say until then.
    pub(crate) allowed_before: Vec<ReportedState>,
    /// Whether the scene passes before it could be seen to hold.
    pub(crate) transient: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepAction {
    Launch,
    Prompt(&'static str),
    /// A prompt that makes the model fail.
    FailingPrompt,
    Reply(DialogReply),
    SlashCommand(SlashCommand),
    Signal(Signal),
    Wait,
}

/// How it is known, without asking agtmux, that the agent is where the step wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GroundTruth {
    /// Its screen shows it.
    Screen(ScreenState),
    /// The model has been asked this.
    ModelAsked(&'static str),
    /// The model has answered this in full, and then the screen shows it.
    ModelAnswered(&'static str, ScreenState),
    /// A command of the agent's has made this file.
    FileCreated(&'static str),
    /// Its process has ended.
    ProcessEnded,
}

impl GroundTruth {
    fn screen_state(&self) -> Option<ScreenState> {
        match self {
            Self::Screen(scene) | Self::ModelAnswered(_, scene) => Some(*scene),
            Self::ModelAsked(_) | Self::FileCreated(_) | Self::ProcessEnded => None,
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
    /// Whether the agent has all scenes of it.
    pub(crate) fn is_for(&self, agent: &dyn ConformanceAgent) -> bool {
        let opening =
            matches!(self.start_condition, StartCondition::Ready(LaunchMode::Plan)).then_some(ScreenState::ReadyToPlan);
        let has = |scene: ScreenState| agent.screen_pattern(scene).is_some();
        (self.only_agents.is_empty() || self.only_agents.contains(&agent.name()))
            && !agent.unsupported_scenarios().contains(&self.name)
            && opening.into_iter().chain(self.steps.iter().filter_map(|step| step.ground_truth.screen_state())).all(has)
    }
}

fn step(
    name: &'static str,
    deed: StepAction,
    truth: GroundTruth,
    then: &[ReportedState],
    way: &[ReportedState],
) -> ScenarioStep {
    ScenarioStep {
        name,
        action: deed,
        ground_truth: truth,
        expected: then.to_vec(),
        expected_without_hooks: &[],
        allowed_before: way.to_vec(),
        transient: false,
    }
}

impl ScenarioStep {
    fn or_without_hooks(mut self, more: &'static [ReportedState]) -> Self {
        self.expected_without_hooks = more;
        self
    }
}

fn scenario(name: &'static str, steps: Vec<ScenarioStep>) -> Scenario {
    Scenario {
        name,
        in_core: false,
        start_condition: StartCondition::Ready(LaunchMode::Plain),
        only_agents: &[],
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

    fn starting_from(mut self, opening: StartCondition) -> Self {
        self.start_condition = opening;
        self
    }
}

/// It works on this prompt: the model has been asked.
fn starts_working(name: &'static str, prompt: &'static str) -> ScenarioStep {
    step(name, StepAction::Prompt(prompt), GroundTruth::ModelAsked(prompt), &[Running], &[Idle, Completed, Error])
}

/// The turn of this prompt is over.
fn turn_ends(prompt: &'static str, way: &[ReportedState]) -> ScenarioStep {
    let truth = GroundTruth::ModelAnswered(prompt, ScreenState::Done);
    step("done", StepAction::Wait, truth, &[Completed], way).or_without_hooks(&[Idle])
}

fn opens_dialog(prompt: &'static str, scene: ScreenState, then: &[ReportedState]) -> ScenarioStep {
    let way = [Idle, Completed, Error, Running];
    step("asked", StepAction::Prompt(prompt), GroundTruth::Screen(scene), then, &way)
}

pub(crate) fn all() -> Vec<Scenario> {
    let mut all = vec![start_scenario(), trust_scenario()];
    all.extend(turn_scenarios());
    all.extend(dialog_scenarios());
    all.extend(stop_scenarios());
    all.extend(other_scenarios());
    all.extend(end_scenarios());
    all
}

fn start_scenario() -> Scenario {
    let opening = StartCondition::Shell { launch: LaunchMode::Plain, trusted: true };
    scenario(
        "start",
        vec![step("ready", StepAction::Launch, GroundTruth::Screen(ScreenState::Ready), &[Idle], &[NoAgent])],
    )
    .core()
    .starting_from(opening)
}

fn trust_scenario() -> Scenario {
    // Codex shows its box for a moment before it asks.
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
        // Gemini starts itself anew.
        &[Approval, Input, NoAgent],
    );
    let opening = StartCondition::Shell { launch: LaunchMode::Plain, trusted: false };
    scenario("trust", vec![asked, trusted]).only(&["claude", "codex", "gemini", "pi"]).starting_from(opening)
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

fn stop_scenarios() -> [Scenario; 3] {
    let failed = step(
        "failed",
        StepAction::FailingPrompt,
        GroundTruth::Screen(ScreenState::Failed),
        &[Error],
        &[Idle, Completed, Error, Running],
    )
    .or_without_hooks(&[Idle, Completed]);
    let retrying = step(
        "retrying",
        StepAction::Prompt("FAIL 500"),
        GroundTruth::Screen(ScreenState::Retrying),
        &[Running],
        &[Idle, Completed, Error],
    );
    let stopped = |way: &[ReportedState]| {
        let truth = GroundTruth::Screen(ScreenState::Interrupted);
        step("interrupted", StepAction::Reply(DialogReply::Interrupt), truth, &[Idle], way)
            .or_without_hooks(&[Completed])
    };
    [
        scenario("error", vec![failed]).core(),
        scenario("retry", vec![ScenarioStep { transient: true, ..retrying }]),
        scenario("interrupt", vec![starts_working("streaming", "SLOW 30"), stopped(&[Running])]).core(),
    ]
}

fn other_scenarios() -> [Scenario; 5] {
    let shell = "BG ./free-tool 8";
    let background = step(
        "background",
        StepAction::Prompt(shell),
        GroundTruth::Screen(ScreenState::Background),
        &[Running],
        &[Idle, Completed, Running],
    );
    let over = step(
        "done",
        StepAction::Wait,
        GroundTruth::ModelAnswered("<task-notification>", ScreenState::Done),
        &[Completed],
        &[Running],
    );
    let below = step(
        "subagent",
        StepAction::Prompt("TASK SLOW 6"),
        GroundTruth::ModelAsked("SLOW 6"),
        &[Running],
        &[Idle, Running],
    );
    let between = step("waiting", StepAction::Wait, GroundTruth::Screen(ScreenState::Subagent), &[Running], &[Running]);
    let below_it = "RUN touch below.txt";
    let answered =
        ScenarioStep { action: StepAction::Reply(DialogReply::Approve), ..turn_ends(below_it, &[Approval, Running]) };
    let waits =
        step("queued", StepAction::Prompt("SLOW 4"), GroundTruth::Screen(ScreenState::Queued), &[Running], &[Running]);
    // The same agent, still at rest: whether it has finished a turn before no longer matters.
    let cleared = step(
        "cleared",
        StepAction::SlashCommand(SlashCommand::Clear),
        GroundTruth::Screen(ScreenState::Ready),
        &[Idle, Completed],
        &[Completed, Idle, Running],
    );
    let said = ScenarioStep {
        action: StepAction::Prompt("SAY hello there"),
        ..turn_ends("SAY hello there", &[Idle, Running])
    };
    [
        scenario("background", vec![background, over.or_without_hooks(&[Idle])]).only(&["claude"]),
        scenario("subagent", vec![below, between, turn_ends("SLOW 6", &[Running])]),
        scenario(
            "delegated",
            vec![opens_dialog("TASK RUN touch below.txt", ScreenState::Approval, &[Approval]), answered],
        )
        .only(&["copilot", "opencode", "qwen"]),
        scenario("queued", vec![starts_working("streaming", "SLOW 5"), waits, turn_ends("SLOW 4", &[Running])]),
        scenario("clear", vec![said, cleared]),
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
    let alone = step("working", StepAction::Launch, GroundTruth::ModelAsked("SLOW 12"), &[Running], &[NoAgent, Idle]);
    let over = step("ended", StepAction::Wait, GroundTruth::ProcessEnded, &[NoAgent], &[Running, Completed, Idle]);
    [
        scenario("exit", vec![exit]),
        scenario("sigterm", vec![starts_working("streaming", "SLOW 30"), ended(Signal::TERM)]),
        scenario("headless", vec![alone, over])
            .starting_from(StartCondition::Shell { launch: LaunchMode::Headless("SLOW 12"), trusted: true }),
        // The last of the core: nothing can follow it.
        scenario("sigkill", vec![starts_working("streaming", "SLOW 30"), ended(Signal::KILL)]).core(),
    ]
}
