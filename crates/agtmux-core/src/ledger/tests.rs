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

fn said(source: Source, stand: Assertion, second: i64) -> Observation {
    Observation {
        source,
        assertion: stand,
        conclusive: true,
        as_of: at(second),
        settled: true,
        ttl: (stand == Assertion::Running).then(|| SignedDuration::from_mins(15)),
        order: OrderKey {
            source_seq: None,
            event_time: at(second),
            ingested_at: at(second),
            event_id: format!("{second:08}"),
        },
        rule: RuleRef { name: "test".into(), version: 1 },
        excerpt: String::new(),
        tentative: false,
        inferred_from_absence: false,
        no_turn_visible: false,
        dialog: None,
    }
}

fn mind(statements: impl IntoIterator<Item = Observation>) -> Ledger {
    let mut mind = Ledger::default();
    for statement in statements {
        let heard_at = statement.as_of;
        mind.record(statement, heard_at);
    }
    mind
}

fn state(mind: &Ledger, second: i64) -> State {
    mind.verdict(at(second)).state
}

const ASKS: Assertion = Assertion::DialogOpen(DialogKind::Approval);

#[test]
fn hook_says_running_user_interrupts_settled_screen_idle_gives_idle() {
    let mind = mind([said(Source::Hook, Assertion::Running, 10), said(Source::Screen, Assertion::Idle, 12)]);
    assert_eq!(state(&mind, 13), State::Idle);
}

#[test]
fn hook_says_waiting_approval_later_screen_shows_running_gives_running() {
    let mind = mind([
        said(Source::Hook, ASKS, 10),
        said(Source::Screen, Assertion::NoDialog, 12),
        said(Source::Screen, Assertion::Running, 12),
    ]);
    assert_eq!(state(&mind, 13), State::Running);
}

#[test]
fn a_capture_begun_before_the_hook_changes_nothing() {
    let mut mind = mind([said(Source::Hook, Assertion::Running, 10)]);
    mind.record(said(Source::Screen, Assertion::Idle, 9), at(11));
    assert_eq!(state(&mind, 11), State::Running);
}

#[test]
fn a_screen_that_has_not_settled_contradicts_no_event() {
    let unsettled = Observation { settled: false, ..said(Source::Screen, Assertion::Idle, 12) };
    let mind = mind([said(Source::Hook, Assertion::Running, 10), unsettled]);
    assert_eq!(state(&mind, 13), State::Running);
}

#[test]
fn hook_says_running_and_inconclusive_screen_running_stays() {
    let vague = Observation { conclusive: false, ..said(Source::Screen, ASKS, 12) };
    let mind = mind([said(Source::Hook, Assertion::Running, 10), vague]);
    assert_eq!(state(&mind, 13), State::Running);
}

#[test]
fn a_turns_end_while_a_dialog_is_on_screen_is_still_waiting() {
    let mind = mind([
        said(Source::Screen, ASKS, 10),
        said(Source::Hook, Assertion::Completed, 12),
        said(Source::Hook, Assertion::NoDialog, 12),
    ]);
    assert_eq!(state(&mind, 13), State::WaitingApproval);
}

#[test]
fn an_approval_untouched_on_screen_for_12_hours_is_still_an_approval() {
    let short = Some(SignedDuration::from_secs(60));
    let mut mind = mind([Observation { ttl: short, ..said(Source::Screen, ASKS, 10) }]);
    assert_eq!(state(&mind, 10 + 12 * 3600), State::WaitingApproval);
    assert_eq!(mind.next_deadline(at(20)), None);
    mind.mark_unrecognized(Source::Screen, at(5000));
    assert_eq!(mind.verdict(at(5061)).reason, Some(ReasonCode::StaleSignal), "once it shows something else, it ages");
}

#[test]
fn running_that_is_never_said_again_goes_stale() {
    let mind = mind([said(Source::Hook, Assertion::Running, 10)]);
    assert_eq!(mind.next_deadline(at(10)), Some(at(10 + 900)));
    let verdict = mind.verdict(at(10 + 900));
    assert_eq!((verdict.state, verdict.reason), (State::Unknown, Some(ReasonCode::StaleSignal)));
}

