//! Claude Code.

use serde_json::{Value, json};

use super::{
    AfterFailure, AgentWorkspace, ConformanceAgent, DialogReply, FREE_TOOL, LaunchMode, ModelFailure, ScreenPattern,
    ScreenState, SlashCommand,
};

pub(super) struct Claude;

const KEY: &str = "sk-ant-mock-key-of-a-conformance-run";

const EVENTS: [&str; 17] = [
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
    "Elicitation",
    "ElicitationResult",
    "PreCompact",
    "PostCompact",
    "PostToolBatch",
];

impl ConformanceAgent for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@anthropic-ai/claude-code", "2.1.325")
    }

    fn prepare(&self, workspace: &AgentWorkspace) {
        let known_end = &KEY[KEY.len() - 20..];
        let mut state = json!({
            "hasCompletedOnboarding": true, "theme": "dark", "autoUpdates": false, "numStartups": 20,
            "customApiKeyResponses": {"approved": [known_end], "rejected": []},
            "projects": {},
        });
        if workspace.trusted {
            state["projects"][workspace.project_path()] =
                json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
        }
        workspace.write(".claude.json", &state.to_string());
        let allowed = format!("Bash({FREE_TOOL}:*)");
        let mut settings = json!({"permissions": {"defaultMode": "default", "allow": [allowed]}});
        if workspace.hook_payload_saver.is_some() {
            settings["hooks"] =
                EVENTS.iter().map(|event| (String::from(*event), hook_entry(workspace, event))).collect();
        }
        workspace.write(".claude/settings.json", &format!("{settings:#}\n"));
    }

    fn environment(&self, workspace: &AgentWorkspace) -> Vec<(&'static str, String)> {
        let mut variables =
            vec![("ANTHROPIC_BASE_URL", workspace.model_url.clone()), ("ANTHROPIC_API_KEY", KEY.to_owned())];
        let switches = [
            // Without this variable, Claude Code refuses some modes when it runs as root.
            ("IS_SANDBOX", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "2"),
        ];
        variables.extend(switches.map(|(name, value)| (name, value.to_owned())));
        variables
    }

    fn launch(&self, mode: &LaunchMode) -> String {
        match mode {
            LaunchMode::Plain => "claude --model claude-sonnet-4-5".into(),
            LaunchMode::Plan => "claude --model claude-sonnet-4-5 --permission-mode plan".into(),
            LaunchMode::Headless(prompt) => format!("claude --model claude-sonnet-4-5 -p '{prompt}'"),
        }
    }

    fn screen_pattern(&self, state: ScreenState) -> Option<ScreenPattern> {
        let at_rest = |pattern: ScreenPattern| pattern.footer_lacks("esc to interrupt").in_last_rows(12);
        Some(match state {
            ScreenState::Ready => ScreenPattern::shows("❯").and_shows("? for shortcuts").lacks(" · done "),
            ScreenState::ReadyToPlan => ScreenPattern::shows("plan mode on"),
            ScreenState::Trust => ScreenPattern::shows("trust").and_shows("Enter to confirm"),
            ScreenState::Approval => ScreenPattern::shows("Do you want to proceed?").and_shows("❯ 1. Yes"),
            ScreenState::Question => ScreenPattern::shows("☐ Colour").and_shows("Enter to select"),
            ScreenState::Plan => ScreenPattern::shows("Exit plan mode?").and_shows("❯ 1. Yes"),
            ScreenState::Done => at_rest(ScreenPattern::shows(" · done ").lacks("still running")),
            ScreenState::Quoted => at_rest(ScreenPattern::shows("end-of-quote.").and_shows(" · done ")),
            ScreenState::Denied | ScreenState::Interrupted => {
                at_rest(ScreenPattern::shows("Interrupted · What should Claude do"))
            }
            ScreenState::Retrying => ScreenPattern::shows("Retrying in"),
            ScreenState::Failed => at_rest(ScreenPattern::default().and_shows_one_of(&[
                "API Error",
                "There's an issue with the selected model",
                "Request too large",
            ])),
            ScreenState::FailureDialog => return None,
            ScreenState::Compacted => at_rest(ScreenPattern::shows("Compacted (ctrl+o")),
            ScreenState::Background => at_rest(ScreenPattern::shows("shell still running")),
            ScreenState::Subagent => ScreenPattern::shows("Waiting for 1 background agent to finish").in_last_rows(12),
            ScreenState::Queued => ScreenPattern::shows("Press up to edit queued messages"),
        })
    }

    fn keys(&self, reply: DialogReply) -> &'static [&'static str] {
        match reply {
            // "No" is preselected.
            DialogReply::Trust => &["Down", "Enter"],
            DialogReply::Approve | DialogReply::AcceptPlan | DialogReply::Choose => &["Enter"],
            DialogReply::Deny | DialogReply::Interrupt => &["Escape"],
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
            // Claude requests the answer again, without streaming.
            ModelFailure::BrokenStream => AfterFailure::Recovers,
            _ => AfterFailure::Fails,
        }
    }
}

fn hook_entry(workspace: &AgentWorkspace, event: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": workspace.save_hook_command(event), "timeout": 10}]}])
}
