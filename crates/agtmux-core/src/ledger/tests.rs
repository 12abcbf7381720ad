mod holds;
mod precedence;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::dialog::Dialog;
use crate::evidence::{DialogKind, RuleRef};
use crate::ordering::OrderKey;
use crate::state::{Confidence, ReasonCode, State};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

fn observed(source: Source, assertion: Assertion, second: i64) -> Observation {
    Observation {
        ttl: (assertion == Assertion::Running).then(|| SignedDuration::from_mins(15)),
        order: OrderKey {
            source_seq: None,
            event_time: at(second),
            ingested_at: at(second),
            event_id: format!("{second:08}"),
        },
        ..Observation::new(source, assertion, at(second), RuleRef::new("test", 1))
    }
}

fn ledger(observations: impl IntoIterator<Item = Observation>) -> Ledger {
    let mut ledger = Ledger::default();
    for observation in observations {
        let recorded_at = observation.as_of;
        ledger.record(observation, recorded_at);
    }
    ledger
}

fn state(ledger: &Ledger, second: i64) -> State {
    ledger.verdict(at(second)).state
}

const APPROVAL_OPEN: Assertion = Assertion::DialogOpen(DialogKind::Approval);

#[test]
fn a_settled_idle_screen_overrides_an_earlier_running_hook() {
    let ledger =
        ledger([observed(Source::Hook, Assertion::Running, 10), observed(Source::Screen, Assertion::Idle, 12)]);
    assert_eq!(state(&ledger, 13), State::Idle);
}

#[test]
fn a_later_running_screen_closes_an_approval_of_a_hook() {
    let ledger = ledger([
        observed(Source::Hook, APPROVAL_OPEN, 10),
        observed(Source::Screen, Assertion::NoDialog, 12),
        observed(Source::Screen, Assertion::Running, 12),
    ]);
    assert_eq!(state(&ledger, 13), State::Running);
}

#[test]
fn a_capture_started_before_the_hook_changes_nothing() {
    let mut ledger = ledger([observed(Source::Hook, Assertion::Running, 10)]);
    ledger.record(observed(Source::Screen, Assertion::Idle, 9), at(11));
    assert_eq!(state(&ledger, 11), State::Running);
}

#[test]
fn an_unsettled_screen_does_not_contradict_an_event() {
    let unsettled = Observation { settled: false, ..observed(Source::Screen, Assertion::Idle, 12) };
    let ledger = ledger([observed(Source::Hook, Assertion::Running, 10), unsettled]);
    assert_eq!(state(&ledger, 13), State::Running);
}

#[test]
fn an_inconclusive_screen_does_not_change_running() {
    let vague = Observation { conclusive: false, ..observed(Source::Screen, APPROVAL_OPEN, 12) };
    let ledger = ledger([observed(Source::Hook, Assertion::Running, 10), vague]);
    assert_eq!(state(&ledger, 13), State::Running);
}

#[test]
fn a_dialog_on_screen_stays_open_after_the_turn_ends() {
    let ledger = ledger([
        observed(Source::Screen, APPROVAL_OPEN, 10),
        observed(Source::Hook, Assertion::Completed, 12),
        observed(Source::Hook, Assertion::NoDialog, 12),
    ]);
    assert_eq!(state(&ledger, 13), State::WaitingApproval);
}

#[test]
fn an_unchanged_approval_on_screen_does_not_expire() {
    let short = Some(SignedDuration::from_secs(60));
    let mut ledger = ledger([Observation { ttl: short, ..observed(Source::Screen, APPROVAL_OPEN, 10) }]);
    assert_eq!(state(&ledger, 10 + 12 * 3600), State::WaitingApproval);
    assert_eq!(ledger.next_deadline(at(20)), None);
    ledger.mark_unrecognized(Source::Screen, at(5000));
    assert_eq!(
        ledger.verdict(at(5061)).reason,
        Some(ReasonCode::StaleSignal),
        "it expires once the screen shows something else"
    );
}

#[test]
fn running_without_a_repeat_becomes_stale() {
    let ledger = ledger([observed(Source::Hook, Assertion::Running, 10)]);
    assert_eq!(ledger.next_deadline(at(10)), Some(at(10 + 900)));
    let verdict = ledger.verdict(at(10 + 900));
    assert_eq!((verdict.state, verdict.reason), (State::Unknown, Some(ReasonCode::StaleSignal)));
}

#[test]
fn idle_does_not_hide_how_the_turn_ended() {
    let completed =
        ledger([observed(Source::Hook, Assertion::Completed, 10), observed(Source::File, Assertion::Idle, 11)]);
    assert_eq!(state(&completed, 12), State::Completed);
    let failed = ledger([observed(Source::Hook, Assertion::Failed, 10), observed(Source::Screen, Assertion::Idle, 11)]);
    assert_eq!(state(&failed, 12), State::Error);
    let next_turn =
        ledger([observed(Source::Hook, Assertion::Failed, 10), observed(Source::File, Assertion::Running, 11)]);
    assert_eq!(state(&next_turn, 12), State::Running);
}

