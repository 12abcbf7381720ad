//! Qwen Code.

use serde_json::{Value, json};

use super::{Agent, FREE_TOOL, Launch, Mark, Place, Reply, Scene, Wish};

pub(super) struct Qwen;

const EVENTS: [&str; 12] = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Notification",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
];

impl Agent for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@qwen-code/qwen-code", "0.24.4")
    }

    fn newer_node(&self) -> bool {
        true
    }

    fn prepare(&self, place: &Place) {
        let mut settings = json!({
            "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": true}},
            "general": {"enableAutoUpdate": false},
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "ui": {"hideTips": true},
            "permissions": {"allow": [format!("Bash({FREE_TOOL} *)"), "Agent(general-purpose)".to_owned()]},
        });
        if place.hook_keeper.is_some() {
            settings["hooks"] = EVENTS.iter().map(|event| (String::from(*event), hook(place, event))).collect();
        }
        place.write(".qwen/settings.json", &format!("{settings:#}\n"));
        if place.trusted {
            let folders: Value = [(place.project(), json!("TRUST_FOLDER"))].into_iter().collect();
            place.write(".qwen/trustedFolders.json", &folders.to_string());
        }
    }

    fn environment(&self, place: &Place) -> Vec<(&'static str, String)> {
        vec![
            ("OPENAI_BASE_URL", format!("{}/v1", place.url)),
            ("OPENAI_API_KEY", "sk-test".into()),
            ("OPENAI_MODEL", "mock-model".into()),
        ]
    }

    fn launch(&self, how: &Launch) -> String {
        match how {
            Launch::Plain | Launch::Plan => "qwen --approval-mode default".into(),
            Launch::Headless(prompt) => format!("qwen -p '{prompt}'"),
        }
    }

    fn mark(&self, scene: Scene) -> Option<Mark> {
        let quiet = |mark: Mark| mark.title_lacks("◐").title_lacks("✳");
        let at_rest = |mark: Mark| quiet(mark.and_shows("Type your message").lacks("esc to cancel"));
        Some(match scene {
            Scene::Ready | Scene::ReadyToPlan => at_rest(Mark::shows(">")).lacks("◆").lacks("✕"),
            Scene::Trust => Mark::shows("Do you trust"),
            Scene::Approval => Mark::shows("› 1. Yes, allow once").title_shows("✳"),
            Scene::Question => Mark::shows("Which colour").and_shows("Enter: Select").title_shows("✳"),
            Scene::Plan | Scene::Background => return None,
            Scene::Done => at_rest(Mark::shows("◆")),
            Scene::Quoted => quiet(Mark::shows("end-of-quote.").and_shows("Type your message")),
            Scene::Denied => at_rest(Mark::shows("- Shell")),
            Scene::Interrupted => at_rest(Mark::shows("Request cancelled.")),
            Scene::Retrying => Mark::shows("esc to cancel"),
            Scene::Failed => at_rest(Mark::shows("✕ [API Error")),
            Scene::Subagent => Mark::shows("esc to cancel").title_shows("◐"),
            Scene::Queued => Mark::shows("↑ to edit queued messages"),
        })
    }

    fn keys(&self, reply: Reply) -> &'static [&'static str] {
        match reply {
            Reply::Trust | Reply::Approve | Reply::AcceptPlan | Reply::Choose => &["Enter"],
            Reply::Deny => &["Escape"],
            // It puts the prompt back into its box.
            Reply::Interrupt => &["Escape", "C-u"],
            Reply::PlanMode => &[],
        }
    }

    fn command(&self, wish: Wish) -> &'static str {
        match wish {
            Wish::Clear => "/clear",
            Wish::Exit => "/quit",
        }
    }

    /// It tries again for longer than a test has after most others.
    fn failure(&self) -> &'static str {
        "FAIL 400"
    }
}

fn hook(place: &Place, event: &str) -> Value {
    json!([{"hooks": [{"type": "command", "name": format!("keep-{event}"), "command": place.keeper(event)}]}])
}
