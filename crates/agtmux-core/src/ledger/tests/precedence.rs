//! What gives way to what, and what stays refuted.

use super::*;

fn covered(second: i64) -> Observation {
    Observation { inferred_from_absence: true, ..said(Source::Screen, Assertion::Idle, second) }
}

#[test]
fn what_is_not_to_be_seen_ends_no_turn_that_the_agent_says_is_under_way() {
    for source in [Source::Hook, Source::Notify, Source::Wrapper, Source::File] {
        let running = mind([said(source, Assertion::Running, 10), covered(12)]);
        assert_eq!(state(&running, 13), State::Running, "{source:?}");
    }
    assert_eq!(state(&mind([covered(12)]), 13), State::Idle, "nobody else says anything");
    let stale = mind([said(Source::Hook, Assertion::Running, 10), covered(12)]);
    assert_eq!(state(&stale, 10 + 900), State::Idle, "it was not said again for too long");
    let stopped = mind([
        said(Source::Hook, Assertion::Running, 10),
        covered(12),
        said(Source::File, Assertion::Idle, 14),
        covered(16),
    ]);
    assert_eq!(state(&stopped, 17), State::Idle, "the agent says that it has stopped");
    let titled = mind([said(Source::Title, Assertion::Running, 10), covered(12)]);
    assert_eq!(state(&titled, 13), State::Idle, "a title may lag behind");
}

#[test]
fn a_turn_that_was_seen_to_have_ended_does_not_go_on_when_the_sign_of_it_is_gone() {
    let seen =
        mind([said(Source::Hook, Assertion::Running, 10), said(Source::Screen, Assertion::Idle, 12), covered(14)]);
    assert_eq!(state(&seen, 15), State::Idle);
}

#[test]
fn what_gives_way_closes_a_dialog_as_before() {
    let nothing = Observation { inferred_from_absence: true, ..said(Source::Screen, Assertion::NoDialog, 12) };
    let mind = mind([said(Source::Hook, ASKS, 10), covered(12), nothing]);
    assert_eq!(state(&mind, 13), State::Idle);
}

#[test]
fn a_statement_that_now_gives_way_is_news() {
    let mind = mind([said(Source::Screen, Assertion::Idle, 10)]);
    assert!(mind.is_new_information(&covered(11)));
}

#[test]
fn what_is_shown_through_two_turns_is_heard_again_in_the_second() {
    let mut mind = mind([
        said(Source::Screen, Assertion::Running, 10),
        said(Source::Hook, Assertion::Completed, 20),
        said(Source::Hook, Assertion::Running, 21),
    ]);
    let still = said(Source::Screen, Assertion::Running, 22);
    assert!(mind.is_new_information(&still), "its first sight is of the turn before");
    mind.record(still, at(22));
    assert!(!mind.is_new_information(&said(Source::Screen, Assertion::Running, 23)));
    assert_eq!(state(&mind, 21 + 900), State::Running, "the screen goes on saying so");
}

#[test]
fn how_a_turn_ended_is_history_once_another_has_begun() {
    for end in [Assertion::Failed, Assertion::Completed] {
        let next = [said(Source::Hook, end, 10), said(Source::File, Assertion::Running, 11)];
        let stopped = mind(next.into_iter().chain([said(Source::File, Assertion::Idle, 30)]));
        assert_eq!(state(&stopped, 31), State::Idle, "{end:?}");
        let seen = [said(Source::Hook, end, 10), said(Source::Screen, Assertion::Running, 20)];
        let stopped = mind(seen.into_iter().chain([said(Source::Screen, Assertion::Idle, 30)]));
        assert_eq!(state(&stopped, 31), State::Idle, "{end:?}");
    }
}

#[test]
fn how_a_turn_ended_is_history_where_nothing_of_it_is_left() {
    let fresh = |second| Observation { no_turn_visible: true, ..covered(second) };
    for end in [Assertion::Failed, Assertion::Completed] {
        assert_eq!(state(&mind([said(Source::File, end, 10), fresh(11)]), 12), State::Idle, "{end:?}");
        let typing = mind([said(Source::File, end, 10), fresh(11), covered(12)]);
        assert_eq!(state(&typing, 13), State::Idle, "{end:?}: it stays so");
        let first = mind([fresh(9), said(Source::File, end, 10)]);
        assert_eq!(state(&first, 13), end.state().expect("one"), "the first turn");
    }
    let begins = mind([said(Source::Hook, Assertion::Running, 10), fresh(11)]);
    assert_eq!(state(&begins, 12), State::Running);
}

#[test]
fn a_screen_that_still_shows_a_turn_does_not_undo_its_end() {
    let late = [said(Source::Hook, Assertion::Completed, 10), said(Source::Screen, Assertion::Running, 12)];
    let drawn = mind(late.into_iter().chain([said(Source::Screen, Assertion::Idle, 13)]));
    assert_eq!(state(&drawn, 14), State::Completed);
}

#[test]
fn what_was_refuted_is_kept_in_what_is_stored_and_what_was_stored_before_can_be_read() {
    let known = mind([
        said(Source::Hook, Assertion::Failed, 10),
        said(Source::File, Assertion::Running, 11),
        said(Source::File, Assertion::Idle, 30),
        covered(31),
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
    let (ahead, mut far) = (SignedDuration::from_secs(1000), known.clone());
    far.shift_clock(ahead, at(1032));
    assert_eq!(state(&far, 1032), State::Idle, "by another clock");
}

#[test]
fn what_a_process_was_started_for_holds_until_it_ends() {
    let lasting = Observation { ttl: None, ..said(Source::Process, Assertion::Running, 10) };
    let mind = mind([lasting, said(Source::Hook, Assertion::Idle, 11), said(Source::Hook, Assertion::Running, 12)]);
    assert_eq!(state(&mind, 12 + 901), State::Running, "a hook that is silent for long changes nothing");
}
