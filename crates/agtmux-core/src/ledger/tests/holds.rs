//! Tests of observations that are held back until the content of their dialog is known.

use super::*;

fn held(second: i64, until: i64) -> Observation {
    Observation { counts_from: Some(at(until)), ..observed(Source::Hook, APPROVAL_OPEN, second) }
}

fn shown(second: i64) -> Observation {
    let dialog = Dialog::new(DialogKind::Approval, "Run it?".into(), None, Vec::new());
    Observation { dialog: Some(Box::new(dialog)), ..observed(Source::Screen, APPROVAL_OPEN, second) }
}

#[test]
fn a_held_dialog_counts_when_its_time_has_come() {
    let mut ledger = ledger([observed(Source::Hook, Assertion::Running, 10), held(20, 30)]);
    assert_eq!((state(&ledger, 29), ledger.next_deadline(at(29))), (State::Running, Some(at(30))));
    assert_eq!(state(&ledger, 30), State::WaitingApproval);
    ledger.end_holds();
    assert_eq!(state(&ledger, 21), State::WaitingApproval);
}

#[test]
fn a_dialog_on_the_screen_ends_the_wait() {
    let ledger = ledger([observed(Source::Hook, Assertion::Running, 10), held(20, 30), shown(21)]);
    let verdict = ledger.verdict(at(22));
    assert_eq!((verdict.state, verdict.dialog.is_some()), (State::WaitingApproval, true));
}

#[test]
fn a_hold_does_not_make_a_known_state_unknown() {
    assert_eq!(ledger([held(20, 30)]).verdict(at(21)).reason, Some(ReasonCode::NoAdapter), "nothing was known");
    let failed = ledger([observed(Source::Hook, Assertion::Failed, 10), held(20, 30)]);
    assert_eq!(state(&failed, 21), State::WaitingApproval);
}

#[test]
fn another_host_holds_a_state_back_only_for_a_moment() {
    let mut remote = ledger([observed(Source::Hook, Assertion::Running, 10), held(20, 9000)]);
    remote.shift_clock(SignedDuration::ZERO, at(20));
    assert_eq!(state(&remote, 22), State::WaitingApproval);
}
