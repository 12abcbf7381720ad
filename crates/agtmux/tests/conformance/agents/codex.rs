//! Codex.

use serde_json::{Value, json};

use super::{AgentWorkspace, ConformanceAgent, DialogReply, LaunchMode, ScreenPattern, ScreenState, SlashCommand};

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

/// While it works its title turns; there is no other sign of it as long as text streams.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

impl ConformanceAgent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@openai/codex", "0.166.0")
    }

    fn prepare(&self, place: &AgentWorkspace) {
        let url = &place.model_url;
        // Whoever has said what is allowed is not asked whether the directory can be trusted.
        let rights = match place.trusted {
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
        if place.trusted {
            config += &format!("\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n", place.project_path());
        }
        place.write(".codex/config.toml", &config);
        if !place.trusted {
            // A directory that can bring nothing of its own is not asked about.
            let own = place.project.join(".codex/config.toml");
            std::fs::create_dir_all(own.parent().expect("a file has a directory")).expect("the world is writable");
            std::fs::write(own, "model_reasoning_effort = \"low\"\n").expect("the world is writable");
        }
        if place.hook_payload_saver.is_some() {
            let hooks: Value = EVENTS.iter().map(|event| (String::from(*event), hook_entry(place, event))).collect();
            place.write(".codex/hooks.json", &format!("{:#}\n", json!({"hooks": hooks})));
        }
    }

    fn environment(&self, _place: &AgentWorkspace) -> Vec<(&'static str, String)> {
        vec![("OPENAI_API_KEY", "sk-test".into())]
    }

    fn launch(&self, how: &LaunchMode) -> String {
        // New hooks would have to be reviewed at every first start, and the daemon outlives what started it.
        let program = "codex --no-daemon --dangerously-bypass-hook-trust";
        match how {
            LaunchMode::Plain | LaunchMode::Plan => program.into(),
            LaunchMode::Headless(prompt) => {
                format!("codex exec --skip-git-repo-check --dangerously-bypass-hook-trust '{prompt}'")
            }
        }
    }

    fn screen_pattern(&self, scene: ScreenState) -> Option<ScreenPattern> {
        let quiet = |mark: ScreenPattern| SPINNER.iter().fold(mark, |mark, turn| mark.title_lacks(turn));
        let at_rest = |mark: ScreenPattern| {
            quiet(mark.and_shows("Ask Codex to do anything").lacks("esc to interrupt)").in_last_rows(10))
        };
        Some(match scene {
            ScreenState::Ready => at_rest(ScreenPattern::shows("for shortcuts").lacks("Worked for").lacks("■")),
            ScreenState::ReadyToPlan => at_rest(ScreenPattern::shows("Plan mode")),
            ScreenState::Trust => ScreenPattern::shows("Trust this folder?").and_shows("1. Trust and continue"),
            ScreenState::Approval => {
                ScreenPattern::shows("Would you like to run the following command?").and_shows("1. Yes, proceed")
            }
            ScreenState::Question => ScreenPattern::shows("Question 1/1").and_shows("enter to submit answer"),
            ScreenState::Plan | ScreenState::Background => return None,
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

    fn slash_command(&self, wish: SlashCommand) -> &'static str {
        match wish {
            SlashCommand::Clear => "/clear",
            SlashCommand::Exit => "/quit",
        }
    }
}

fn hook_entry(place: &AgentWorkspace, event: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": place.save_hook_command(event), "timeout": 10}]}])
}
