mod times;

use proptest::prelude::*;

use super::*;
use crate::evidence::{Assertion, DialogKind, Observation, RuleRef, Source};
use crate::ids::{ServerName, TargetName};
use crate::ordering::OrderKey;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

fn server() -> ServerKey {
    ServerKey { target: TargetName::local(), server: ServerName::new("default") }
}

fn id(name: &str) -> RuntimeId {
    RuntimeId::from_stored(name.into())
}

fn started(name: &str) -> ResolverInput {
    ResolverInput::Started {
        runtime: id(name),
        server: server(),
        agent_type: AgentType::new("claude"),
        suspended: false,
    }
}

fn observed(name: &str, source: Source, assertion: Assertion, seq: u64, second: i64) -> ResolverInput {
    let order = OrderKey {
        source_seq: Some(seq),
        event_time: at(second),
        ingested_at: at(second),
        event_id: format!("{seq:08}"),
    };
    let observation = Observation {
        ttl: (assertion == Assertion::Running).then(|| SignedDuration::from_mins(15)),
        order,
        ..Observation::new(source, assertion, at(second), RuleRef::new("test", 1))
    };
    ResolverInput::Observed { runtime: id(name), observation: Box::new(observation) }
}

fn resolver(inputs: Vec<(ResolverInput, i64)>) -> (StateResolver, Vec<StateTransition>) {
    let mut resolver = StateResolver::new(SignedDuration::from_secs(120));
    let transitions = inputs.into_iter().flat_map(|(input, second)| resolver.apply(input, at(second))).collect();
    (resolver, transitions)
}

fn state(resolver: &StateResolver, name: &str) -> State {
    resolver.state(&id(name)).expect("a known runtime").state
}

#[test]
fn a_completed_turn_becomes_idle_after_two_minutes() {
    let (mut resolver, _) =
        resolver(vec![(started("r"), 0), (observed("r", Source::Hook, Assertion::Completed, 1, 1), 1)]);
    assert_eq!(state(&resolver, "r"), State::Completed);
    assert_eq!(resolver.next_deadline(at(1)), Some(at(121)));
    assert!(resolver.due_inputs(at(120)).is_empty());
    for input in resolver.due_inputs(at(121)) {
        resolver.apply(input, at(121));
    }
    assert_eq!(state(&resolver, "r"), State::Idle);
    assert_eq!(resolver.next_deadline(at(121)), None);
}

#[test]
fn a_late_demotion_changes_nothing() {
    let (mut resolver, _) =
        resolver(vec![(started("r"), 0), (observed("r", Source::Hook, Assertion::Completed, 1, 1), 1)]);
    let due = resolver.due_inputs(at(130));
    resolver.apply(observed("r", Source::Hook, Assertion::Running, 2, 130), at(130));
    resolver.apply(observed("r", Source::Hook, Assertion::Completed, 3, 131), at(131));
    for input in due {
        resolver.apply(input, at(132));
    }
    assert_eq!(state(&resolver, "r"), State::Completed, "this is another completion");
}

#[test]
fn events_of_an_ended_runtime_do_not_affect_the_next_one() {
    let (resolver, transitions) = resolver(vec![
        (started("old"), 0),
        (ResolverInput::Ended { runtime: id("old") }, 1),
        (started("new"), 2),
        (observed("old", Source::Hook, Assertion::Running, 1, 3), 3),
    ]);
    assert_eq!(state(&resolver, "new"), State::Unknown);
    assert_eq!(transitions.len(), 2);
}

#[test]
fn an_outage_makes_the_state_unknown_and_recovery_restores_it() {
    let out = |reachable| ResolverInput::Reachable { server: server(), reachable };
    let (mut resolver, _) =
        resolver(vec![(started("r"), 0), (observed("r", Source::Hook, Assertion::Running, 1, 1), 1)]);
    resolver.apply(out(false), at(2));
    let record = resolver.state(&id("r")).expect("known").clone();
    assert_eq!((record.state, record.reason), (State::Unknown, Some(ReasonCode::TargetUnreachable)));
    resolver.apply(out(true), at(3));
    assert_eq!(state(&resolver, "r"), State::Running);
}

#[test]
fn an_expired_running_state_becomes_due() {
    let (mut resolver, _) =
        resolver(vec![(started("r"), 0), (observed("r", Source::Hook, Assertion::Running, 1, 1), 1)]);
    assert_eq!(resolver.next_deadline(at(1)), Some(at(901)));
    for input in resolver.due_inputs(at(901)) {
        resolver.apply(input, at(901));
    }
    let record = resolver.state(&id("r")).expect("known");
    assert_eq!((record.state, record.reason), (State::Unknown, Some(ReasonCode::StaleSignal)));
}

