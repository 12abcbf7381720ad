//! Tests which of two observations prevails, and that a refuted observation stays refuted.

use super::*;

fn inferred_idle(second: i64) -> Observation {
    Observation { inferred_from_absence: true, ..observed(Source::Screen, Assertion::Idle, second) }
}

#[test]
fn an_inferred_idle_screen_does_not_end_a_turn_that_the_agent_reports() {
    for source in [Source::Hook, Source::Notify, Source::Wrapper, Source::File] {
        let running = ledger([observed(source, Assertion::Running, 10), inferred_idle(12)]);
        assert_eq!(state(&running, 13), State::Running, "{source:?}");
    }
    assert_eq!(state(&ledger([inferred_idle(12)]), 13), State::Idle, "no other source reports anything");
    let stale = ledger([observed(Source::Hook, Assertion::Running, 10), inferred_idle(12)]);
    assert_eq!(state(&stale, 10 + 900), State::Idle, "the running report expired");
    let stopped = ledger([
        observed(Source::Hook, Assertion::Running, 10),
        inferred_idle(12),
        observed(Source::File, Assertion::Idle, 14),
        inferred_idle(16),
    ]);
    assert_eq!(state(&stopped, 17), State::Idle, "the agent reported that it stopped");
    let titled = ledger([observed(Source::Title, Assertion::Running, 10), inferred_idle(12)]);
    assert_eq!(state(&titled, 13), State::Idle, "a title may be stale");
}

#[test]
fn a_refuted_turn_stays_over_after_the_refuting_sign_is_gone() {
    let seen = ledger([
        observed(Source::Hook, Assertion::Running, 10),
        observed(Source::Screen, Assertion::Idle, 12),
        inferred_idle(14),
    ]);
    assert_eq!(state(&seen, 15), State::Idle);
}

#[test]
fn a_missing_dialog_closes_a_reported_one_only_if_no_dialog_can_cover_the_screen() {
    let seen = |inferred_from_absence, source| {
        let nothing = Observation { inferred_from_absence, ..observed(Source::Screen, Assertion::NoDialog, 12) };
        let running = observed(Source::Screen, Assertion::Running, 12);
        state(&ledger([observed(source, APPROVAL_OPEN, 10), running, nothing]), 13)
    };
    assert_eq!(seen(false, Source::Hook), State::Running);
    assert_eq!(seen(true, Source::Hook), State::WaitingApproval, "only the agent reports the end of this dialog");
    assert_eq!(seen(true, Source::Screen), State::Running, "the screen has shown the dialog and its end");
}

#[test]
fn a_change_to_inferred_is_new_information() {
    let ledger = ledger([observed(Source::Screen, Assertion::Idle, 10)]);
    assert!(ledger.is_new_information(&inferred_idle(11)));
}

#[test]
fn a_screen_shown_through_two_turns_is_recorded_again_in_the_second() {
    let mut ledger = ledger([
        observed(Source::Screen, Assertion::Running, 10),
        observed(Source::Hook, Assertion::Completed, 20),
        observed(Source::Hook, Assertion::Running, 21),
    ]);
    let still = observed(Source::Screen, Assertion::Running, 22);
    assert!(ledger.is_new_information(&still), "the first observation belongs to the previous turn");
    ledger.record(still, at(22));
    assert!(!ledger.is_new_information(&observed(Source::Screen, Assertion::Running, 23)));
    assert_eq!(state(&ledger, 21 + 900), State::Running, "the screen still shows it");
}

#[test]
fn a_turn_result_is_dropped_once_another_turn_has_run() {
    for end in [Assertion::Failed, Assertion::Completed] {
        let next = [observed(Source::Hook, end, 10), observed(Source::File, Assertion::Running, 11)];
        let stopped = ledger(next.into_iter().chain([observed(Source::File, Assertion::Idle, 30)]));
        assert_eq!(state(&stopped, 31), State::Idle, "{end:?}");
        let seen = [observed(Source::Hook, end, 10), observed(Source::Screen, Assertion::Running, 20)];
        let stopped = ledger(seen.into_iter().chain([observed(Source::Screen, Assertion::Idle, 30)]));
        assert_eq!(state(&stopped, 31), State::Idle, "{end:?}");
    }
}