#[test]
fn a_completed_turn_becomes_idle_after_demotion() {
    let mut ledger = ledger([observed(Source::Hook, Assertion::Completed, 10)]);
    ledger.demote_completed();
    assert_eq!(state(&ledger, 200), State::Idle);
    ledger.record(observed(Source::Hook, Assertion::Completed, 300), at(300));
    assert_eq!(state(&ledger, 300), State::Completed, "the next completion counts again");
}

#[test]
fn without_conclusive_evidence_the_state_is_unknown_with_a_reason() {
    assert_eq!(Ledger::default().verdict(at(1)).reason, Some(ReasonCode::NoAdapter));
    let hint = Observation { conclusive: false, ..observed(Source::Title, Assertion::Running, 1) };
    assert_eq!(ledger([hint]).verdict(at(2)).reason, Some(ReasonCode::UnsupportedSignal));
}

fn any_observation() -> impl Strategy<Value = Observation> {
    let assertions = prop_oneof![
        Just(Assertion::Running),
        Just(Assertion::Completed),
        Just(Assertion::Idle),
        Just(Assertion::Failed),
        Just(APPROVAL_OPEN),
        Just(Assertion::DialogOpen(DialogKind::Input)),
        Just(Assertion::NoDialog),
    ];
    let sources = prop_oneof![Just(Source::Hook), Just(Source::Screen), Just(Source::File), Just(Source::Title)];
    (sources, assertions, 0i64..1000, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(source, assertion, second, conclusive, settled, inferred)| Observation {
            no_turn_visible: inferred && settled,
            conclusive,
            settled,
            inferred_from_absence: inferred,
            ..observed(source, assertion, second)
        },
    )
}

proptest! {
    #[test]
    fn arrival_order_and_duplicates_do_not_matter(
        observations in proptest::collection::vec(any_observation(), 0..24),
        shuffle in any::<u64>(),
    ) {
        // Each observation gets its own event id, as in the daemon.
        let observations: Vec<Observation> = observations.into_iter().enumerate().map(|(n, mut s)| {
            s.order.event_id = format!("{n:04}");
            s
        }).collect();
        let in_order = ledger(observations.clone());
        let mut shuffled: Vec<Observation> = observations.iter().chain(&observations).cloned().collect();
        let mut seed = shuffle | 1;
        for n in (1..shuffled.len()).rev() {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            shuffled.swap(n, usize::try_from(seed % (n as u64 + 1)).expect("small"));
        }
        let shuffled = ledger(shuffled);
        prop_assert_eq!(in_order.verdict(at(1000)), shuffled.verdict(at(1000)));
    }

    #[test]
    fn a_definite_state_always_has_a_fresh_conclusive_observation(
        observations in proptest::collection::vec(any_observation(), 0..24),
    ) {
        let ledger = ledger(observations);
        let verdict = ledger.verdict(at(1000));
        let supported = ledger.rated_observations(at(1000)).any(|s| {
            s.status == ObservationStatus::Fresh && s.observation.conclusive && s.assertion.state() == Some(verdict.state)
        });
        prop_assert_eq!(supported, verdict.state != State::Unknown);
        prop_assert_eq!(verdict.reason.is_some(), verdict.state == State::Unknown);
    }

    #[test]
    fn an_error_is_never_shown_while_a_later_dialog_is_open(
        observations in proptest::collection::vec(any_observation(), 0..24),
    ) {
        let ledger = ledger(observations);
        let latest = |counts: fn(&RatedObservation<'_>) -> bool| {
            let fresh = ledger.rated_observations(at(1000)).filter(|s| s.status == ObservationStatus::Fresh);
            fresh.filter(counts).map(|s| s.observation.as_of).max()
        };
        let dialog = latest(|s| s.observation.settled && matches!(s.assertion, Assertion::DialogOpen(_)));
        let failure = latest(|s| s.assertion == Assertion::Failed);
        let hidden = dialog.is_some() && dialog > failure && ledger.verdict(at(1000)).state == State::Error;
        prop_assert!(!hidden, "a dialog since {:?} is hidden by a failure at {:?}", dialog, failure);
    }
}