#[test]
fn an_unchanged_approval_lasts_12_hours() {
    let dialog_open = Assertion::DialogOpen(DialogKind::Approval);
    for source in [Source::Hook, Source::Screen] {
        let (mut resolver, _) = resolver(vec![
            (started("r"), 0),
            (observed("r", Source::Hook, Assertion::Running, 1, 1), 1),
            (observed("r", source, dialog_open, 2, 2), 2),
        ]);
        for second in (3..12 * 3600).step_by(30) {
            for input in resolver.due_inputs(at(second)) {
                resolver.apply(input, at(second));
            }
            assert_eq!(state(&resolver, "r"), State::WaitingApproval, "{source}, after {second} s");
        }
    }
}

#[test]
fn a_flood_from_one_source_does_not_hide_another() {
    let flood = (1..2000).map(|n| (observed("r", Source::Title, Assertion::Running, n, 5), 5));
    let dialog_open = (observed("r", Source::Hook, Assertion::DialogOpen(DialogKind::Input), 1, 6), 6);
    let (resolver, _) = resolver([(started("r"), 0)].into_iter().chain(flood).chain([dialog_open]).collect());
    assert_eq!(state(&resolver, "r"), State::WaitingInput);
}

fn any_input() -> impl Strategy<Value = ResolverInput> {
    let names = prop_oneof![Just("a"), Just("b"), Just("c")];
    let assertions = prop_oneof![
        Just(Assertion::Running),
        Just(Assertion::Completed),
        Just(Assertion::Idle),
        Just(Assertion::Failed),
        Just(Assertion::DialogOpen(DialogKind::Approval)),
        Just(Assertion::NoDialog),
    ];
    let sources = prop_oneof![Just(Source::Hook), Just(Source::Screen), Just(Source::File)];
    prop_oneof![
        8 => (names.clone(), sources, assertions, 1u64..50).prop_map(|(name, source, assertion, seq)| {
            observed(name, source, assertion, seq, i64::try_from(seq).expect("small"))
        }),
        1 => names.clone().prop_map(started),
        1 => names.clone().prop_map(|name| ResolverInput::Ended { runtime: id(name) }),
        1 => (names, any::<bool>()).prop_map(|(name, suspended)| ResolverInput::Suspended { runtime: id(name), suspended }),
        1 => any::<bool>().prop_map(|reachable| ResolverInput::Reachable { server: server(), reachable }),
        1 => (-100i64..100).prop_map(|by| ResolverInput::ClockStepped { by: SignedDuration::from_secs(by) }),
        1 => (0i64..100).prop_map(|by| ResolverInput::TimeSkipped { by: SignedDuration::from_secs(by) }),
    ]
}

fn cases() -> u32 {
    if std::env::var_os("AGTMUX_SOAK").is_some() { 10_000 } else { 500 }
}

/// Gives each input its own time.
fn timed(inputs: &[ResolverInput]) -> Vec<(ResolverInput, i64)> {
    inputs.iter().cloned().zip(0..).collect()
}

/// The exact bytes that a database would store.
fn bytes(of: &impl Serialize) -> String {
    serde_json::to_string(of).expect("own types serialize")
}

fn shuffled(inputs: &[ResolverInput], seed: u64) -> Vec<ResolverInput> {
    let mut shuffled = inputs.to_vec();
    let mut seed = seed | 1;
    for n in (1..shuffled.len()).rev() {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        shuffled.swap(n, usize::try_from(seed % (n as u64 + 1)).expect("small"));
    }
    shuffled
}

/// Generates events with unique sequence numbers per source. It drops events with a repeated number, because the daemon
/// rejects them as conflicts.
fn sequenced() -> impl Strategy<Value = Vec<ResolverInput>> {
    proptest::collection::vec(any_input(), 0..40).prop_map(|inputs| {
        let mut seen = BTreeSet::new();
        let new = |input: &ResolverInput| match input {
            ResolverInput::Observed { runtime, observation } => seen.insert((
                runtime.clone(),
                observation.source,
                observation.assertion.claim(),
                observation.order.source_seq,
            )),
            _ => false,
        };
        inputs.into_iter().filter(new).collect()
    })
}

