//! Copilot CLI.

use serde_json::{Value, json};

use super::{
    AfterFailure, AgentWorkspace, ConformanceAgent, DialogReply, FREE_TOOL, LaunchMode, ModelFailure, ScreenPattern,
    ScreenState, SlashCommand,
};

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

impl ConformanceAgent for Copilot {
    fn name(&self) -> &'static str {
        "copilot"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@github/copilot", "1.0.102")
    }

    fn prepare(&self, workspace: &AgentWorkspace) {
        if workspace.trusted {
            let config = json!({"trustedFolders": [workspace.project_path()]});
            workspace.write(".copilot/config.json", &format!("{config:#}\n"));
        }
        if workspace.hook_payload_saver.is_some() {
            let hooks: Value =
                EVENTS.iter().map(|event| (String::from(*event), hook_entry(workspace, event))).collect();
            workspace
                .write(".copilot/hooks/save-payloads.json", &format!("{:#}\n", json!({"version": 1, "hooks": hooks})));
        }
    }

    fn environment(&self, workspace: &AgentWorkspace) -> Vec<(&'static str, String)> {
        vec![
            ("COPILOT_OFFLINE", "true".into()),
            ("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", workspace.model_url)),
            ("COPILOT_PROVIDER_API_KEY", "dummy".into()),
            ("COPILOT_MODEL", "mock-model".into()),
            ("COPILOT_AUTO_UPDATE", "false".into()),
        ]
    }

    fn launch(&self, mode: &LaunchMode) -> String {
        let program = format!("copilot --allow-tool='shell({FREE_TOOL}:*)'");
        match mode {
            LaunchMode::Plain | LaunchMode::Plan => program,
            LaunchMode::Headless(prompt) => format!("{program} -p '{prompt}'"),
        }
    }

    fn screen_pattern(&self, state: ScreenState) -> Option<ScreenPattern> {
        let at_rest = |pattern: ScreenPattern| pattern.and_shows("/ commands").footer_lacks("Working").in_last_rows(12);
        Some(match state {
            ScreenState::Ready | ScreenState::ReadyToPlan => {
                ScreenPattern::shows("/ commands").footer_lacks("Working").lacks(" ❯ ")
            }
            ScreenState::Trust => ScreenPattern::shows("Confirm folder trust").and_shows("❯ 1. Yes"),
            ScreenState::Approval => ScreenPattern::shows("Do you want to run this command?").and_shows("❯ 1. Yes"),
            ScreenState::Question => ScreenPattern::shows("Copilot needs information"),
            ScreenState::Plan | ScreenState::Background | ScreenState::Compacted | ScreenState::FailureDialog => {
                return None;
            }
            ScreenState::Done => at_rest(ScreenPattern::shows("❯")),
            ScreenState::Quoted => at_rest(ScreenPattern::shows("end-of-quote.")),
            ScreenState::Denied | ScreenState::Interrupted => {
                at_rest(ScreenPattern::shows("Operation cancelled by user"))
            }
            ScreenState::Retrying => ScreenPattern::shows(". Retrying..."),
            ScreenState::Failed => at_rest(ScreenPattern::default().and_shows_one_of(&[
                "✗ 400",
                "✗ Authentication failed",
                "✗ Model 'mock-model' not found",
                "✗ Failed to get response",
                "✗ The provider rejected the prompt",
            ])),
            ScreenState::Subagent => ScreenPattern::shows("Working").in_last_rows(2),
            ScreenState::Queued => ScreenPattern::shows("[pending"),
        })
    }

    fn keys(&self, reply: DialogReply) -> &'static [&'static str] {
        match reply {
            DialogReply::Trust | DialogReply::Approve | DialogReply::AcceptPlan | DialogReply::Choose => &["Enter"],
            DialogReply::Deny => &["Escape"],
            // Escape works only when pressed twice quickly.
            DialogReply::Interrupt => &["C-c"],
            DialogReply::PlanMode => &[],
        }
    }

    fn slash_command(&self, command: SlashCommand) -> &'static str {
        match command {
            SlashCommand::Clear => "/clear",
            SlashCommand::Exit => "/exit",
        }
    }

    fn after_failure(&self, failure: ModelFailure) -> AfterFailure {
        match failure {
            ModelFailure::Status(429 | 500 | 529) | ModelFailure::Refused => AfterFailure::Retries,
            ModelFailure::Status(_) | ModelFailure::Reset | ModelFailure::BrokenStream => AfterFailure::Fails,
        }
    }
}

fn hook_entry(workspace: &AgentWorkspace, event: &str) -> Value {
    json!([{"type": "command", "bash": workspace.save_hook_command(event), "timeoutSec": 10}])
}
