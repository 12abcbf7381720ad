//! What is played: steps, what must be so after each, and what agtmux may say on the way. Data only.

use rustix::process::Signal;

use super::agents::{Agent, Launch, Reply, Wish};
use super::words::Shown::{self, Approval, Completed, Error, Gone, Idle, Input, Running};
use super::words::{Mode, Scene};

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Whether `make test` plays it.
    pub(crate) core: bool,
    pub(crate) opening: Opening,
    /// The agents that know such a thing; all if it is empty.
    pub(crate) only: &'static [&'static str],
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The agent has been started and is ready.
    Ready(Launch),
    /// There is a shell; the first step starts the agent.
    Shell { launch: Launch, trusted: bool },
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) deed: Deed,
    pub(crate) truth: Truth,
    /// What agtmux must say then. The first is what it should say.
    pub(crate) then: Vec<Shown>,
    /// What it may say instead without hooks: the agent gives no evidence that tells these apart.
    pub(crate) or_bare: &'static [Shown],
    /// What it may say until then.
    pub(crate) way: Vec<Shown>,
    /// Whether the scene passes before it could be seen to hold.
    pub(crate) brief: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    Launch,
    Prompt(&'static str),
    /// A prompt that makes the model fail.
    Failure,
    Reply(Reply),
    Command(Wish),
    Signal(Signal),
    Nothing,
}

