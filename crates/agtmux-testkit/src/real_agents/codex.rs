//! Codex.

use serde_json::{Value, json};

use super::{
    AfterFailure, AgentWorkspace, ConformanceAgent, DialogReply, LaunchMode, ModelFailure, ScreenPattern, ScreenState,
    SlashCommand,
};

pub(super) struct Codex;

const EVENTS: [&str; 14] = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreModelRequest",
    "PostModelRequest",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "Stop",
    "Interrupt",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
];

/// The title shows this spinner while Codex works. While an answer streams, nothing else shows that Codex works.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

impl ConformanceAgent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@openai/codex", "0.166.0")
    }

    fn prepare(&self, workspace: &AgentWorkspace) {
        let url = &workspace.model_url;
        // With these settings Codex does not ask whether to trust the directory.
        let rights = match workspace.trusted {
            true => "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n",
            false => "",
        };
        let mut config = format!(
            r#"model = "mock-model"
model_provider = "mock"
{rights}check_for_update_on_startup = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1

[features]
daemon_auto_start = false

[analytics]
enabled = false
"#
        );
        if workspace.trusted {
            config += &format!("\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n", workspace.project_path());
        }
        workspace.write(".codex/config.toml", &config);
        if !workspace.trusted {
            // Codex asks about trust only if the directory has its own settings.
            let own = workspace.project.join(".codex/config.toml");
            std::fs::create_dir_all(own.parent().expect("a file has a directory")).expect("the world is writable");
            std::fs::write(own, "model_reasoning_effort = \"low\"\n").expect("the world is writable");
        }
        if workspace.hook_payload_saver.is_some() {
            let hooks: Value =
                EVENTS.iter().map(|event| (String::from(*event), hook_entry(workspace, event))).collect();
            workspace.write(".codex/hooks.json", &format!("{:#}\n", json!({"hooks": hooks})));
        }
    }

    fn environment(&self, _workspace: &AgentWorkspace) -> Vec<(&'static str, String)> {
        vec![("OPENAI_API_KEY", "sk-test".into())]
    }

    fn launch(&self, mode: &LaunchMode) -> String {
        // Without these options, Codex asks for a review of new hooks, and the Codex daemon outlives the test.
        let program = "codex --no-daemon --dangerously-bypass-hook-trust";
        match mode {
            LaunchMode::Plain | LaunchMode::Plan => program.into(),
            LaunchMode::Headless(prompt) => {
                format!("codex exec --skip-git-repo-check --dangerously-bypass-hook-trust '{prompt}'")
            }
        }
    }

    fn screen_pattern(&self, state: ScreenState) -> Option<ScreenPattern> {
        let quiet = |pattern: ScreenPattern| SPINNER.iter().fold(pattern, |pattern, turn| pattern.title_lacks(turn));
        let at_rest = |pattern: ScreenPattern| {
            quiet(pattern.and_shows("Ask Codex to do anything").lacks("esc to interrupt)").in_last_rows(10))
        };
        Some(match state {
            // A starting Codex first draws its input box, while the title is still the title of the shell. It then
            // shows a title with a spinner. The spinner disappears from the title when Codex has started.
            ScreenState::Ready => {
                let ready = ScreenPattern::shows("for shortcuts").lacks("Worked for").lacks("■");
                at_rest(ready.title_shows("proj"))
            }
            ScreenState::ReadyToPlan => at_rest(ScreenPattern::shows("Plan mode")),
            ScreenState::Trust => ScreenPattern::shows("Trust this folder?").and_shows("1. Trust and continue"),
            ScreenState::Approval => {
                ScreenPattern::shows("Would you like to run the following command?").and_shows("1. Yes, proceed")
            }
            ScreenState::Question => ScreenPattern::shows("Question 1/1").and_shows("enter to submit answer"),
            ScreenState::Plan | ScreenState::Background | ScreenState::Compacted | ScreenState::FailureDialog => {
                return None;
            }
            ScreenState::Done => at_rest(ScreenPattern::shows("Worked for")),
            ScreenState::Quoted => quiet(ScreenPattern::shows("end-of-quote.").and_shows("Worked for")),
            ScreenState::Denied => at_rest(ScreenPattern::shows("✗ You canceled")),
            ScreenState::Retrying => ScreenPattern::shows("Reconnecting"),
            ScreenState::Failed => {
                at_rest(ScreenPattern::shows("■ ").lacks("Conversation interrupted")).in_last_rows(5)
            }
            ScreenState::Interrupted => at_rest(ScreenPattern::shows("■ Conversation interrupted")).in_last_rows(5),
            ScreenState::Subagent => ScreenPattern::shows("• Waiting for ").lacks("• Finished waiting"),
            ScreenState::Queued => ScreenPattern::shows("› SLOW 4"),
        })
    }

    fn keys(&self, reply: DialogReply) -> &'static [&'static str] {
        match reply {
            DialogReply::Trust | DialogReply::Approve | DialogReply::AcceptPlan | DialogReply::Choose => &["Enter"],
            DialogReply::Deny | DialogReply::Interrupt => &["Escape"],
            DialogReply::PlanMode => &["BTab"],
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
            // Codex waits until the network is back.
            ModelFailure::Refused => AfterFailure::Retries,
            _ => AfterFailure::Fails,
        }
    }
}

fn hook_entry(workspace: &AgentWorkspace, event: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": workspace.save_hook_command(event), "timeout": 10}]}])
}
