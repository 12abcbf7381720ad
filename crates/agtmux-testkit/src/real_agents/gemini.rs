//! Gemini CLI.

use serde_json::{Value, json};

use super::{
    AfterFailure, AgentWorkspace, ConformanceAgent, DialogReply, FREE_TOOL, LaunchMode, ModelFailure, ScreenPattern,
    ScreenState, SlashCommand,
};

pub(super) struct Gemini;

/// The hook events that tests record. Gemini CLI also has events for single chunks of an answer, which are not
/// recorded.
const EVENTS: [&str; 7] =
    ["SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification"];

impl ConformanceAgent for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@google/gemini-cli", "0.61.0")
    }

    fn prepare(&self, workspace: &AgentWorkspace) {
        let mut settings = json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": true}},
            "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "model": {"name": "gemini-2.5-flash"},
            "ui": {"hideTips": true},
        });
        if workspace.hook_payload_saver.is_some() {
            settings["hooks"] =
                EVENTS.iter().map(|event| (String::from(*event), hook_entry(workspace, event))).collect();
        }
        workspace.write(".gemini/settings.json", &format!("{settings:#}\n"));
        let rule = format!(
            "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"{FREE_TOOL}\"\ndecision = \"allow\"\npriority = 100\n"
        );
        workspace.write(".gemini/policies/free-tool.toml", &rule);
        if workspace.trusted {
            let folders: Value = [(workspace.project_path(), json!("TRUST_FOLDER"))].into_iter().collect();
            workspace.write(".gemini/trustedFolders.json", &folders.to_string());
        }
    }

    fn environment(&self, workspace: &AgentWorkspace) -> Vec<(&'static str, String)> {
        vec![("GEMINI_API_KEY", "dummy".into()), ("GOOGLE_GEMINI_BASE_URL", workspace.model_url.clone())]
    }

    fn launch(&self, mode: &LaunchMode) -> String {
        match mode {
            LaunchMode::Plain | LaunchMode::Plan => "gemini".into(),
            LaunchMode::Headless(prompt) => format!("gemini -p '{prompt}'"),
        }
    }

    fn screen_pattern(&self, state: ScreenState) -> Option<ScreenPattern> {
        let at_rest =
            |pattern: ScreenPattern| pattern.and_shows("Type your message").lacks("esc to cancel").title_shows("Ready");
        Some(match state {
            ScreenState::Ready | ScreenState::ReadyToPlan => at_rest(ScreenPattern::shows(">")).lacks("✦").lacks("✕"),
            ScreenState::Trust => ScreenPattern::shows("Do you trust the files"),
            ScreenState::Approval => {
                ScreenPattern::shows("Allow execution of").and_shows("1. Allow once").title_shows("Action")
            }
            ScreenState::Question => ScreenPattern::shows("Answer Questions").and_shows("Enter to select"),
            ScreenState::Plan | ScreenState::Background | ScreenState::Compacted => return None,
            ScreenState::Done => at_rest(ScreenPattern::shows("✦")),
            ScreenState::Quoted => {
                ScreenPattern::shows("end-of-quote.").and_shows("Type your message").title_shows("Ready")
            }
            ScreenState::Denied | ScreenState::Interrupted => at_rest(ScreenPattern::shows("ℹ Request cancelled.")),
            ScreenState::Retrying => ScreenPattern::shows("esc to cancel").title_shows("Working"),
            ScreenState::Failed => at_rest(ScreenPattern::shows("✕ [API Error")),
            ScreenState::FailureDialog => {
                ScreenPattern::shows("was not found or is invalid").and_shows("1. Keep trying")
            }
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

    fn slash_command(&self, command: SlashCommand) -> &'static str {
        match command {
            SlashCommand::Clear => "/clear",
            SlashCommand::Exit => "/quit",
        }
    }

    fn after_failure(&self, failure: ModelFailure) -> AfterFailure {
        match failure {
            ModelFailure::Status(404) => AfterFailure::Asks,
            ModelFailure::Status(429 | 500 | 529) | ModelFailure::Refused | ModelFailure::Reset => {
                AfterFailure::Retries
            }
            ModelFailure::Status(_) | ModelFailure::BrokenStream => AfterFailure::Fails,
        }
    }
}

fn hook_entry(workspace: &AgentWorkspace, event: &str) -> Value {
    json!([{"hooks": [{"type": "command", "name": format!("save-{event}"), "command": workspace.save_hook_command(event)}]}])
}
