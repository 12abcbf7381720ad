//! aider. It has no hooks, no tools, no list of questions and no subagents: it asks before it runs what the model wrote.

use super::{Agent, Launch, Mark, Mode, Place, Registry, Reply, Scene, Wish};

pub(super) struct Aider;

/// Only in this format does it offer to run commands. What it would like to fetch or to tell is switched off.
const LAUNCH: &str = "aider --model openai/mock-no-tools --edit-format diff --no-git --no-check-update \
                      --no-show-model-warnings --no-show-release-notes --analytics-disable";

impl Agent for Aider {
    fn name(&self) -> &'static str {
        "aider"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("aider-chat", "0.86.2")
    }

    fn registry(&self) -> Registry {
        Registry::PyPi
    }

    fn modes(&self) -> &'static [Mode] {
        &[Mode::Bare]
    }

    fn prepare(&self, _: &Place) {}

    fn environment(&self, place: &Place) -> Vec<(&'static str, String)> {
        vec![("OPENAI_API_BASE", format!("{}/v1", place.url)), ("OPENAI_API_KEY", "sk-test".into())]
    }

    fn launch(&self, how: &Launch) -> String {
        match how {
            Launch::Plain | Launch::Plan => LAUNCH.into(),
            Launch::Headless(prompt) => format!("{LAUNCH} --message '{prompt}'"),
        }
    }

    fn mark(&self, scene: Scene) -> Option<Mark> {
        let at_rest = |mark: Mark| mark.ends_with("diff>");
        Some(match scene {
            Scene::Ready | Scene::Done => at_rest(Mark::default()),
            Scene::Approval => Mark::shows("Run shell command? (Y)es/(N)o").in_last(1),
            Scene::Quoted => at_rest(Mark::shows("end-of-quote.")),
            Scene::Denied => at_rest(Mark::shows("[Yes]: n")),
            Scene::Retrying => Mark::shows("Retrying in"),
            Scene::Failed => at_rest(Mark::shows("litellm.BadRequestError")),
            Scene::Interrupted => at_rest(Mark::shows("^C")),
            Scene::ReadyToPlan | Scene::Trust | Scene::Question | Scene::Plan => return None,
            Scene::Background | Scene::Subagent | Scene::Queued => return None,
        })
    }

    /// It runs nothing unasked.
    fn lacks(&self) -> &'static [&'static str] {
        &["tool"]
    }

    fn keys(&self, reply: Reply) -> &'static [&'static str] {
        match reply {
            Reply::Approve => &["y", "Enter"],
            Reply::Deny => &["n", "Enter"],
            Reply::Interrupt => &["C-c"],
            Reply::Trust | Reply::AcceptPlan | Reply::Choose | Reply::PlanMode => &[],
        }
    }

    fn command(&self, wish: Wish) -> &'static str {
        match wish {
            Wish::Clear => "/clear",
            Wish::Exit => "/exit",
        }
    }

    /// It tries again for a minute after other failures.
    fn failure(&self) -> &'static str {
        "FAIL 400"
    }
}