#[test]
fn a_turn_result_is_dropped_when_no_turn_is_visible() {
    let fresh = |second| Observation { no_turn_visible: true, ..inferred_idle(second) };
    for end in [Assertion::Failed, Assertion::Completed] {
        assert_eq!(state(&ledger([observed(Source::File, end, 10), fresh(11)]), 12), State::Idle, "{end:?}");
        let typing = ledger([observed(Source::File, end, 10), fresh(11), inferred_idle(12)]);
        assert_eq!(state(&typing, 13), State::Idle, "{end:?}: the result stays dropped");
        let first = ledger([fresh(9), observed(Source::File, end, 10)]);
        assert_eq!(state(&first, 13), end.state().expect("one"), "the first turn");
    }
    let begins = ledger([observed(Source::Hook, Assertion::Running, 10), fresh(11)]);
    assert_eq!(state(&begins, 12), State::Running);
}

#[test]
fn a_lagging_screen_does_not_undo_the_end_of_a_turn() {
    let late = [observed(Source::Hook, Assertion::Completed, 10), observed(Source::Screen, Assertion::Running, 12)];
    let drawn = ledger(late.into_iter().chain([observed(Source::Screen, Assertion::Idle, 13)]));
    assert_eq!(state(&drawn, 14), State::Completed);
}

#[test]
fn a_dialog_after_a_failed_turn_is_shown_and_the_failure_stays_history() {
    for error_source in [Source::Hook, Source::Screen] {
        for dialog_source in [Source::Hook, Source::Screen, Source::File] {
            let failed = observed(error_source, Assertion::Failed, 10);
            let earlier = ledger([observed(dialog_source, APPROVAL_OPEN, 9), failed.clone()]);
            assert_eq!(state(&earlier, 13), State::Error, "{dialog_source:?} was before the failure");
            let mut asked = ledger([failed, observed(dialog_source, APPROVAL_OPEN, 12)]);
            assert_eq!(state(&asked, 13), State::WaitingApproval, "{error_source:?}, {dialog_source:?}");
            asked.record(observed(Source::Screen, Assertion::Idle, 14), at(14));
            asked.record(observed(dialog_source, Assertion::NoDialog, 14), at(14));
            assert_eq!(state(&asked, 15), State::Idle, "the dialog was closed");
            asked.record(observed(error_source, Assertion::Failed, 16), at(16));
            assert_eq!(state(&asked, 17), State::Error, "the next turn failed too");
        }
    }
}

#[test]
fn a_screen_that_may_be_outdated_does_not_end_a_failure() {
    let dialog = observed(Source::Screen, APPROVAL_OPEN, 12);
    for weak in [Observation { settled: false, ..dialog.clone() }, Observation { conclusive: false, ..dialog }] {
        let ledger = ledger([observed(Source::Hook, Assertion::Failed, 10), weak]);
        assert_eq!(state(&ledger, 13), State::Error);
    }
}

#[test]
fn a_dialog_that_stays_open_after_a_failure_is_new_information() {
    let mut ledger =
        ledger([observed(Source::Screen, APPROVAL_OPEN, 9), observed(Source::Hook, Assertion::Failed, 10)]);
    let still = observed(Source::Screen, APPROVAL_OPEN, 12);
    assert!(ledger.is_new_information(&still));
    ledger.record(still, at(12));
    assert_eq!(state(&ledger, 13), State::WaitingApproval);
    assert!(!ledger.is_new_information(&observed(Source::Screen, APPROVAL_OPEN, 14)));
}

#[test]
fn refutations_are_stored_and_older_ledgers_can_be_read() {
    let known = ledger([
        observed(Source::Hook, Assertion::Failed, 10),
        observed(Source::File, Assertion::Running, 11),
        observed(Source::File, Assertion::Idle, 30),
        inferred_idle(31),
    ]);
    let stored = serde_json::to_value(&known).expect("JSON");
    let read: Ledger = serde_json::from_value(stored.clone()).expect("read again");
    assert_eq!((state(&read, 32), &read), (State::Idle, &known));
    let mut old = stored;
    old.as_object_mut().expect("an object").remove("refuted");
    for heard in old["heard"].as_array_mut().expect("a list") {
        heard["newest"]["statement"].as_object_mut().expect("an object").remove("yields");
    }
    assert_eq!(state(&serde_json::from_value(old).expect("an older one"), 32), State::Error);
    let (ahead, mut shifted) = (SignedDuration::from_secs(1000), known.clone());
    shifted.shift_clock(ahead, at(1032));
    assert_eq!(state(&shifted, 1032), State::Idle, "after a clock shift");
}

#[test]
fn a_process_observation_holds_until_the_process_ends() {
    let lasting = Observation { ttl: None, ..observed(Source::Process, Assertion::Running, 10) };
    let ledger =
        ledger([lasting, observed(Source::Hook, Assertion::Idle, 11), observed(Source::Hook, Assertion::Running, 12)]);
    assert_eq!(state(&ledger, 12 + 901), State::Running, "an expired hook changes nothing");
}
