//! aider. It has no hooks, tools, question dialogs or subagents. It asks before it runs commands that the model
//! suggests.

use super::{
    AfterFailure, AgentWorkspace, ConformanceAgent, DialogReply, EvidenceMode, LaunchMode, ModelFailure,
    PackageRegistry, ScreenPattern, ScreenState, SlashCommand,
};

pub(super) struct Aider;

/// aider offers to run commands only in this edit format. The other options turn off downloads and analytics.
const LAUNCH: &str = "aider --model openai/mock-no-tools --edit-format diff --no-git --no-check-update \
                      --no-show-model-warnings --no-show-release-notes --analytics-disable";

impl ConformanceAgent for Aider {
    fn name(&self) -> &'static str {
        "aider"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("aider-chat", "0.86.2")
    }

    fn registry(&self) -> PackageRegistry {
        PackageRegistry::PyPi
    }

    fn modes(&self) -> &'static [EvidenceMode] {
        &[EvidenceMode::NoHooks]
    }

    fn prepare(&self, _: &AgentWorkspace) {}

    fn environment(&self, workspace: &AgentWorkspace) -> Vec<(&'static str, String)> {
        vec![("OPENAI_API_BASE", format!("{}/v1", workspace.model_url)), ("OPENAI_API_KEY", "sk-test".into())]
    }

    fn launch(&self, mode: &LaunchMode) -> String {
        match mode {
            LaunchMode::Plain | LaunchMode::Plan => LAUNCH.into(),
            LaunchMode::Headless(prompt) => format!("{LAUNCH} --message '{prompt}'"),
        }
    }

    fn screen_pattern(&self, state: ScreenState) -> Option<ScreenPattern> {
        let at_rest = |pattern: ScreenPattern| pattern.last_row_is("diff>");
        Some(match state {
            ScreenState::Ready | ScreenState::Done => at_rest(ScreenPattern::default()),
            ScreenState::Approval => ScreenPattern::shows("Run shell command? (Y)es/(N)o").in_last_rows(1),
            ScreenState::Quoted => at_rest(ScreenPattern::shows("end-of-quote.")),
            ScreenState::Denied => at_rest(ScreenPattern::shows("[Yes]: n")),
            ScreenState::Retrying => ScreenPattern::shows("Retrying in"),
            ScreenState::Failed => at_rest(ScreenPattern::shows("litellm.BadRequestError")),
            ScreenState::Interrupted => at_rest(ScreenPattern::shows("^C")),
            ScreenState::ReadyToPlan | ScreenState::Trust | ScreenState::Question | ScreenState::Plan => return None,
            ScreenState::Background
            | ScreenState::Compacted
            | ScreenState::Subagent
            | ScreenState::Queued
            | ScreenState::FailureDialog => {
                return None;
            }
        })
    }

    /// aider asks before every command, but the scenario `tool` needs a command that runs without approval.
    fn unsupported_scenarios(&self) -> &'static [&'static str] {
        &["tool"]
    }

    fn keys(&self, reply: DialogReply) -> &'static [&'static str] {
        match reply {
            DialogReply::Approve => &["y", "Enter"],
            DialogReply::Deny => &["n", "Enter"],
            DialogReply::Interrupt => &["C-c"],
            DialogReply::Trust | DialogReply::AcceptPlan | DialogReply::Choose | DialogReply::PlanMode => &[],
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
            ModelFailure::Status(400..429) => AfterFailure::Fails,
            _ => AfterFailure::Retries,
        }
    }
}
