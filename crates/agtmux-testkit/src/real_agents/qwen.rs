//! Qwen Code.

use serde_json::{Value, json};

use super::{
    AfterFailure, AgentWorkspace, ConformanceAgent, DialogReply, FREE_TOOL, LaunchMode, ModelFailure, ScreenPattern,
    ScreenState, SlashCommand,
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

    fn prepare(&self, workspace: &AgentWorkspace) {
        let mut settings = json!({
            "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": true}},
            "general": {"enableAutoUpdate": false},
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "ui": {"hideTips": true},
            "permissions": {"allow": [format!("Bash({FREE_TOOL} *)"), "Agent(general-purpose)".to_owned()]},
        });
        if workspace.hook_payload_saver.is_some() {
            settings["hooks"] =
                EVENTS.iter().map(|event| (String::from(*event), hook_entry(workspace, event))).collect();
        }
        workspace.write(".qwen/settings.json", &format!("{settings:#}\n"));
        if workspace.trusted {
            let folders: Value = [(workspace.project_path(), json!("TRUST_FOLDER"))].into_iter().collect();
            workspace.write(".qwen/trustedFolders.json", &folders.to_string());
        }
    }

    fn environment(&self, workspace: &AgentWorkspace) -> Vec<(&'static str, String)> {
        vec![
            ("OPENAI_BASE_URL", format!("{}/v1", workspace.model_url)),
            ("OPENAI_API_KEY", "sk-test".into()),
            ("OPENAI_MODEL", "mock-model".into()),
        ]
    }

    fn launch(&self, mode: &LaunchMode) -> String {
        match mode {
            LaunchMode::Plain | LaunchMode::Plan => "qwen --approval-mode default".into(),
            LaunchMode::Headless(prompt) => format!("qwen -p '{prompt}'"),
        }
    }

    fn screen_pattern(&self, state: ScreenState) -> Option<ScreenPattern> {
        let quiet = |pattern: ScreenPattern| pattern.title_lacks("◐").title_lacks("✳");
        let at_rest = |pattern: ScreenPattern| quiet(pattern.and_shows("Type your message").lacks("esc to cancel"));
        Some(match state {
            ScreenState::Ready | ScreenState::ReadyToPlan => at_rest(ScreenPattern::shows(">")).lacks("◆").lacks("✕"),
            ScreenState::Trust => ScreenPattern::shows("Do you trust"),
            ScreenState::Approval => ScreenPattern::shows("› 1. Yes, allow once").title_shows("✳"),
            ScreenState::Question => ScreenPattern::shows("Which colour").and_shows("Enter: Select").title_shows("✳"),
            ScreenState::Plan | ScreenState::Background | ScreenState::Compacted | ScreenState::FailureDialog => {
                return None;
            }
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
            // Escape puts the prompt back into the input box; C-u clears it.
            DialogReply::Interrupt => &["Escape", "C-u"],
            DialogReply::PlanMode => &[],
        }
    }

    fn slash_command(&self, command: SlashCommand) -> &'static str {
        match command {
            SlashCommand::Clear => "/clear",
            SlashCommand::Exit => "/quit",
        }
    }

    fn after_failure(&self, failure: ModelFailure) -> AfterFailure {
        match failure {
            // Qwen asks the model to continue its answer.
            ModelFailure::BrokenStream => AfterFailure::Recovers,
            ModelFailure::Status(400..429) => AfterFailure::Fails,
            _ => AfterFailure::Retries,
        }
    }
}

fn hook_entry(workspace: &AgentWorkspace, event: &str) -> Value {
    json!([{"hooks": [{"type": "command", "name": format!("save-{event}"), "command": workspace.save_hook_command(event)}]}])
}
