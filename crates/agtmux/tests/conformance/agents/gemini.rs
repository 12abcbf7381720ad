//! Gemini CLI.

use serde_json::{Value, json};

use super::{
    AgentWorkspace, ConformanceAgent, DialogReply, FREE_TOOL, LaunchMode, ScreenPattern, ScreenState, SlashCommand,
};

pub(super) struct Gemini;

/// Not those that it runs for every chunk of an answer.
const EVENTS: [&str; 7] =
    ["SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification"];

impl ConformanceAgent for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@google/gemini-cli", "0.61.0")
    }

    fn prepare(&self, place: &AgentWorkspace) {
        let mut settings = json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": true}},
            "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "model": {"name": "gemini-2.5-flash"},
            "ui": {"hideTips": true},
        });
        if place.hook_payload_saver.is_some() {
            settings["hooks"] = EVENTS.iter().map(|event| (String::from(*event), hook_entry(place, event))).collect();
        }
        place.write(".gemini/settings.json", &format!("{settings:#}\n"));
        let rule = format!(
            "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"{FREE_TOOL}\"\ndecision = \"allow\"\npriority = 100\n"
        );
        place.write(".gemini/policies/free-tool.toml", &rule);
        if place.trusted {
            let folders: Value = [(place.project_path(), json!("TRUST_FOLDER"))].into_iter().collect();
            place.write(".gemini/trustedFolders.json", &folders.to_string());
        }
    }

    fn environment(&self, place: &AgentWorkspace) -> Vec<(&'static str, String)> {
        vec![("GEMINI_API_KEY", "dummy".into()), ("GOOGLE_GEMINI_BASE_URL", place.model_url.clone())]
    }

    fn launch(&self, how: &LaunchMode) -> String {
        match how {
            LaunchMode::Plain | LaunchMode::Plan => "gemini".into(),
            LaunchMode::Headless(prompt) => format!("gemini -p '{prompt}'"),
        }
    }

    fn screen_pattern(&self, scene: ScreenState) -> Option<ScreenPattern> {
        let at_rest =
            |mark: ScreenPattern| mark.and_shows("Type your message").lacks("esc to cancel").title_shows("Ready");
        Some(match scene {
            ScreenState::Ready | ScreenState::ReadyToPlan => at_rest(ScreenPattern::shows(">")).lacks("✦").lacks("✕"),
            ScreenState::Trust => ScreenPattern::shows("Do you trust the files"),
            ScreenState::Approval => {
                ScreenPattern::shows("Allow execution of").and_shows("1. Allow once").title_shows("Action")
            }
            ScreenState::Question => ScreenPattern::shows("Answer Questions").and_shows("Enter to select"),
            ScreenState::Plan | ScreenState::Background => return None,
            ScreenState::Done => at_rest(ScreenPattern::shows("✦")),
            ScreenState::Quoted => {
                ScreenPattern::shows("end-of-quote.").and_shows("Type your message").title_shows("Ready")
            }
            ScreenState::Denied | ScreenState::Interrupted => at_rest(ScreenPattern::shows("ℹ Request cancelled.")),
            ScreenState::Retrying => ScreenPattern::shows("esc to cancel").title_shows("Working"),
            ScreenState::Failed => at_rest(ScreenPattern::shows("✕ [API Error")),
            ScreenState::Subagent => ScreenPattern::shows("esc to cancel").title_shows("Working"),
            ScreenState::Queued => ScreenPattern::shows("Queued (press ↑ to edit)"),
        })
    }

    fn keys(&self, reply: DialogReply) -> &'static [&'static str] {
        match reply {
            DialogReply::Trust | DialogReply::Approve | DialogReply::AcceptPlan | DialogReply::Choose => &["Enter"],
            DialogReply::Deny | DialogReply::Interrupt => &["Escape"],
            DialogReply::PlanMode => &[],
        }
    }

    fn slash_command(&self, wish: SlashCommand) -> &'static str {
        match wish {
            SlashCommand::Clear => "/clear",
            SlashCommand::Exit => "/quit",
        }
    }

    /// It tries again for minutes after most others.
    fn failing_prompt(&self) -> &'static str {
        "FAIL 400"
    }
}

fn hook_entry(place: &AgentWorkspace, event: &str) -> Value {
    json!([{"hooks": [{"type": "command", "name": format!("keep-{event}"), "command": place.save_hook_command(event)}]}])
}
