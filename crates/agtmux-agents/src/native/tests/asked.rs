//! The commands for which recorded events request approval.

use super::*;

/// The command of the newest open request, and the texts in the neighbouring fields of its payload.
fn asked(agent: &'static str, source: Source, event_type: &str, payload: &Value) -> Option<(String, Vec<String>)> {
    let mut memory = AdapterMemory::default();
    let now = Timestamp::from_second(1_000_000).expect("in range");
    let event = NativeEvent { source, event_type, payload, at: now };
    let observations = reduce(agent, &mut memory, Evidence::Event(event), now);
    let open = observations.into_iter().find(|observation| observation.assertion == APPROVAL)?;
    let last = open.asked.last()?.clone();
    Some((last.command?, last.about))
}

#[test]
fn requests_for_approval_contain_the_whole_command() {
    let hook = |agent: &'static str, name: &str| {
        let mut payload = AdapterTest::new(agent).recorded(name);
        if payload.get("json").is_some() {
            payload = payload["json"].take();
        }
        let event_type = payload["hook_event_name"].as_str().expect("a hook").to_owned();
        asked(agent, Source::Hook, &event_type, &payload)
    };
    let (command, about) = hook("claude", "PermissionRequest").expect("a command");
    assert!(command.starts_with("touch ") && about == ["Run mock command"], "{command} {about:?}");
    let recorded =
        [("codex", "hook.PermissionRequest"), ("gemini", "hook.Notification.exec"), ("qwen", "PermissionRequest")];
    for (agent, name) in recorded {
        let (command, _) = hook(agent, name).unwrap_or_else(|| panic!("{agent} reports no command"));
        assert!(command.starts_with("touch "), "{agent}: {command}");
    }
    assert_eq!(hook("claude", "PermissionRequest.ExitPlanMode"), None, "a plan is not a command");
    assert_eq!(hook("gemini", "hook.Notification.edit"), None, "a file is not a command");
    let opencode = json!({"id": "per_1", "permission": "bash", "command": "touch a"});
    assert_eq!(
        asked("opencode", Source::Hook, "permission.asked", &opencode).map(|(command, _)| command),
        Some("touch a".into())
    );
    let request = json!({"requestId": "r", "resolvedByHook": false, "permissionRequest": {"fullCommandText": "touch a", "intention": "b"}});
    let logged = asked("copilot", Source::File, "permission.requested", &json!({"data": request}));
    assert_eq!(logged, Some(("touch a".into(), vec!["b".into()])));
}

#[test]
fn secrets_are_removed_from_commands_but_shell_code_is_not() {
    let payload =
        json!({"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "API_TOKEN=abc make X_KEY=$(id)"}});
    let command = asked("claude", Source::Hook, "PermissionRequest", &payload).map(|(command, _)| command);
    assert_eq!(command.as_deref(), Some("API_TOKEN=[redacted:env] make X_KEY=$(id)"));
}
