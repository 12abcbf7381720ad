//! Claude Code.

use serde_json::{Value, json};

use super::{Agent, FREE_TOOL, Launch, Mark, Place, Reply, Scene, Wish};

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

impl Agent for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn package(&self) -> (&'static str, &'static str) {
        ("@anthropic-ai/claude-code", "2.1.325")
    }

    fn prepare(&self, place: &Place) {
        let known_end = &KEY[KEY.len() - 20..];
        let mut state = json!({
            "hasCompletedOnboarding": true, "theme": "dark", "autoUpdates": false, "numStartups": 20,
            "customApiKeyResponses": {"approved": [known_end], "rejected": []},
            "projects": {},
        });
        if place.trusted {
            state["projects"][place.project()] =
                json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
        }
        place.write(".claude.json", &state.to_string());
        let allowed = format!("Bash({FREE_TOOL}:*)");
        let mut settings = json!({"permissions": {"defaultMode": "default", "allow": [allowed]}});
        if place.hook_keeper.is_some() {
            settings["hooks"] = EVENTS.iter().map(|event| (String::from(*event), hook(place, event))).collect();
        }
        place.write(".claude/settings.json", &format!("{settings:#}\n"));
    }

    fn environment(&self, place: &Place) -> Vec<(&'static str, String)> {
        let mut variables = vec![("ANTHROPIC_BASE_URL", place.url.clone()), ("ANTHROPIC_API_KEY", KEY.to_owned())];
        let switches = [
            // It refuses some modes to root otherwise.
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

    fn launch(&self, how: &Launch) -> String {
        match how {
            Launch::Plain => "claude --model claude-sonnet-4-5".into(),
            Launch::Plan => "claude --model claude-sonnet-4-5 --permission-mode plan".into(),
            Launch::Headless(prompt) => format!("claude --model claude-sonnet-4-5 -p '{prompt}'"),
        }
    }

    fn mark(&self, scene: Scene) -> Option<Mark> {
        let at_rest = |mark: Mark| mark.footer_lacks("esc to interrupt").in_last(12);
        Some(match scene {
            Scene::Ready => Mark::shows("❯").and_shows("? for shortcuts").lacks(" · done "),
            Scene::ReadyToPlan => Mark::shows("plan mode on"),
            Scene::Trust => Mark::shows("trust").and_shows("Enter to confirm"),
            Scene::Approval => Mark::shows("Do you want to proceed?").and_shows("❯ 1. Yes"),
            Scene::Question => Mark::shows("☐ Colour").and_shows("Enter to select"),
            Scene::Plan => Mark::shows("Exit plan mode?").and_shows("❯ 1. Yes"),
            Scene::Done => at_rest(Mark::shows(" · done ").lacks("still running")),
            Scene::Quoted => at_rest(Mark::shows("end-of-quote.").and_shows(" · done ")),
            Scene::Denied | Scene::Interrupted => at_rest(Mark::shows("Interrupted · What should Claude do")),
            Scene::Retrying => Mark::shows("Retrying in"),
            Scene::Failed => at_rest(Mark::shows("API Error")),
            Scene::Background => at_rest(Mark::shows("shell still running")),
            Scene::Subagent => Mark::shows("Waiting for 1 background agent to finish").in_last(12),
            Scene::Queued => Mark::shows("Press up to edit queued messages"),
        })
    }

    fn keys(&self, reply: Reply) -> &'static [&'static str] {
        match reply {
            // "No" is chosen at first.
            Reply::Trust => &["Down", "Enter"],
            Reply::Approve | Reply::AcceptPlan | Reply::Choose => &["Enter"],
            Reply::Deny | Reply::Interrupt => &["Escape"],
            Reply::PlanMode => &[],
        }
    }

    fn command(&self, wish: Wish) -> &'static str {
        match wish {
            Wish::Clear => "/clear",
            Wish::Exit => "/exit",
        }
    }
}

fn hook(place: &Place, event: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": place.keeper(event), "timeout": 10}]}])
}
