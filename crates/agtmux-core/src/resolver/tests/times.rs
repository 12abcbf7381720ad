//! Ages, TTLs and order when the clock is set, the machine sleeps, or a server does not answer.

use super::*;

const DAY: i64 = 86_400;

fn reachable(reachable: bool) -> ResolverInput {
    ResolverInput::Reachable { server: server(), reachable }
}

fn suspended(suspended: bool) -> ResolverInput {
    ResolverInput::Suspended { runtime: id("r"), suspended }
}

fn stepped(seconds: i64) -> ResolverInput {
    ResolverInput::ClockStepped { by: SignedDuration::from_secs(seconds) }
}

fn skipped(seconds: i64) -> ResolverInput {
    ResolverInput::TimeSkipped { by: SignedDuration::from_secs(seconds) }
}

/// An agent that reports `assertion` through a hook at second 1.
fn agent(assertion: Assertion) -> StateResolver {
    resolver(vec![(started("r"), 0), (observed("r", Source::Hook, assertion, 1, 1), 1)]).0
}

fn since(resolver: &StateResolver) -> i64 {
    resolver.state(&id("r")).expect("a known runtime").since.as_second()
}

fn apply_due(resolver: &mut StateResolver, second: i64) {
    for input in resolver.due_inputs(at(second)) {
        resolver.apply(input, at(second));
    }
}

#[test]
fn a_state_keeps_its_age_through_an_outage_or_a_suspension() {
    for (begin, end) in [(reachable(false), reachable(true)), (suspended(true), suspended(false))] {
        let mut resolver = agent(Assertion::Idle);
        resolver.apply(begin, at(100));
        assert_eq!((state(&resolver, "r"), since(&resolver)), (State::Unknown, 100));
        resolver.apply(end, at(130));
        assert_eq!((state(&resolver, "r"), since(&resolver)), (State::Idle, 1));
    }
}

#[test]
fn a_state_keeps_its_age_if_the_agent_is_suspended_during_an_outage() {
    let mut resolver = agent(Assertion::Idle);
    for (input, second) in
        [(reachable(false), 10), (suspended(true), 11), (reachable(true), 12), (suspended(false), 13)]
    {
        resolver.apply(input, at(second));
    }
    assert_eq!((state(&resolver, "r"), since(&resolver)), (State::Idle, 1));
}

#[test]
fn a_state_that_began_during_an_outage_has_its_own_age() {
    let mut resolver = agent(Assertion::Idle);
    resolver.apply(reachable(false), at(100));
    resolver.apply(observed("r", Source::Hook, Assertion::Running, 2, 110), at(110));
    resolver.apply(reachable(true), at(130));
    assert_eq!((state(&resolver, "r"), since(&resolver)), (State::Running, 130));
    // A return to the state from before the outage now counts as a new state.
    resolver.apply(observed("r", Source::Hook, Assertion::Idle, 3, 140), at(140));
    assert_eq!((state(&resolver, "r"), since(&resolver)), (State::Idle, 140));
}

#[test]
fn a_dialog_is_seen_after_the_clock_is_set_back() {
    for back in [120, DAY] {
        let ahead = back + 10;
        let mut resolver = resolver(vec![
            (started("r"), ahead),
            (observed("r", Source::Screen, Assertion::Idle, 1, ahead), ahead),
            (observed("r", Source::Screen, Assertion::NoDialog, 1, ahead), ahead),
        ])
        .0;
        assert_eq!(state(&resolver, "r"), State::Idle);
        resolver.apply(stepped(-back), at(20));
        assert_eq!((state(&resolver, "r"), since(&resolver)), (State::Idle, 10), "its age is still 10 s");
        let input = observed_without_number(Source::Screen, Assertion::DialogOpen(DialogKind::Approval), 21);
        resolver.apply(input, at(21));
        assert_eq!(state(&resolver, "r"), State::WaitingApproval, "{back} s");
    }
}

