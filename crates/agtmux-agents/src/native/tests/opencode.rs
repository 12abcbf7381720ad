//! What the plugin passed on of a real opencode.

use super::*;

/// What each of the recorded events says.
fn told(name: &str) -> Vec<Vec<Assertion>> {
    Story::of("opencode").tell(name)
}

#[test]
fn turns_of_opencode() {
    let (running, done) = (vec![Assertion::Running], vec![Assertion::Completed, NOTHING]);
    assert_eq!(told("turn"), [running.clone(), done.clone()]);
    let answered = vec![NOTHING];
    assert_eq!(told("approved"), [running.clone(), vec![ASKS], answered.clone(), running.clone(), done.clone()]);
    assert_eq!(told("question"), [running.clone(), vec![QUESTION], answered, running, done]);
}

#[test]
fn after_an_error_it_is_idle_twice_and_that_completes_nothing() {
    let mut opencode = Story::of("opencode");
    let failed = vec![Assertion::Failed, NOTHING];
    assert_eq!(opencode.tell("failed"), [vec![Assertion::Running], failed.clone(), failed.clone()]);
    let idle = opencode.lines("failed").pop().expect("its last event");
    assert_eq!(opencode.line(&idle), failed, "the second time");
    assert_eq!(
        opencode.tell("turn"),
        [vec![Assertion::Running], vec![Assertion::Completed, NOTHING]],
        "the next turn is its own"
    );
}

#[test]
fn who_is_stopped_or_refused_has_neither_failed_nor_finished() {
    let idle = vec![Assertion::Idle, NOTHING];
    assert_eq!(told("interrupted"), [vec![Assertion::Running], idle.clone(), idle.clone()]);
    assert_eq!(told("denied"), [vec![Assertion::Running], vec![ASKS], vec![NOTHING], idle.clone()]);
    let running = vec![Assertion::Running];
    assert_eq!(told("retry-stopped"), [running.clone(), running.clone(), running.clone(), running, idle]);
}

#[test]
fn a_refusal_with_a_reason_goes_on() {
    let mut opencode = Story::of("opencode");
    let denied = opencode.lines("denied");
    for line in &denied[..3] {
        opencode.line(line);
    }
    assert_eq!(opencode.line(&denied[0]), [Assertion::Running]);
    assert_eq!(opencode.line(&denied[3]), [Assertion::Completed, NOTHING]);
}

#[test]
fn it_is_busy_while_it_asks() {
    let mut opencode = Story::of("opencode");
    let approved = opencode.lines("approved");
    opencode.line(&approved[0]);
    assert_eq!(opencode.line(&approved[1]), [ASKS]);
    assert_eq!(opencode.line(&approved[0]), [Assertion::Running], "that answers nothing");
    assert_eq!(opencode.line(&approved[2]), [NOTHING]);
}

#[test]
fn the_end_of_a_subagent_is_not_the_end_of_the_turn() {
    let (running, silent) = (vec![Assertion::Running], Vec::new());
    assert_eq!(
        told("subagent"),
        [running.clone(), silent.clone(), silent.clone(), vec![Assertion::Completed, NOTHING]]
    );
    assert_eq!(told("subagent-asks"), [running, silent, vec![ASKS]], "what it asks is asked of the user");
}

#[test]
fn a_turn_that_ends_leaves_the_question_of_a_subagent_open() {
    let mut opencode = Story::of("opencode");
    opencode.tell("subagent-asks");
    let asked = opencode.lines("subagent-asks").pop().expect("its last event");
    let of = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut line = json!({"event": name, "payload": asked["payload"]});
        change(&mut line["payload"]);
        line
    };
    let parent = |payload: &mut Value| payload["child_id"] = Value::Null;
    assert_eq!(opencode.line(&of("session.idle", &parent)), [Assertion::Completed, ASKS]);
    let refused = |payload: &mut Value| payload["reply"] = json!("reject");
    assert_eq!(opencode.line(&of("permission.replied", &refused)), [NOTHING]);
    opencode.line(&of("session.status", &parent));
    assert_eq!(
        opencode.line(&of("session.idle", &parent)),
        [Assertion::Completed, NOTHING],
        "the refusal was the child's"
    );
}
