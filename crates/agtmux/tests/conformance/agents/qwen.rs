//! Qwen Code.

use serde_json::{Value, json};

use super::{
    AgentWorkspace, ConformanceAgent, DialogReply, FREE_TOOL, LaunchMode, ScreenPattern, ScreenState, SlashCommand,
};

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

impl ConformanceAgent for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@qwen-code/qwen-code", "0.24.4")
    }

    fn needs_newer_node(&self) -> bool {
        true
    }

    fn prepare(&self, place: &AgentWorkspace) {
        let mut settings = json!({
            "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": true}},
            "general": {"enableAutoUpdate": false},
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "ui": {"hideTips": true},
            "permissions": {"allow": [format!("Bash({FREE_TOOL} *)"), "Agent(general-purpose)".to_owned()]},
        });
        if place.hook_payload_saver.is_some() {
            settings["hooks"] = EVENTS.iter().map(|event| (String::from(*event), hook_entry(place, event))).collect();
        }
        place.write(".qwen/settings.json", &format!("{settings:#}\n"));
        if place.trusted {
            let folders: Value = [(place.project_path(), json!("TRUST_FOLDER"))].into_iter().collect();
            place.write(".qwen/trustedFolders.json", &folders.to_string());
        }
    }

    fn environment(&self, place: &AgentWorkspace) -> Vec<(&'static str, String)> {
        vec![
            ("OPENAI_BASE_URL", format!("{}/v1", place.model_url)),
            ("OPENAI_API_KEY", "sk-test".into()),
            ("OPENAI_MODEL", "mock-model".into()),
        ]
    }

    fn launch(&self, how: &LaunchMode) -> String {
        match how {
            LaunchMode::Plain | LaunchMode::Plan => "qwen --approval-mode default".into(),
            LaunchMode::Headless(prompt) => format!("qwen -p '{prompt}'"),
        }
    }

    fn screen_pattern(&self, scene: ScreenState) -> Option<ScreenPattern> {
        let quiet = |mark: ScreenPattern| mark.title_lacks("◐").title_lacks("✳");
        let at_rest = |mark: ScreenPattern| quiet(mark.and_shows("Type your message").lacks("esc to cancel"));
        Some(match scene {
            ScreenState::Ready | ScreenState::ReadyToPlan => at_rest(ScreenPattern::shows(">")).lacks("◆").lacks("✕"),
            ScreenState::Trust => ScreenPattern::shows("Do you trust"),
            ScreenState::Approval => ScreenPattern::shows("› 1. Yes, allow once").title_shows("✳"),
            ScreenState::Question => ScreenPattern::shows("Which colour").and_shows("Enter: Select").title_shows("✳"),
            ScreenState::Plan | ScreenState::Background => return None,
            ScreenState::Done => at_rest(ScreenPattern::shows("◆")),
            ScreenState::Quoted => quiet(ScreenPattern::shows("end-of-quote.").and_shows("Type your message")),
            ScreenState::Denied => at_rest(ScreenPattern::shows("- Shell")),
            ScreenState::Interrupted => at_rest(ScreenPattern::shows("Request cancelled.")),
            ScreenState::Retrying => ScreenPattern::shows("esc to cancel"),
            ScreenState::Failed => at_rest(ScreenPattern::shows("✕ [API Error")),
            ScreenState::Subagent => ScreenPattern::shows("esc to cancel").title_shows("◐"),
            ScreenState::Queued => ScreenPattern::shows("↑ to edit queued messages"),
        })
    }

    fn keys(&self, reply: DialogReply) -> &'static [&'static str] {
        match reply {
            DialogReply::Trust | DialogReply::Approve | DialogReply::AcceptPlan | DialogReply::Choose => &["Enter"],
            DialogReply::Deny => &["Escape"],
            // It puts the prompt back into its box.
            DialogReply::Interrupt => &["Escape", "C-u"],
            DialogReply::PlanMode => &[],
        }
    }

    fn slash_command(&self, wish: SlashCommand) -> &'static str {
        match wish {
            SlashCommand::Clear => "/clear",
            SlashCommand::Exit => "/quit",
        }
    }

    /// It tries again for longer than a test has after most others.
    fn failing_prompt(&self) -> &'static str {
        "FAIL 400"
    }
}

fn hook_entry(place: &AgentWorkspace, event: &str) -> Value {
    json!([{"hooks": [{"type": "command", "name": format!("keep-{event}"), "command": place.save_hook_command(event)}]}])
}
