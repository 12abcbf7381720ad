//! aider. It has no hooks, no tools, no list of questions and no subagents: it asks before it runs what the model wrote.

use super::{
    AgentWorkspace, ConformanceAgent, DialogReply, EvidenceMode, LaunchMode, PackageRegistry, ScreenPattern,
    ScreenState, SlashCommand,
};

pub(super) struct Aider;

/// Only in this format does it offer to run commands. What it would like to fetch or to tell is switched off.
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

    fn environment(&self, place: &AgentWorkspace) -> Vec<(&'static str, String)> {
        vec![("OPENAI_API_BASE", format!("{}/v1", place.model_url)), ("OPENAI_API_KEY", "sk-test".into())]
    }

    fn launch(&self, how: &LaunchMode) -> String {
        match how {
            LaunchMode::Plain | LaunchMode::Plan => LAUNCH.into(),
            LaunchMode::Headless(prompt) => format!("{LAUNCH} --message '{prompt}'"),
        }
    }

    fn screen_pattern(&self, scene: ScreenState) -> Option<ScreenPattern> {
        let at_rest = |mark: ScreenPattern| mark.last_row_is("diff>");
        Some(match scene {
            ScreenState::Ready | ScreenState::Done => at_rest(ScreenPattern::default()),
            ScreenState::Approval => ScreenPattern::shows("Run shell command? (Y)es/(N)o").in_last_rows(1),
            ScreenState::Quoted => at_rest(ScreenPattern::shows("end-of-quote.")),
            ScreenState::Denied => at_rest(ScreenPattern::shows("[Yes]: n")),
            ScreenState::Retrying => ScreenPattern::shows("Retrying in"),
            ScreenState::Failed => at_rest(ScreenPattern::shows("litellm.BadRequestError")),
            ScreenState::Interrupted => at_rest(ScreenPattern::shows("^C")),
            ScreenState::ReadyToPlan | ScreenState::Trust | ScreenState::Question | ScreenState::Plan => return None,
            ScreenState::Background | ScreenState::Subagent | ScreenState::Queued => return None,
        })
    }

    /// It runs nothing unasked.
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

    fn slash_command(&self, wish: SlashCommand) -> &'static str {
        match wish {
            SlashCommand::Clear => "/clear",
            SlashCommand::Exit => "/exit",
        }
    }

    /// It tries again for a minute after other failures.
    fn failing_prompt(&self) -> &'static str {
        "FAIL 400"
    }
}
