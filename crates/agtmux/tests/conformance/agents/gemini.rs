//! Gemini CLI.

use serde_json::{Value, json};

use super::{Agent, FREE_TOOL, Launch, Mark, Place, Reply, Scene, Wish};

pub(super) struct Gemini;

/// Not those that it runs for every chunk of an answer.
const EVENTS: [&str; 7] =
    ["SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification"];

impl Agent for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@google/gemini-cli", "0.61.0")
    }

    fn prepare(&self, place: &Place) {
        let mut settings = json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": true}},
            "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "model": {"name": "gemini-2.5-flash"},
            "ui": {"hideTips": true},
        });
        if place.hook_keeper.is_some() {
            settings["hooks"] = EVENTS.iter().map(|event| (String::from(*event), hook(place, event))).collect();
        }
        place.write(".gemini/settings.json", &format!("{settings:#}\n"));
        let rule = format!(
            "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"{FREE_TOOL}\"\ndecision = \"allow\"\npriority = 100\n"
        );
        place.write(".gemini/policies/free-tool.toml", &rule);
        if place.trusted {
            let folders: Value = [(place.project(), json!("TRUST_FOLDER"))].into_iter().collect();
            place.write(".gemini/trustedFolders.json", &folders.to_string());
        }
    }

    fn environment(&self, place: &Place) -> Vec<(&'static str, String)> {
        vec![("GEMINI_API_KEY", "dummy".into()), ("GOOGLE_GEMINI_BASE_URL", place.url.clone())]
    }

    fn launch(&self, how: &Launch) -> String {
        match how {
            Launch::Plain | Launch::Plan => "gemini".into(),
            Launch::Headless(prompt) => format!("gemini -p '{prompt}'"),
        }
    }

    fn mark(&self, scene: Scene) -> Option<Mark> {
        let at_rest = |mark: Mark| mark.and_shows("Type your message").lacks("esc to cancel").title_shows("Ready");
        Some(match scene {
            Scene::Ready | Scene::ReadyToPlan => at_rest(Mark::shows(">")).lacks("✦").lacks("✕"),
            Scene::Trust => Mark::shows("Do you trust the files"),
            Scene::Approval => Mark::shows("Allow execution of").and_shows("1. Allow once").title_shows("Action"),
            Scene::Question => Mark::shows("Answer Questions").and_shows("Enter to select"),
            Scene::Plan | Scene::Background => return None,
            Scene::Done => at_rest(Mark::shows("✦")),
            Scene::Quoted => Mark::shows("end-of-quote.").and_shows("Type your message").title_shows("Ready"),
            Scene::Denied | Scene::Interrupted => at_rest(Mark::shows("ℹ Request cancelled.")),
            Scene::Retrying => Mark::shows("esc to cancel").title_shows("Working"),
            Scene::Failed => at_rest(Mark::shows("✕ [API Error")),
            Scene::Subagent => Mark::shows("esc to cancel").title_shows("Working"),
            Scene::Queued => Mark::shows("Queued (press ↑ to edit)"),
        })
    }

    fn keys(&self, reply: Reply) -> &'static [&'static str] {
        match reply {
            Reply::Trust | Reply::Approve | Reply::AcceptPlan | Reply::Choose => &["Enter"],
            Reply::Deny | Reply::Interrupt => &["Escape"],
            Reply::PlanMode => &[],
        }
    }

    fn command(&self, wish: Wish) -> &'static str {
        match wish {
            Wish::Clear => "/clear",
            Wish::Exit => "/quit",
        }
    }

    /// It tries again for minutes after most others.
    fn failure(&self) -> &'static str {
        "FAIL 400"
    }
}

fn hook(place: &Place, event: &str) -> Value {
    json!([{"hooks": [{"type": "command", "name": format!("keep-{event}"), "command": place.keeper(event)}]}])
}