/// An observation without a sequence number. Only its time decides whether it is newer than another observation.
fn observed_without_number(source: Source, assertion: Assertion, second: i64) -> ResolverInput {
    let ResolverInput::Observed { runtime, mut observation } = observed("r", source, assertion, 0, second) else {
        unreachable!("an observation")
    };
    observation.order.source_seq = None;
    ResolverInput::Observed { runtime, observation }
}

#[test]
fn no_time_lies_in_the_future_after_the_clock_is_set_back() {
    let mut resolver = agent(Assertion::Running);
    // The step is larger than the age of the state. This can happen after a restart, because the daemon then does not
    // know the exact step.
    resolver.apply(stepped(100), at(50));
    assert_eq!(since(&resolver), 50);
    let ledger = resolver.ledger(&id("r")).expect("a known runtime");
    assert!(ledger.records().all(|record| record.observation.as_of == at(50) && record.recorded_at == at(50)));
}

#[test]
fn a_clock_set_forward_expires_nothing() {
    let mut resolver = agent(Assertion::Running);
    resolver.apply(stepped(DAY), at(DAY + 2));
    apply_due(&mut resolver, DAY + 2);
    assert_eq!((state(&resolver, "r"), since(&resolver)), (State::Running, DAY + 1));
    assert_eq!(resolver.next_deadline(at(DAY + 2)), Some(at(DAY + 901)), "the TTL continues");
}

#[test]
fn a_report_does_not_expire_while_the_machine_sleeps() {
    let mut resolver = agent(Assertion::Running);
    resolver.apply(skipped(8 * 3600), at(8 * 3600 + 61));
    apply_due(&mut resolver, 8 * 3600 + 61);
    assert_eq!((state(&resolver, "r"), since(&resolver)), (State::Running, 1), "the state keeps its age");
    assert_eq!(resolver.next_deadline(at(8 * 3600 + 61)), Some(at(8 * 3600 + 901)), "840 s of the TTL are left");
}

#[test]
fn a_completed_turn_is_not_demoted_while_the_machine_sleeps() {
    let mut resolver = agent(Assertion::Completed);
    resolver.apply(skipped(3600), at(3661));
    apply_due(&mut resolver, 3661);
    assert_eq!(state(&resolver, "r"), State::Completed);
    apply_due(&mut resolver, 3720);
    assert_eq!(state(&resolver, "r"), State::Completed, "119 s without the sleep");
    apply_due(&mut resolver, 3721);
    assert_eq!(state(&resolver, "r"), State::Idle);
}

#[test]
fn an_unmatched_screen_does_not_expire_while_the_machine_sleeps() {
    let mut resolver = agent(Assertion::Idle);
    let mut screen = observed_without_number(Source::Screen, Assertion::Running, 5);
    if let ResolverInput::Observed { observation, .. } = &mut screen {
        observation.ttl = Some(SignedDuration::from_secs(3));
    }
    resolver.apply(screen, at(5));
    resolver.apply(ResolverInput::Unrecognized { runtime: id("r"), source: Source::Screen, at: at(6) }, at(6));
    resolver.apply(skipped(30), at(37));
    apply_due(&mut resolver, 37);
    assert_eq!(state(&resolver, "r"), State::Running, "1 s of 3 s has passed");
    apply_due(&mut resolver, 39);
    assert_eq!(state(&resolver, "r"), State::Unknown, "the screen contradicted the earlier idle state");
}

#[test]
fn a_sleep_during_an_outage_does_not_count_for_the_state_before_it() {
    let mut resolver = agent(Assertion::Completed);
    resolver.apply(skipped(30), at(32));
    resolver.apply(reachable(false), at(33));
    resolver.apply(reachable(true), at(34));
    apply_due(&mut resolver, 122);
    assert_eq!(state(&resolver, "r"), State::Completed, "30 s of 121 s do not count");
    resolver.apply(reachable(false), at(123));
    resolver.apply(skipped(3600), at(3724));
    resolver.apply(reachable(true), at(3725));
    apply_due(&mut resolver, 3730);
    assert_eq!(state(&resolver, "r"), State::Completed, "the sleep during the outage does not count either");
}
