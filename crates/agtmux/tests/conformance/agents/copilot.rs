//! Copilot CLI.

use serde_json::{Value, json};

use super::{Agent, FREE_TOOL, Launch, Mark, Place, Reply, Scene, Wish};

pub(super) struct Copilot;

const EVENTS: [&str; 11] = [
    "sessionStart",
    "sessionEnd",
    "userPromptSubmitted",
    "preToolUse",
    "permissionRequest",
    "postToolUse",
    "notification",
    "agentStop",
    "subagentStart",
    "subagentStop",
    "errorOccurred",
];

impl Agent for Copilot {
    fn name(&self) -> &'static str {
        "copilot"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@github/copilot", "1.0.102")
    }

    fn prepare(&self, place: &Place) {
        if place.trusted {
            let config = json!({"trustedFolders": [place.project()]});
            place.write(".copilot/config.json", &format!("{config:#}\n"));
        }
        if place.hook_keeper.is_some() {
            let hooks: Value = EVENTS.iter().map(|event| (String::from(*event), hook(place, event))).collect();
            place.write(".copilot/hooks/keep.json", &format!("{:#}\n", json!({"version": 1, "hooks": hooks})));
        }
    }

    fn environment(&self, place: &Place) -> Vec<(&'static str, String)> {
        vec![
            ("COPILOT_OFFLINE", "true".into()),
            ("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", place.url)),
            ("COPILOT_PROVIDER_API_KEY", "dummy".into()),
            ("COPILOT_MODEL", "mock-model".into()),
            ("COPILOT_AUTO_UPDATE", "false".into()),
        ]
    }

    fn launch(&self, how: &Launch) -> String {
        let program = format!("copilot --allow-tool='shell({FREE_TOOL}:*)'");
        match how {
            Launch::Plain | Launch::Plan => program,
            Launch::Headless(prompt) => format!("{program} -p '{prompt}'"),
        }
    }

    fn mark(&self, scene: Scene) -> Option<Mark> {
        let at_rest = |mark: Mark| mark.and_shows("/ commands").footer_lacks("Working").in_last(12);
        Some(match scene {
            Scene::Ready | Scene::ReadyToPlan => Mark::shows("/ commands").footer_lacks("Working").lacks(" ❯ "),
            Scene::Trust => Mark::shows("Confirm folder trust").and_shows("❯ 1. Yes"),
            Scene::Approval => Mark::shows("Do you want to run this command?").and_shows("❯ 1. Yes"),
            Scene::Question => Mark::shows("Copilot needs information"),
            Scene::Plan | Scene::Background => return None,
            Scene::Done => at_rest(Mark::shows("❯")),
            Scene::Quoted => at_rest(Mark::shows("end-of-quote.")),
            Scene::Denied | Scene::Interrupted => at_rest(Mark::shows("Operation cancelled by user")),
            Scene::Retrying => Mark::shows("transient API error. Retrying"),
            Scene::Failed => at_rest(Mark::shows("✗ 400")),
            Scene::Subagent => Mark::shows("Working").in_last(2),
            Scene::Queued => Mark::shows("[pending"),
        })
    }

    fn keys(&self, reply: Reply) -> &'static [&'static str] {
        match reply {
            Reply::Trust | Reply::Approve | Reply::AcceptPlan | Reply::Choose => &["Enter"],
            Reply::Deny => &["Escape"],
            // Escape would have to come twice within a moment.
            Reply::Interrupt => &["C-c"],
            Reply::PlanMode => &[],
        }
    }

    fn command(&self, wish: Wish) -> &'static str {
        match wish {
            Wish::Clear => "/clear",
            Wish::Exit => "/exit",
        }
    }

    /// It tries again after most others, for longer than a test has.
    fn failure(&self) -> &'static str {
        "FAIL 400"
    }
}

fn hook(place: &Place, event: &str) -> Value {
    json!([{"type": "command", "bash": place.keeper(event), "timeoutSec": 10}])
}
