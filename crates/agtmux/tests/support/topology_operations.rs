//! Everything that can be done to a tmux server's sessions, windows and panes.

use std::collections::BTreeSet;

use super::random::Random;
use super::station::{Deed, PROGRAM, Station, TruePane};

/// A server is kept between these, mostly: small enough to be quick, large enough to be of interest.
const FEW_PANES: usize = 4;
const MANY_PANES: usize = 18;
const MANY_SESSIONS: usize = 5;

/// Few and odd ones, so that names are given again to other things, and none passes for an id or an option.
const NAMES: [&str; 10] = ["work", "two words", "grün", "日本", "a-b", "%1", "$0", "@2", "work2", "-d"];
const TITLES: [&str; 8] =
    ["", "plain", "✳ thinking…", "a|b", "it's \"quoted\" $(touch x)", "50%", "  spaces  ", "日本 🚀"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Adds,
    Removes,
    Changes,
}

struct Operation {
    kind: &'static str,
    weight: usize,
    effect: Effect,
    make: fn(&mut Random, &Station) -> Option<Deed>,
}

const fn operation(
    kind: &'static str,
    weight: usize,
    effect: Effect,
    make: fn(&mut Random, &Station) -> Option<Deed>,
) -> Operation {
    Operation { kind, weight, effect, make }
}

const OPERATIONS: [Operation; 24] = [
    operation("new-session", 3, Effect::Adds, new_session),
    operation("new-session -t (group)", 2, Effect::Adds, new_session_in_group),
    operation("new-window", 5, Effect::Adds, new_window),
    operation("split-window", 7, Effect::Adds, split),
    operation("kill-pane", 4, Effect::Removes, kill_pane),
    operation("kill-window", 2, Effect::Removes, kill_window),
    operation("kill-session", 2, Effect::Removes, kill_session),
    operation("kill -9", 3, Effect::Removes, kill_process),
    operation("respawn-pane", 3, Effect::Changes, respawn),
    operation("rename-window", 4, Effect::Changes, rename_window),
    operation("rename-session", 4, Effect::Changes, rename_session),
    operation("title by select-pane -T", 2, Effect::Changes, select_pane_title),
    operation("title by the program", 3, Effect::Changes, program_title),
    operation("move-window", 3, Effect::Changes, move_window),
    operation("link-window", 4, Effect::Changes, link_window),
    operation("unlink-window", 3, Effect::Changes, unlink_window),
    operation("swap-window", 2, Effect::Changes, swap_window),
    operation("swap-pane", 4, Effect::Changes, swap_pane),
    operation("break-pane", 4, Effect::Changes, break_pane),
    operation("join-pane", 4, Effect::Changes, join_pane),
    operation("kill-server", 1, Effect::Removes, |_, _| Some(Deed::End)),
    operation("kill-server, start", 1, Effect::Removes, |random, _| Some(Deed::Restart { session: any_name(random) })),
    operation("kill -9 server, start", 1, Effect::Removes, |random, _| {
        Some(Deed::CrashAndRestart { session: any_name(random) })
    }),
    operation("rename two sessions", 1, Effect::Changes, pass_on_a_name),
];

/// Something that can be done to this server now. tmux may still refuse it.
pub(crate) fn choose(random: &mut Random, station: &Station) -> (&'static str, Deed) {
    if !station.is_running() {
        return ("start", Deed::Start { session: any_name(random) });
    }
    loop {
        let operation = by_weight(random);
        if fits(random, operation.effect, station)
            && let Some(deed) = (operation.make)(random, station)
        {
            return (operation.kind, deed);
        }
    }
}

fn by_weight(random: &mut Random) -> &'static Operation {
    let all: usize = OPERATIONS.iter().map(|operation| operation.weight).sum();
    let mut left = random.below(all);
    let chosen = OPERATIONS.iter().find(|operation| match left.checked_sub(operation.weight) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    chosen.expect("what is below the sum falls on one of them")
}

fn fits(random: &mut Random, effect: Effect, station: &Station) -> bool {
    match effect {
        Effect::Changes => true,
        Effect::Adds => panes(station).len() < MANY_PANES && sessions(station).len() < MANY_SESSIONS,
        // Now and then also the last of them goes, and the server with it.
        Effect::Removes => panes(station).len() > FEW_PANES || random.one_in(8),
    }
}

fn new_session(random: &mut Random, station: &Station) -> Option<Deed> {
    let name = free_name(random, station)?;
    tmux(&["new-session", "-d", "-x", "80", "-y", "24", "-s", &name, PROGRAM])
}

fn new_session_in_group(random: &mut Random, station: &Station) -> Option<Deed> {
    let (name, other) = (free_name(random, station)?, a_session(random, station)?);
    tmux(&["new-session", "-d", "-s", &name, "-t", &other])
}

fn new_window(random: &mut Random, station: &Station) -> Option<Deed> {
    tmux(&["new-window", "-d", "-t", &end_of(&a_session(random, station)?), PROGRAM])
}

fn split(random: &mut Random, station: &Station) -> Option<Deed> {
    let direction = if random.one_in(2) { "-h" } else { "-v" };
    tmux(&["split-window", "-d", direction, "-t", &a_pane(random, station)?.id, PROGRAM])
}

fn kill_pane(random: &mut Random, station: &Station) -> Option<Deed> {
    tmux(&["kill-pane", "-t", &a_pane(random, station)?.id])
}

fn kill_window(random: &mut Random, station: &Station) -> Option<Deed> {
    tmux(&["kill-window", "-t", &a_pane(random, station)?.window])
}

