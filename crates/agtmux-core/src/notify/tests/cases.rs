//! What is sent, held back and withdrawn, case by case.

use super::*;
use crate::notify::{Escalation, NamePattern};
use crate::state::ReasonCode;

use NotifyChannel::{Bell, Desktop, Ntfy, Tmux};
use State::{Completed, Error, Idle, Running, Unknown, WaitingApproval, WaitingInput};

const MINUTE: i64 = 60_000;

#[test]
fn a_notice_is_sent_once_when_the_state_has_lasted() {
    let mut stage = Stage::new(vec![rule(&[Desktop])]);
    stage.see("a", WaitingApproval, None);
    stage.pass(1_900);
    assert_eq!(stage.happened(), [""; 0], "the dwell time is not over");
    // The dialog becomes known. It is the same episode.
    stage.see("a", WaitingApproval, Some("f1"));
    stage.pass(100);
    assert_eq!(stage.happened(), ["send desktop a"]);
    stage.see("a", WaitingApproval, None);
    stage.see("a", WaitingApproval, Some("f1"));
    stage.pass(60 * MINUTE);
    assert_eq!(stage.happened(), [""; 0]);
    assert_eq!(stage.machine.next_due(at(stage.now)), None, "nothing is pending, so nothing wakes the daemon");
}

#[test]
fn the_next_dialog_is_a_new_episode_and_an_answer_withdraws() {
    let mut stage = Stage::new(vec![rule(&[Desktop, Bell])]);
    stage.see("a", WaitingApproval, Some("f1"));
    stage.pass(2_000);
    stage.see("a", WaitingApproval, Some("f2"));
    stage.pass(2_000);
    stage.see("a", Running, None);
    let bell = "send bell a";
    assert_eq!(
        stage.happened(),
        ["send desktop a", bell, "withdraw desktop a", "send desktop a", bell, "withdraw desktop a"]
    );
}

#[test]
fn a_state_that_ends_early_is_never_sent() {
    let mut stage = Stage::new(vec![rule(&[Desktop])]);
    stage.see("a", WaitingApproval, Some("f1"));
    stage.pass(1_000);
    stage.see("a", Running, None);
    stage.pass(MINUTE);
    assert_eq!(stage.happened(), ["hold a too_short"]);
}

#[test]
fn what_existed_at_the_start_is_not_told() {
    let mut stage = Stage::at_start(vec![rule(&[Desktop])]);
    stage.see("a", Unknown, None);
    stage.pass(500);
    stage.see("a", WaitingApproval, Some("f1"));
    stage.pass(60 * MINUTE);
    assert_eq!(stage.happened(), ["hold a existed_before"]);
    stage.see("a", Running, None);
    stage.see("a", WaitingApproval, Some("f2"));
    stage.pass(2_000);
    assert_eq!(stage.happened(), ["send desktop a"], "the next dialog is told");
    // The agents of a host that connects later.
    let remote = AgentSight { target: "vm1".into(), ..sight(WaitingInput, Some("f3")) };
    stage.see_as("b", remote);
    stage.pass(MINUTE);
    assert_eq!(stage.happened(), ["hold b existed_before"]);
}

#[test]
fn an_unknown_state_neither_ends_nor_repeats_an_episode() {
    let mut stage = Stage::new(vec![rule(&[Desktop])]);
    stage.see("a", WaitingApproval, Some("f1"));
    stage.pass(1_500);
    stage.see("a", Unknown, None);
    stage.pass(MINUTE);
    assert_eq!(stage.happened(), [""; 0], "it is not known to be true");
    stage.see("a", WaitingApproval, Some("f1"));
    stage.pass(1_900);
    assert_eq!(stage.happened(), [""; 0], "it must last again");
    stage.pass(100);
    stage.see("a", Unknown, None);
    stage.see("a", WaitingApproval, Some("f1"));
    stage.pass(MINUTE);
    assert_eq!(stage.happened(), ["send desktop a"]);
    let gone = AgentSight { reason: Some(ReasonCode::ProcessGone), ..sight(Unknown, None) };
    stage.see_as("a", gone);
    assert_eq!(stage.happened(), ["withdraw desktop a"]);
}

