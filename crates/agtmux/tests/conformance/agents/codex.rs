//! Codex.

use serde_json::{Value, json};

use super::{Agent, Launch, Mark, Place, Reply, Scene, Wish};

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

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@openai/codex", "0.166.0")
    }

    fn prepare(&self, place: &Place) {
        let url = &place.url;
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
            config += &format!("\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n", place.project());
        }
        place.write(".codex/config.toml", &config);
        if !place.trusted {
            // A directory that can bring nothing of its own is not asked about.
            let own = place.project.join(".codex/config.toml");
            std::fs::create_dir_all(own.parent().expect("a file has a directory")).expect("the world is writable");
            std::fs::write(own, "model_reasoning_effort = \"low\"\n").expect("the world is writable");
        }
        if place.hook_keeper.is_some() {
            let hooks: Value = EVENTS.iter().map(|event| (String::from(*event), hook(place, event))).collect();
            place.write(".codex/hooks.json", &format!("{:#}\n", json!({"hooks": hooks})));
        }
    }

    fn environment(&self, _place: &Place) -> Vec<(&'static str, String)> {
        vec![("OPENAI_API_KEY", "sk-test".into())]
    }

    fn launch(&self, how: &Launch) -> String {
        // New hooks would have to be reviewed at every first start, and the daemon outlives what started it.
        let program = "codex --no-daemon --dangerously-bypass-hook-trust";
        match how {
            Launch::Plain | Launch::Plan => program.into(),
            Launch::Headless(prompt) => {
                format!("codex exec --skip-git-repo-check --dangerously-bypass-hook-trust '{prompt}'")
            }
        }
    }

    fn mark(&self, scene: Scene) -> Option<Mark> {
        let quiet = |mark: Mark| SPINNER.iter().fold(mark, |mark, turn| mark.title_lacks(turn));
        let at_rest =
            |mark: Mark| quiet(mark.and_shows("Ask Codex to do anything").lacks("esc to interrupt)").in_last(10));
        Some(match scene {
            Scene::Ready => at_rest(Mark::shows("for shortcuts").lacks("Worked for").lacks("■")),
            Scene::ReadyToPlan => at_rest(Mark::shows("Plan mode")),
            Scene::Trust => Mark::shows("Trust this folder?").and_shows("1. Trust and continue"),
            Scene::Approval => Mark::shows("Would you like to run the following command?").and_shows("1. Yes, proceed"),
            Scene::Question => Mark::shows("Question 1/1").and_shows("enter to submit answer"),
            Scene::Plan | Scene::Background => return None,
            Scene::Done => at_rest(Mark::shows("Worked for")),
            Scene::Quoted => quiet(Mark::shows("end-of-quote.").and_shows("Worked for")),
            Scene::Denied => at_rest(Mark::shows("✗ You canceled")),
            Scene::Retrying => Mark::shows("Reconnecting"),
            Scene::Failed => at_rest(Mark::shows("■ ").lacks("Conversation interrupted")).in_last(5),
            Scene::Interrupted => at_rest(Mark::shows("■ Conversation interrupted")).in_last(5),
            Scene::Subagent => Mark::shows("• Waiting for ").lacks("• Finished waiting"),
            Scene::Queued => Mark::shows("› SLOW 4"),
        })
    }

    fn keys(&self, reply: Reply) -> &'static [&'static str] {
        match reply {
            Reply::Trust | Reply::Approve | Reply::AcceptPlan | Reply::Choose => &["Enter"],
            Reply::Deny | Reply::Interrupt => &["Escape"],
            Reply::PlanMode => &["BTab"],
        }
    }

    fn command(&self, wish: Wish) -> &'static str {
        match wish {
            Wish::Clear => "/clear",
            Wish::Exit => "/quit",
        }
    }
}

fn hook(place: &Place, event: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": place.keeper(event), "timeout": 10}]}])
}