fn kill_session(random: &mut Random, station: &Station) -> Option<Deed> {
    tmux(&["kill-session", "-t", &a_session(random, station)?])
}

fn kill_process(random: &mut Random, station: &Station) -> Option<Deed> {
    Some(Deed::Kill { pane: a_living_pane(random, station)?.id })
}

fn respawn(random: &mut Random, station: &Station) -> Option<Deed> {
    tmux(&["respawn-pane", "-k", "-t", &a_pane(random, station)?.id, PROGRAM])
}

fn rename_window(random: &mut Random, station: &Station) -> Option<Deed> {
    let name = any_name(random);
    tmux(&["rename-window", "-t", &a_pane(random, station)?.window, "--", &name])
}

fn rename_session(random: &mut Random, station: &Station) -> Option<Deed> {
    let (session, name) = (a_session(random, station)?, free_name(random, station)?);
    tmux(&["rename-session", "-t", &session, "--", &name])
}

/// The second session takes the name of the first, at once.
fn pass_on_a_name(random: &mut Random, station: &Station) -> Option<Deed> {
    let (from, to) = (a_pane(random, station)?, a_pane(random, station)?);
    let free = free_name(random, station)?;
    if from.session == to.session {
        return None;
    }
    let first = ["rename-session", "-t", &from.session, "--", &free, ";"];
    let second = ["rename-session", "-t", &to.session, "--", &from.session_name];
    tmux(&[&first[..], &second[..]].concat())
}

fn select_pane_title(random: &mut Random, station: &Station) -> Option<Deed> {
    let title = random.pick(&TITLES)?;
    tmux(&["select-pane", "-t", &a_pane(random, station)?.id, "-T", title])
}

fn program_title(random: &mut Random, station: &Station) -> Option<Deed> {
    let title = random.pick(&TITLES)?.to_owned();
    Some(Deed::SetTitle { pane: a_living_pane(random, station)?.id, title })
}

fn move_window(random: &mut Random, station: &Station) -> Option<Deed> {
    let (from, to) = (a_pane(random, station)?, a_session(random, station)?);
    tmux(&["move-window", "-d", "-s", &window_in_session(&from), "-t", &end_of(&to)])
}

fn link_window(random: &mut Random, station: &Station) -> Option<Deed> {
    let (from, to) = (a_pane(random, station)?, a_session(random, station)?);
    tmux(&["link-window", "-d", "-s", &window_in_session(&from), "-t", &end_of(&to)])
}

fn unlink_window(random: &mut Random, station: &Station) -> Option<Deed> {
    let is_linked = |pane: &&TruePane| {
        station.panes().iter().any(|other| other.window == pane.window && other.session != pane.session)
    };
    let linked: Vec<TruePane> = station.panes().iter().filter(is_linked).cloned().collect();
    tmux(&["unlink-window", "-t", &window_in_session(&random.pick(&linked)?)])
}

fn swap_window(random: &mut Random, station: &Station) -> Option<Deed> {
    let (one, other) = (a_pane(random, station)?, a_pane(random, station)?);
    tmux(&["swap-window", "-d", "-s", &window_in_session(&one), "-t", &window_in_session(&other)])
}

fn swap_pane(random: &mut Random, station: &Station) -> Option<Deed> {
    let (one, other) = (a_pane(random, station)?, a_pane(random, station)?);
    tmux(&["swap-pane", "-d", "-s", &one.id, "-t", &other.id])
}

fn break_pane(random: &mut Random, station: &Station) -> Option<Deed> {
    let (pane, session) = (a_pane(random, station)?, a_session(random, station)?);
    tmux(&["break-pane", "-d", "-s", &pane.id, "-t", &end_of(&session)])
}

fn join_pane(random: &mut Random, station: &Station) -> Option<Deed> {
    let (pane, beside) = (a_pane(random, station)?, a_pane(random, station)?);
    tmux(&["join-pane", "-d", "-s", &pane.id, "-t", &beside.id])
}

fn tmux(words: &[&str]) -> Option<Deed> {
    Some(Deed::Tmux(words.iter().map(|word| (*word).to_owned()).collect()))
}

fn panes(station: &Station) -> BTreeSet<&str> {
    station.panes().iter().map(|pane| pane.id.as_str()).collect()
}

fn sessions(station: &Station) -> BTreeSet<&str> {
    station.panes().iter().map(|pane| pane.session.as_str()).collect()
}

fn a_pane(random: &mut Random, station: &Station) -> Option<TruePane> {
    random.pick(station.panes())
}

fn a_living_pane(random: &mut Random, station: &Station) -> Option<TruePane> {
    let alive: Vec<TruePane> = station.panes().iter().filter(|pane| !pane.dead).cloned().collect();
    random.pick(&alive)
}

/// Each with the same chance, however many panes it shows.
fn a_session(random: &mut Random, station: &Station) -> Option<String> {
    let all: Vec<&str> = sessions(station).into_iter().collect();
    random.pick(&all).map(str::to_owned)
}

fn any_name(random: &mut Random) -> String {
    random.pick(&NAMES).unwrap_or(NAMES[0]).to_owned()
}

fn free_name(random: &mut Random, station: &Station) -> Option<String> {
    let name = any_name(random);
    station.panes().iter().all(|pane| pane.session_name != name).then_some(name)
}

fn end_of(session: &str) -> String {
    format!("{session}:")
}

fn window_in_session(pane: &TruePane) -> String {
    format!("{}:{}", pane.session, pane.window)
}