#[test]
fn a_completed_agent_is_told_until_a_person_has_seen_it() {
    let mut stage = Stage::new(vec![rule(&[Desktop])]);
    stage.see("a", Completed, None);
    stage.pass(2_000);
    stage.see_as("a", AgentSight { unseen: true, ..sight(Idle, None) });
    assert_eq!(stage.happened(), ["send desktop a"], "idle is how a completed agent is shown later");
    stage.see_as("a", AgentSight { unseen: false, ..sight(Idle, None) });
    assert_eq!(stage.happened(), ["withdraw desktop a"]);
    stage.see("a", Running, None);
    stage.see_as("a", AgentSight { unseen: false, ..sight(Completed, None) });
    stage.pass(MINUTE);
    assert_eq!(stage.happened(), [""; 0], "a person watched it end");
}

#[test]
fn rules_select_by_state_agent_host_and_session() {
    let only = |change: &dyn Fn(&mut NotifyRule)| {
        let mut rule = rule(&[Desktop]);
        change(&mut rule);
        let mut stage = Stage::new(vec![rule]);
        stage.see("a", WaitingApproval, Some("f1"));
        stage.pass(MINUTE);
        !stage.happened().is_empty()
    };
    let named = |name: &str| vec![NamePattern::new("other"), NamePattern::new(name)];
    assert!(only(&|rule| rule.agents = named("clau*")) && !only(&|rule| rule.agents = named("codex")));
    assert!(only(&|rule| rule.targets = named("host")) && !only(&|rule| rule.targets = named("vm*")));
    assert!(only(&|rule| rule.sessions = named("work")) && !only(&|rule| rule.sessions = named("wor")));
    assert!(!only(&|rule| rule.states = vec![Error]));
}

#[test]
fn each_channel_is_used_once_although_several_rules_name_it() {
    let slow = NotifyRule { dwell: SignedDuration::from_secs(5), ..rule(&[Desktop, Ntfy]) };
    let mut stage = Stage::new(vec![rule(&[Desktop]), slow]);
    stage.see("a", Error, None);
    stage.pass(MINUTE);
    assert_eq!(stage.happened(), ["send desktop a", "send ntfy a"]);
}

#[test]
fn the_cooldown_delays_the_next_notice_about_the_same_agent() {
    let cooldown = NotifyRule { cooldown: SignedDuration::from_secs(20), ..rule(&[Desktop]) };
    let mut stage = Stage::new(vec![cooldown]);
    stage.see("a", WaitingApproval, Some("f1"));
    stage.pass(2_000);
    stage.see("a", WaitingApproval, Some("f2"));
    stage.see("b", WaitingApproval, Some("f1"));
    stage.pass(2_000);
    let first = ["send desktop a", "withdraw desktop a", "hold a cooldown", "send desktop b"];
    assert_eq!(stage.happened(), first, "another agent is not delayed");
    stage.pass(17_900);
    assert_eq!(stage.happened(), [""; 0]);
    stage.pass(100);
    assert_eq!(stage.happened(), ["send desktop a"]);
    // What is over before the end of the cooldown is not told.
    stage.see("a", WaitingApproval, Some("f3"));
    stage.pass(5_000);
    stage.see("a", Running, None);
    stage.pass(MINUTE);
    assert_eq!(stage.happened(), ["withdraw desktop a", "hold a cooldown"]);
}

#[test]
fn nothing_is_told_about_a_pane_that_a_person_uses() {
    let mut stage = Stage::new(vec![rule(&[Desktop])]);
    stage.last_key = Some(stage.now - 10_000);
    stage.see("a", WaitingApproval, Some("f1"));
    stage.pass(2_000);
    assert_eq!(stage.happened(), ["hold a in_view"]);
    stage.pass(17_900);
    assert_eq!(stage.happened(), [""; 0]);
    stage.pass(100);
    assert_eq!(stage.happened(), ["send desktop a"], "no key for 30 s, and it still waits");
    // A person who answers is not told.
    stage.last_key = Some(stage.now);
    stage.see("a", WaitingApproval, Some("f2"));
    stage.pass(3_000);
    stage.see("a", Running, None);
    stage.pass(MINUTE);
    assert_eq!(stage.happened(), ["withdraw desktop a", "hold a in_view"]);
}