/// How it is known, without asking agtmux, that the agent is where the step wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Truth {
    /// Its screen shows it.
    Scene(Scene),
    /// The model has been asked this.
    Asked(&'static str),
    /// The model has answered this in full, and then the screen shows it.
    Answered(&'static str, Scene),
    /// A command of the agent's has made this file.
    File(&'static str),
    /// Its process has ended.
    Ended,
}

impl Truth {
    fn scene(&self) -> Option<Scene> {
        match self {
            Self::Scene(scene) | Self::Answered(_, scene) => Some(*scene),
            Self::Asked(_) | Self::File(_) | Self::Ended => None,
        }
    }
}

impl Step {
    pub(crate) fn accepted(&self, mode: Mode) -> Vec<Shown> {
        let more = if mode == Mode::Bare { self.or_bare } else { &[] };
        self.then.iter().chain(more).copied().collect()
    }
}

impl Scenario {
    /// Whether the agent has all scenes of it.
    pub(crate) fn is_for(&self, agent: &dyn Agent) -> bool {
        let opening = matches!(self.opening, Opening::Ready(Launch::Plan)).then_some(Scene::ReadyToPlan);
        let has = |scene: Scene| agent.mark(scene).is_some();
        (self.only.is_empty() || self.only.contains(&agent.name()))
            && !agent.lacks().contains(&self.name)
            && opening.into_iter().chain(self.steps.iter().filter_map(|step| step.truth.scene())).all(has)
    }
}

fn step(name: &'static str, deed: Deed, truth: Truth, then: &[Shown], way: &[Shown]) -> Step {
    Step { name, deed, truth, then: then.to_vec(), or_bare: &[], way: way.to_vec(), brief: false }
}

impl Step {
    fn or_bare(mut self, more: &'static [Shown]) -> Self {
        self.or_bare = more;
        self
    }
}

fn scenario(name: &'static str, steps: Vec<Step>) -> Scenario {
    Scenario { name, core: false, opening: Opening::Ready(Launch::Plain), only: &[], steps }
}

impl Scenario {
    fn core(mut self) -> Self {
        self.core = true;
        self
    }

    fn only(mut self, agents: &'static [&'static str]) -> Self {
        self.only = agents;
        self
    }

    fn opening(mut self, opening: Opening) -> Self {
        self.opening = opening;
        self
    }
}

/// It works on this prompt: the model has been asked.
fn works(name: &'static str, prompt: &'static str) -> Step {
    step(name, Deed::Prompt(prompt), Truth::Asked(prompt), &[Running], &[Idle, Completed, Error])
}

/// The turn of this prompt is over.
fn done(prompt: &'static str, way: &[Shown]) -> Step {
    let truth = Truth::Answered(prompt, Scene::Done);
    step("done", Deed::Nothing, truth, &[Completed], way).or_bare(&[Idle])
}

fn asks(prompt: &'static str, scene: Scene, then: &[Shown]) -> Step {
    let way = [Idle, Completed, Error, Running];
    step("asked", Deed::Prompt(prompt), Truth::Scene(scene), then, &way)
}

pub(crate) fn all() -> Vec<Scenario> {
    let mut all = vec![start(), trust()];
    all.extend(turns());
    all.extend(dialogs());
    all.extend(stops());
    all.extend(others());
    all.extend(ends());
    all
}

fn start() -> Scenario {
    let opening = Opening::Shell { launch: Launch::Plain, trusted: true };
    scenario("start", vec![step("ready", Deed::Launch, Truth::Scene(Scene::Ready), &[Idle], &[Gone])])
        .core()
        .opening(opening)
}

fn trust() -> Scenario {
    // Codex shows its box for a moment before it asks.
    let asked = step("asked", Deed::Launch, Truth::Scene(Scene::Trust), &[Approval, Input], &[Gone, Idle]);
    let trusted = step(
        "trusted",
        Deed::Reply(Reply::Trust),
        Truth::Scene(Scene::Ready),
        &[Idle],
        // Gemini starts itself anew.
        &[Approval, Input, Gone],
    );
    let opening = Opening::Shell { launch: Launch::Plain, trusted: false };
    scenario("trust", vec![asked, trusted]).only(&["claude", "codex", "gemini", "pi"]).opening(opening)
}

fn turns() -> [Scenario; 5] {
    let free = "DO ./free-tool 5";
    let tool = step("tool", Deed::Prompt(free), Truth::File("free-tool.began"), &[Running], &[Idle, Completed, Error]);
    [
        scenario("running", vec![works("streaming", "SLOW 5"), done("SLOW 5", &[Running])]).core(),
        scenario("thinking", vec![works("thinking", "THINK 5"), done("THINK 5", &[Running])]),
        scenario("tool", vec![tool, done(free, &[Running])]),
        scenario(
            "complete",
            vec![Step {
                deed: Deed::Prompt("SAY hello there"),
                ..done("SAY hello there", &[Idle, Completed, Error, Running])
            }],
        )
        .core(),
        scenario(
            "quoted",
            vec![Step {
                deed: Deed::Prompt("QUOTE"),
                truth: Truth::Answered("QUOTE", Scene::Quoted),
                ..done("QUOTE", &[Idle, Completed, Running])
            }],
        ),
    ]
}

fn dialogs() -> [Scenario; 5] {
    let touch = "RUN touch wanted.txt";
    let long = "RUN ./asked-tool 6";
    let approved =
        step("approved", Deed::Reply(Reply::Approve), Truth::File("asked-tool.began"), &[Running], &[Approval]);
    let denied = step("denied", Deed::Reply(Reply::Deny), Truth::Scene(Scene::Denied), &[Idle], &[Approval, Running]);
    let chosen = step(
        "answered",
        Deed::Reply(Reply::Choose),
        Truth::Answered("ASK", Scene::Done),
        &[Completed],
        &[Input, Running],
    );
    let accepted = step(
        "accepted",
        Deed::Reply(Reply::AcceptPlan),
        Truth::Answered("PLAN", Scene::Done),
        &[Completed],
        &[Approval, Running],
    );
    [
        scenario(
            "approval",
            vec![
                asks(touch, Scene::Approval, &[Approval]),
                Step { deed: Deed::Reply(Reply::Approve), ..done(touch, &[Approval, Running]) },
            ],
        )
        .core(),
        scenario("approved", vec![asks(long, Scene::Approval, &[Approval]), approved, done(long, &[Running])]).core(),
        scenario(
            "denied",
            vec![asks("RUN touch unwanted.txt", Scene::Approval, &[Approval]), denied.or_bare(&[Completed])],
        )
        .core(),
        scenario("question", vec![asks("ASK", Scene::Question, &[Input]), chosen.or_bare(&[Idle])])
            .opening(Opening::Ready(Launch::Plan)),
        scenario("plan", vec![asks("PLAN", Scene::Plan, &[Approval]), accepted.or_bare(&[Idle])])
            .only(&["claude"])
            .opening(Opening::Ready(Launch::Plan)),
    ]
}

fn stops() -> [Scenario; 3] {
    let failed =
        step("failed", Deed::Failure, Truth::Scene(Scene::Failed), &[Error], &[Idle, Completed, Error, Running])
            .or_bare(&[Idle, Completed]);
    let retrying = step(
        "retrying",
        Deed::Prompt("FAIL 500"),
        Truth::Scene(Scene::Retrying),
        &[Running],
        &[Idle, Completed, Error],
    );
    let stopped = |way: &[Shown]| {
        let truth = Truth::Scene(Scene::Interrupted);
        step("interrupted", Deed::Reply(Reply::Interrupt), truth, &[Idle], way).or_bare(&[Completed])
    };
    [
        scenario("error", vec![failed]).core(),
        scenario("retry", vec![Step { brief: true, ..retrying }]),
        scenario("interrupt", vec![works("streaming", "SLOW 30"), stopped(&[Running])]).core(),
    ]
}

fn others() -> [Scenario; 5] {
    let shell = "BG ./free-tool 8";
    let background = step(
        "background",
        Deed::Prompt(shell),
        Truth::Scene(Scene::Background),
        &[Running],
        &[Idle, Completed, Running],
    );
    let over =
        step("done", Deed::Nothing, Truth::Answered("<task-notification>", Scene::Done), &[Completed], &[Running]);
    let below = step("subagent", Deed::Prompt("TASK SLOW 6"), Truth::Asked("SLOW 6"), &[Running], &[Idle, Running]);
    let between = step("waiting", Deed::Nothing, Truth::Scene(Scene::Subagent), &[Running], &[Running]);
    let below_it = "RUN touch below.txt";
    let answered = Step { deed: Deed::Reply(Reply::Approve), ..done(below_it, &[Approval, Running]) };
    let waits = step("queued", Deed::Prompt("SLOW 4"), Truth::Scene(Scene::Queued), &[Running], &[Running]);
    // The same agent, still at rest: whether it has finished a turn before no longer matters.
    let cleared = step(
        "cleared",
        Deed::Command(Wish::Clear),
        Truth::Scene(Scene::Ready),
        &[Idle, Completed],
        &[Completed, Idle, Running],
    );
    let said = Step { deed: Deed::Prompt("SAY hello there"), ..done("SAY hello there", &[Idle, Running]) };
    [
        scenario("background", vec![background, over.or_bare(&[Idle])]).only(&["claude"]),
        scenario("subagent", vec![below, between, done("SLOW 6", &[Running])]),
        scenario("delegated", vec![asks("TASK RUN touch below.txt", Scene::Approval, &[Approval]), answered])
            .only(&["copilot", "opencode", "qwen"]),
        scenario("queued", vec![works("streaming", "SLOW 5"), waits, done("SLOW 4", &[Running])]),
        scenario("clear", vec![said, cleared]),
    ]
}

fn ends() -> [Scenario; 4] {
    let exit = step("exited", Deed::Command(Wish::Exit), Truth::Ended, &[Gone], &[Idle, Completed]);
    let ended = |signal| step("ended", Deed::Signal(signal), Truth::Ended, &[Gone], &[Running, Idle]);
    let alone = step("working", Deed::Launch, Truth::Asked("SLOW 12"), &[Running], &[Gone, Idle]);
    let over = step("ended", Deed::Nothing, Truth::Ended, &[Gone], &[Running, Completed, Idle]);
    [
        scenario("exit", vec![exit]),
        scenario("sigterm", vec![works("streaming", "SLOW 30"), ended(Signal::TERM)]),
        scenario("headless", vec![alone, over])
            .opening(Opening::Shell { launch: Launch::Headless("SLOW 12"), trusted: true }),
        // The last of the core: nothing can follow it.
        scenario("sigkill", vec![works("streaming", "SLOW 30"), ended(Signal::KILL)]).core(),
    ]
}