#[test]
fn resting_does_not_hide_how_the_turn_ended() {
    let completed = mind([said(Source::Hook, Assertion::Completed, 10), said(Source::File, Assertion::Idle, 11)]);
    assert_eq!(state(&completed, 12), State::Completed);
    let failed = mind([said(Source::Hook, Assertion::Failed, 10), said(Source::Screen, Assertion::Idle, 11)]);
    assert_eq!(state(&failed, 12), State::Error);
    let next_turn = mind([said(Source::Hook, Assertion::Failed, 10), said(Source::File, Assertion::Running, 11)]);
    assert_eq!(state(&next_turn, 12), State::Running);
}

#[test]
fn a_completed_turn_becomes_idle_when_it_has_been_seen() {
    let mut mind = mind([said(Source::Hook, Assertion::Completed, 10)]);
    mind.demote_completed();
    assert_eq!(state(&mind, 200), State::Idle);
    mind.record(said(Source::Hook, Assertion::Completed, 300), at(300));
    assert_eq!(state(&mind, 300), State::Completed, "the next one counts anew");
}

#[test]
fn without_evidence_it_is_unknown_and_says_why() {
    assert_eq!(Ledger::default().verdict(at(1)).reason, Some(ReasonCode::NoAdapter));
    let hint = Observation { conclusive: false, ..said(Source::Title, Assertion::Running, 1) };
    assert_eq!(mind([hint]).verdict(at(2)).reason, Some(ReasonCode::UnsupportedSignal));
}

fn any_statement() -> impl Strategy<Value = Observation> {
    let stands = prop_oneof![
        Just(Assertion::Running),
        Just(Assertion::Completed),
        Just(Assertion::Idle),
        Just(Assertion::Failed),
        Just(ASKS),
        Just(Assertion::DialogOpen(DialogKind::Input)),
        Just(Assertion::NoDialog),
    ];
    let sources = prop_oneof![Just(Source::Hook), Just(Source::Screen), Just(Source::File), Just(Source::Title)];
    (sources, stands, 0i64..1000, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(source, stand, second, conclusive, settled, yields)| Observation {
            no_turn_visible: yields && settled,
            conclusive,
            settled,
            inferred_from_absence: yields,
            ..said(source, stand, second)
        },
    )
}

proptest! {
    #[test]
    fn the_order_of_arrival_and_repetitions_do_not_matter(
        statements in proptest::collection::vec(any_statement(), 0..24),
        shuffle in any::<u64>(),
    ) {
        // Ids make every statement distinct, as the ids of events do.
        let statements: Vec<Observation> = statements.into_iter().enumerate().map(|(n, mut s)| {
            s.order.event_id = format!("{n:04}");
            s
        }).collect();
        let in_order = mind(statements.clone());
        let mut shuffled: Vec<Observation> = statements.iter().chain(&statements).cloned().collect();
        let mut seed = shuffle | 1;
        for n in (1..shuffled.len()).rev() {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            shuffled.swap(n, usize::try_from(seed % (n as u64 + 1)).expect("small"));
        }
        prop_assert_eq!(in_order.verdict(at(1000)), mind(shuffled).verdict(at(1000)));
    }

    #[test]
    fn a_definite_state_always_has_a_fresh_conclusive_statement(
        statements in proptest::collection::vec(any_statement(), 0..24),
    ) {
        let mind = mind(statements);
        let verdict = mind.verdict(at(1000));
        let carried = mind.rated_observations(at(1000)).any(|s| {
            s.status == ObservationStatus::Fresh && s.observation.conclusive && s.assertion.state() == Some(verdict.state)
        });
        prop_assert_eq!(carried, verdict.state != State::Unknown);
        prop_assert_eq!(verdict.reason.is_some(), verdict.state == State::Unknown);
    }
}

#[test]
fn the_end_of_a_turn_that_stays_on_screen_is_one_end() {
    let done = |second, line: &str| Observation {
        excerpt: line.into(),
        ttl: Some(SignedDuration::from_secs(3)),
        ..said(Source::Screen, Assertion::Completed, second)
    };
    let mut mind = mind([done(10, "Baked for 8s")]);
    assert!(!mind.is_new_information(&done(20, "Baked for 8s")), "nothing has happened in between");
    mind.demote_completed();
    mind.record(said(Source::Hook, Assertion::Running, 30), at(30));
    let again = done(40, "Baked for 8s");
    assert!(mind.is_new_information(&again), "somebody else has said otherwise");
    mind.record(again, at(40));
    assert_eq!(state(&mind, 41), State::Idle);
    mind.record(done(50, "Baked for 2s"), at(50));
    assert_eq!(state(&mind, 51), State::Completed, "another turn has ended");
}