#[test]
fn quiet_hours_end_with_one_digest_of_what_still_waits() {
    let hours = "12:00-13:00".parse().expect("valid");
    let quiet = NotifyRule { quiet_hours: Some(hours), ..rule(&[Desktop, Ntfy]) };
    let urgent = NotifyRule { states: vec![Error], ..rule(&[Bell]) };
    let mut stage = Stage::new(vec![quiet, urgent]);
    stage.see("a", WaitingApproval, Some("f1"));
    stage.see("b", WaitingInput, Some("f1"));
    stage.see("c", Error, None);
    stage.pass(30 * MINUTE);
    let held = ["hold a quiet_hours", "hold b quiet_hours", "hold c quiet_hours", "send bell c"];
    assert_eq!(stage.happened(), held, "a rule without quiet hours is not held");
    stage.see("b", Running, None);
    stage.pass(29 * MINUTE);
    assert_eq!(stage.happened(), [""; 0]);
    stage.pass(MINUTE);
    assert_eq!(stage.happened(), ["digest desktop a,c", "digest ntfy a,c"]);
    stage.see("a", Running, None);
    stage.pass(MINUTE);
    assert_eq!(stage.happened(), [""; 0], "a digest is not withdrawn");
}

#[test]
fn an_unanswered_notice_escalates_to_further_channels() {
    let escalation = Escalation { after: SignedDuration::from_mins(10), channels: vec![Desktop, Ntfy, Tmux] };
    let mut stage = Stage::new(vec![NotifyRule { escalation: Some(escalation), ..rule(&[Desktop]) }]);
    stage.see("a", WaitingApproval, Some("f1"));
    stage.see("b", WaitingApproval, Some("f1"));
    stage.pass(2_000);
    stage.pass(9 * MINUTE);
    stage.see("b", Running, None);
    assert_eq!(stage.happened(), ["send desktop a", "send desktop b", "withdraw desktop b"]);
    stage.pass(MINUTE);
    assert_eq!(stage.happened(), ["send ntfy a escalated", "send tmux a escalated"]);
    stage.pass(60 * MINUTE);
    stage.gone("a");
    assert_eq!(stage.happened(), ["withdraw desktop a", "withdraw ntfy a"]);
}

#[test]
fn the_next_daemon_withdraws_and_escalates_what_the_last_one_sent() {
    let escalation = Escalation { after: SignedDuration::from_mins(10), channels: vec![Ntfy] };
    let rules = vec![NotifyRule { escalation: Some(escalation), ..rule(&[Desktop]) }];
    let mut stage = Stage::new(rules.clone());
    for runtime in ["a", "b", "c"] {
        stage.see(runtime, WaitingApproval, Some("f1"));
    }
    stage.pass(2_000);
    let open = stage.machine.open_notices();
    assert_eq!(open.len(), 3);
    let mut next = Stage::at_start(rules);
    next.now = stage.now + MINUTE;
    next.machine.shift(SignedDuration::from_millis(next.now));
    next.machine.restore(open);
    next.see("a", Unknown, None);
    next.see("a", WaitingApproval, Some("f1"));
    next.see("b", Running, None);
    assert_eq!(next.happened(), ["withdraw desktop b"], "the notice about a is not repeated");
    next.pass(9 * MINUTE);
    assert_eq!(next.happened(), ["withdraw desktop c", "send ntfy a escalated"], "c has not appeared");
    next.see("a", Running, None);
    assert_eq!(next.happened(), ["withdraw desktop a", "withdraw ntfy a"]);
}

#[test]
fn a_changed_clock_changes_no_waiting_time() {
    let mut stage = Stage::new(vec![rule(&[Desktop])]);
    stage.see("a", WaitingApproval, Some("f1"));
    stage.pass(1_000);
    let day = 24 * 60 * MINUTE;
    stage.now -= day;
    stage.machine.shift(SignedDuration::from_millis(-day));
    stage.pass(900);
    assert_eq!(stage.happened(), [""; 0]);
    stage.pass(100);
    assert_eq!(stage.happened(), ["send desktop a"]);
}
