//! Events of a real opencode, forwarded by the plugin.

use super::*;

/// The assertions from each recorded event.
fn assertions(name: &str) -> Vec<Vec<Assertion>> {
    AdapterTest::new("opencode").replay(name)
}

#[test]
fn opencode_reports_turns() {
    let (running, done) = (vec![Assertion::Running], vec![Assertion::Completed, NO_DIALOG]);
    assert_eq!(assertions("turn"), [running.clone(), done.clone()]);
    let answered = vec![NO_DIALOG];
    assert_eq!(
        assertions("approved"),
        [running.clone(), vec![APPROVAL], answered.clone(), running.clone(), done.clone()]
    );
    assert_eq!(assertions("question"), [running.clone(), vec![QUESTION], answered, running, done]);
}

#[test]
fn the_idle_events_after_an_error_do_not_complete_the_turn() {
    let mut opencode = AdapterTest::new("opencode");
    let failed = vec![Assertion::Failed, NO_DIALOG];
    assert_eq!(opencode.replay("failed"), [vec![Assertion::Running], failed.clone(), failed.clone()]);
    let idle = opencode.lines("failed").pop().expect("the recording is not empty");
    assert_eq!(opencode.replay_line(&idle), failed, "the second time");
    assert_eq!(
        opencode.replay("turn"),
        [vec![Assertion::Running], vec![Assertion::Completed, NO_DIALOG]],
        "the next turn completes normally"
    );
}

#[test]
fn a_stopped_or_denied_turn_is_idle() {
    let idle = vec![Assertion::Idle, NO_DIALOG];
    assert_eq!(assertions("interrupted"), [vec![Assertion::Running], idle.clone(), idle.clone()]);
    assert_eq!(assertions("denied"), [vec![Assertion::Running], vec![APPROVAL], vec![NO_DIALOG], idle.clone()]);
    let running = vec![Assertion::Running];
    assert_eq!(assertions("retry-stopped"), [running.clone(), running.clone(), running.clone(), running, idle]);
}

#[test]
fn a_rejection_with_a_reason_continues_the_turn() {
    let mut opencode = AdapterTest::new("opencode");
    let denied = opencode.lines("denied");
    for line in &denied[..3] {
        opencode.replay_line(line);
    }
    assert_eq!(opencode.replay_line(&denied[0]), [Assertion::Running]);
    assert_eq!(opencode.replay_line(&denied[3]), [Assertion::Completed, NO_DIALOG]);
}

#[test]
fn a_busy_status_does_not_close_the_dialog() {
    let mut opencode = AdapterTest::new("opencode");
    let approved = opencode.lines("approved");
    opencode.replay_line(&approved[0]);
    assert_eq!(opencode.replay_line(&approved[1]), [APPROVAL]);
    assert_eq!(opencode.replay_line(&approved[0]), [Assertion::Running], "the dialog stays open");
    assert_eq!(opencode.replay_line(&approved[2]), [NO_DIALOG]);
}

#[test]
fn the_end_of_a_subagent_does_not_end_the_turn() {
    let (running, silent) = (vec![Assertion::Running], Vec::new());
    assert_eq!(
        assertions("subagent"),
        [running.clone(), silent.clone(), silent.clone(), vec![Assertion::Completed, NO_DIALOG]]
    );
    assert_eq!(
        assertions("subagent-asks"),
        [running, silent, vec![APPROVAL]],
        "the user answers the dialog of a subagent"
    );
}

#[test]
fn the_end_of_a_turn_leaves_the_dialog_of_a_subagent_open() {
    let mut opencode = AdapterTest::new("opencode");
    opencode.replay("subagent-asks");
    let asked = opencode.lines("subagent-asks").pop().expect("the recording is not empty");
    let of = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut line = json!({"event": name, "payload": asked["payload"]});
        change(&mut line["payload"]);
        line
    };
    let parent = |payload: &mut Value| payload["child_id"] = Value::Null;
    assert_eq!(opencode.replay_line(&of("session.idle", &parent)), [Assertion::Completed, APPROVAL]);
    let refused = |payload: &mut Value| payload["reply"] = json!("reject");
    assert_eq!(opencode.replay_line(&of("permission.replied", &refused)), [NO_DIALOG]);
    opencode.replay_line(&of("session.status", &parent));
    assert_eq!(
        opencode.replay_line(&of("session.idle", &parent)),
        [Assertion::Completed, NO_DIALOG],
        "the rejection concerned the subagent"
    );
}