#[test]
fn what_a_source_no_longer_shows_is_not_believed_for_long() {
    let seen = |source, second| Observation { ttl: Some(SignedDuration::from_secs(3)), ..said(source, ASKS, second) };
    for source in [Source::Screen, Source::Title] {
        let mut mind = mind([seen(source, 10)]);
        assert_eq!(state(&mind, 40_000), State::WaitingApproval, "{source:?}");
        assert!(!mind.is_unrecognized(source));
        mind.mark_unrecognized(source, at(50_000));
        assert!(mind.is_unrecognized(source));
        assert_eq!(state(&mind, 50_002), State::WaitingApproval, "it may be in the middle of drawing");
        assert_eq!(state(&mind, 50_003), State::Unknown);
        assert_eq!(mind.verdict(at(50_003)).reason, Some(ReasonCode::StaleSignal));
        mind.record(seen(source, 50_004), at(50_004));
        assert_eq!(state(&mind, 90_000), State::WaitingApproval);
    }
}

#[test]
fn the_dialog_that_is_shown_is_the_one_that_counts() {
    let dialog = |question: &str| Box::new(Dialog::new(DialogKind::Approval, question.into(), None, Vec::new()));
    let asks = |source, second, question| Observation { dialog: Some(dialog(question)), ..said(source, ASKS, second) };
    let mut mind = mind([said(Source::Hook, ASKS, 10), asks(Source::Screen, 11, "Run it?")]);
    assert_eq!(mind.dialog(State::WaitingApproval, at(12)).map(|d| d.question.as_str()), Some("Run it?"));
    assert!(mind.is_new_information(&asks(Source::Screen, 13, "Run that?")), "another question");
    mind.record(asks(Source::Screen, 13, "Run that?"), at(13));
    assert_eq!(mind.dialog(State::WaitingApproval, at(14)).map(|d| d.question.as_str()), Some("Run that?"));
    assert_eq!(mind.dialog(State::WaitingInput, at(14)), None);
}

#[test]
fn what_is_only_likely_gives_no_more_than_medium_confidence() {
    let likely = Observation { tentative: true, ..said(Source::Hook, Assertion::Running, 10) };
    assert_eq!(mind([likely]).verdict(at(11)).confidence, Confidence::Medium);
}

#[test]
fn an_agent_whose_screen_nobody_understands_is_unknown_for_that_reason() {
    let mut mind = Ledger::default();
    assert_eq!(mind.verdict(at(1)).reason, Some(ReasonCode::NoAdapter));
    mind.mark_unrecognized(Source::Screen, at(2));
    assert_eq!(mind.verdict(at(3)).reason, Some(ReasonCode::UnsupportedSignal));
}

#[test]
fn what_is_known_elsewhere_is_told_by_our_clock_and_noticed_once() {
    let there = mind([said(Source::Hook, Assertion::Completed, 100), said(Source::Screen, Assertion::NoDialog, 101)]);
    let ahead = SignedDuration::from_secs(1000);
    let told = |now: i64| {
        let mut told = there.clone();
        told.shift_clock(ahead, at(now));
        told
    };
    let mut here = Ledger::default();
    here.replace_with(told(1105));
    assert_eq!(state(&here, 1105), State::Completed);
    let times: Vec<Timestamp> = here.rated_observations(at(1105)).map(|standing| standing.observation.as_of).collect();
    assert_eq!(times, [at(1100), at(1101)]);
    here.demote_completed();
    here.replace_with(told(1105));
    assert_eq!(state(&here, 1300), State::Idle, "it was noticed here already");
    // A clock that is ahead of itself says nothing about the future.
    let mut early = there.clone();
    early.shift_clock(ahead, at(500));
    assert!(early.rated_observations(at(500)).all(|standing| standing.observation.as_of <= at(500)));
    // What is no longer known there is no longer known here.
    here.replace_with(Ledger::default());
    assert_eq!(here, Ledger::default());
}