#[test]
fn a_turn_end_that_stays_on_screen_counts_once() {
    let done = |second, line: &str| Observation {
        excerpt: line.into(),
        ttl: Some(SignedDuration::from_secs(3)),
        ..observed(Source::Screen, Assertion::Completed, second)
    };
    let mut ledger = ledger([done(10, "Baked for 8s")]);
    assert!(!ledger.is_new_information(&done(20, "Baked for 8s")), "nothing happened in between");
    ledger.demote_completed();
    ledger.record(observed(Source::Hook, Assertion::Running, 30), at(30));
    let again = done(40, "Baked for 8s");
    assert!(ledger.is_new_information(&again), "another source disagreed");
    ledger.record(again, at(40));
    assert_eq!(state(&ledger, 41), State::Idle);
    ledger.record(done(50, "Baked for 2s"), at(50));
    assert_eq!(state(&ledger, 51), State::Completed, "another turn ended");
}

#[test]
fn an_observation_expires_once_its_source_stops_showing_it() {
    let seen = |source, second| Observation {
        ttl: Some(SignedDuration::from_secs(3)),
        ..observed(source, APPROVAL_OPEN, second)
    };
    for source in [Source::Screen, Source::Title] {
        let mut ledger = ledger([seen(source, 10)]);
        assert_eq!(state(&ledger, 40_000), State::WaitingApproval, "{source:?}");
        assert!(!ledger.is_unrecognized(source));
        ledger.mark_unrecognized(source, at(50_000));
        assert!(ledger.is_unrecognized(source));
        assert_eq!(state(&ledger, 50_002), State::WaitingApproval, "the screen may be mid-redraw");
        assert_eq!(state(&ledger, 50_003), State::Unknown);
        assert_eq!(ledger.verdict(at(50_003)).reason, Some(ReasonCode::StaleSignal));
        ledger.record(seen(source, 50_004), at(50_004));
        assert_eq!(state(&ledger, 90_000), State::WaitingApproval);
    }
}

#[test]
fn the_dialog_on_screen_is_reported() {
    let dialog = |question: &str| Box::new(Dialog::new(DialogKind::Approval, question.into(), None, Vec::new()));
    let approval_asking = |source, second, question| Observation {
        dialog: Some(dialog(question)),
        ..observed(source, APPROVAL_OPEN, second)
    };
    let mut ledger =
        ledger([observed(Source::Hook, APPROVAL_OPEN, 10), approval_asking(Source::Screen, 11, "Run it?")]);
    assert_eq!(ledger.verdict(at(12)).dialog.map(|d| d.question.as_str()), Some("Run it?"));
    assert!(ledger.is_new_information(&approval_asking(Source::Screen, 13, "Run that?")), "another question");
    ledger.record(approval_asking(Source::Screen, 13, "Run that?"), at(13));
    assert_eq!(ledger.verdict(at(14)).dialog.map(|d| d.question.as_str()), Some("Run that?"));
    ledger.record(observed(Source::Hook, Assertion::DialogOpen(DialogKind::Input), 20), at(20));
    let verdict = ledger.verdict(at(21));
    assert_eq!((verdict.state, verdict.dialog), (State::WaitingInput, None), "the dialog belongs to another state");
}

#[test]
fn a_tentative_observation_gives_medium_confidence() {
    let likely = Observation { tentative: true, ..observed(Source::Hook, Assertion::Running, 10) };
    assert_eq!(ledger([likely]).verdict(at(11)).confidence, Confidence::Medium);
}

#[test]
fn an_unrecognized_screen_gives_unsupported_signal() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.verdict(at(1)).reason, Some(ReasonCode::NoAdapter));
    ledger.mark_unrecognized(Source::Screen, at(2));
    assert_eq!(ledger.verdict(at(3)).reason, Some(ReasonCode::UnsupportedSignal));
}

#[test]
fn a_remote_ledger_uses_the_local_clock_and_keeps_demotions() {
    let remote =
        ledger([observed(Source::Hook, Assertion::Completed, 100), observed(Source::Screen, Assertion::NoDialog, 101)]);
    let ahead = SignedDuration::from_secs(1000);
    let received = |now: i64| {
        let mut received = remote.clone();
        received.shift_clock(ahead, at(now));
        received
    };
    let mut local = Ledger::default();
    local.replace_with(received(1105));
    assert_eq!(state(&local, 1105), State::Completed);
    let times: Vec<Timestamp> = local.rated_observations(at(1105)).map(|rated| rated.observation.as_of).collect();
    assert_eq!(times, [at(1100), at(1101)]);
    local.demote_completed();
    local.replace_with(received(1105));
    assert_eq!(state(&local, 1300), State::Idle, "it was already demoted here");
    // Shifted times are never in the future.
    let mut early = remote.clone();
    early.shift_clock(ahead, at(500));
    assert!(early.rated_observations(at(500)).all(|rated| rated.observation.as_of <= at(500)));
    // An empty remote ledger clears the local one.
    local.replace_with(Ledger::default());
    assert_eq!(local, Ledger::default());
}