fn final_states(events: Vec<ResolverInput>) -> Vec<(RuntimeId, State, Option<ReasonCode>)> {
    let begun = ["a", "b", "c"].map(started).into_iter().map(|input| (input, 0));
    let (resolver, _) = resolver(begun.chain(events.into_iter().map(|event| (event, 60))).collect());
    resolver.runtimes().map(|(id, record)| (id.clone(), record.state, record.reason)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn the_same_stream_gives_byte_identical_states_and_transition_log(
        inputs in proptest::collection::vec(any_input(), 0..60),
    ) {
        let ((states, log), (states_again, log_again)) = (resolver(timed(&inputs)), resolver(timed(&inputs)));
        prop_assert_eq!(bytes(&states), bytes(&states_again));
        prop_assert_eq!(bytes(&log), bytes(&log_again));
    }

    #[test]
    fn a_shuffle_of_sequenced_events_gives_the_same_final_states(events in sequenced(), seed in any::<u64>()) {
        prop_assert_eq!(final_states(events.clone()), final_states(shuffled(&events, seed)));
    }

    #[test]
    fn duplicate_events_change_nothing(inputs in proptest::collection::vec(any_input(), 0..60), seed in any::<u64>()) {
        let is_event = |input: &ResolverInput| matches!(input, ResolverInput::Observed { .. });
        let at_once = timed(&inputs).into_iter().flat_map(|(input, second)| {
            let copies = if is_event(&input) { 2 } else { 1 };
            std::iter::repeat_n((input, second), copies)
        });
        let ((states, log), (states_again, log_again)) = (resolver(timed(&inputs)), resolver(at_once.collect()));
        prop_assert_eq!(bytes(&states), bytes(&states_again));
        prop_assert_eq!(bytes(&log), bytes(&log_again));

        let events: Vec<ResolverInput> = inputs.into_iter().filter(is_event).collect();
        let later: Vec<ResolverInput> = events.iter().cloned().chain(shuffled(&events, seed)).collect();
        prop_assert_eq!(final_states(events), final_states(later), "also when duplicates arrive much later");
    }

    #[test]
    fn restarts_change_nothing(
        inputs in proptest::collection::vec(any_input(), 0..60),
        restarts in proptest::collection::btree_set(0usize..60, 0..6),
    ) {
        let (whole, log) = resolver(timed(&inputs));
        let (mut resolver, mut log_in_parts) = resolver(Vec::new());
        for (n, (input, second)) in timed(&inputs).into_iter().enumerate() {
            if restarts.contains(&n) {
                resolver = serde_json::from_str(&bytes(&resolver)).expect("a checkpoint reads back");
            }
            log_in_parts.extend(resolver.apply(input, at(second)));
        }
        prop_assert_eq!(bytes(&whole), bytes(&resolver));
        prop_assert_eq!(bytes(&log), bytes(&log_in_parts));
    }
}

#[test]
fn a_completed_turn_is_unseen_until_a_person_has_seen_it() {
    let (mut resolver, _) =
        resolver(vec![(started("r"), 0), (observed("r", Source::Hook, Assertion::Completed, 1, 1), 1)]);
    assert_eq!(resolver.unseen_since(&id("r")), Some(at(1)));
    for input in resolver.due_inputs(at(121)) {
        resolver.apply(input, at(121));
    }
    assert_eq!((state(&resolver, "r"), resolver.unseen_since(&id("r"))), (State::Idle, Some(at(1))));
    let stored = serde_json::to_string(&resolver).expect("a checkpoint");
    assert_eq!(serde_json::from_str::<StateResolver>(&stored).expect("a checkpoint"), resolver);
    assert_eq!(resolver.apply(ResolverInput::Seen { runtime: id("r") }, at(130)), []);
    assert_eq!(resolver.unseen_since(&id("r")), None);
    // After an outage, a completed turn that was seen does not become unseen again.
    resolver.apply(observed("r", Source::Hook, Assertion::Running, 2, 131), at(131));
    resolver.apply(observed("r", Source::Hook, Assertion::Completed, 3, 132), at(132));
    resolver.apply(ResolverInput::Seen { runtime: id("r") }, at(133));
    for reachable in [false, true] {
        resolver.apply(ResolverInput::Reachable { server: server(), reachable }, at(134));
    }
    assert_eq!((state(&resolver, "r"), resolver.unseen_since(&id("r"))), (State::Completed, None));
    // When a new turn begins, the previous turn no longer counts as unseen.
    resolver.apply(observed("r", Source::Hook, Assertion::Running, 4, 140), at(140));
    resolver.apply(observed("r", Source::Hook, Assertion::Completed, 5, 141), at(141));
    assert_eq!(resolver.unseen_since(&id("r")), Some(at(141)));
    resolver.apply(observed("r", Source::Hook, Assertion::Running, 6, 142), at(142));
    assert_eq!(resolver.unseen_since(&id("r")), None);
}
