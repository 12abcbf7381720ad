//! Everything that can be done to a tmux server's sessions, windows and panes.

use std::collections::BTreeSet;

use super::random::XorshiftRandom;
use super::station::{ModelServer, PROGRAM, ServerAction, TmuxPaneRow};

/// A server is kept between these, mostly: small enough to be quick, large enough to be of interest.
const MIN_PANES: usize = 4;
const MAX_PANES: usize = 18;
const MAX_SESSIONS: usize = 5;

/// Few and odd ones, so that names are given again to other things, and none passes for an id or an option.
const NAMES: [&str; 10] = ["work", "two words", "grün", "日本", "a-b", "%1", "$0", "@2", "work2", "-d"];
const TITLES: [&str; 8] =
    ["", "plain", "✳ thinking…", "a|b", "it's \"quoted\" $(touch x)", "50%", "  spaces  ", "日本 🚀"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperationEffect {
    Adds,
    Removes,
    Changes,
}

struct TmuxOperation {
    kind: &'static str,
    weight: usize,
    effect: OperationEffect,
    make: fn(&mut XorshiftRandom, &ModelServer) -> Option<ServerAction>,
}

const fn operation(
    kind: &'static str,
    weight: usize,
    effect: OperationEffect,
    make: fn(&mut XorshiftRandom, &ModelServer) -> Option<ServerAction>,
) -> TmuxOperation {
    TmuxOperation { kind, weight, effect, make }
}

const OPERATIONS: [TmuxOperation; 24] = [
    operation("new-session", 3, OperationEffect::Adds, new_session),
    operation("new-session -t (group)", 2, OperationEffect::Adds, new_session_in_group),
    operation("new-window", 5, OperationEffect::Adds, new_window),
    operation("split-window", 7, OperationEffect::Adds, split),
    operation("kill-pane", 4, OperationEffect::Removes, kill_pane),
    operation("kill-window", 2, OperationEffect::Removes, kill_window),
    operation("kill-session", 2, OperationEffect::Removes, kill_session),
    operation("kill -9", 3, OperationEffect::Removes, kill_process),
    operation("respawn-pane", 3, OperationEffect::Changes, respawn),
    operation("rename-window", 4, OperationEffect::Changes, rename_window),
    operation("rename-session", 4, OperationEffect::Changes, rename_session),
    operation("title by select-pane -T", 2, OperationEffect::Changes, select_pane_title),
    operation("title by the program", 3, OperationEffect::Changes, program_title),
    operation("move-window", 3, OperationEffect::Changes, move_window),
    operation("link-window", 4, OperationEffect::Changes, link_window),
    operation("unlink-window", 3, OperationEffect::Changes, unlink_window),
    operation("swap-window", 2, OperationEffect::Changes, swap_window),
    operation("swap-pane", 4, OperationEffect::Changes, swap_pane),
    operation("break-pane", 4, OperationEffect::Changes, break_pane),
    operation("join-pane", 4, OperationEffect::Changes, join_pane),
    operation("kill-server", 1, OperationEffect::Removes, |_, _| Some(ServerAction::KillServer)),
    operation("kill-server, start", 1, OperationEffect::Removes, |random, _| {
        Some(ServerAction::Restart { session: random_name(random) })
    }),
    operation("kill -9 server, start", 1, OperationEffect::Removes, |random, _| {
        Some(ServerAction::CrashAndRestart { session: random_name(random) })
    }),
    operation("rename two sessions", 1, OperationEffect::Changes, reuse_session_name),
];

/// Something that can be done to this server now. tmux may still refuse it.
pub(crate) fn choose(random: &mut XorshiftRandom, station: &ModelServer) -> (&'static str, ServerAction) {
    if !station.is_running() {
        return ("start", ServerAction::Start { session: random_name(random) });
    }
    loop {
        let operation = pick_by_weight(random);
        if is_allowed(random, operation.effect, station)
            && let Some(deed) = (operation.make)(random, station)
        {
            return (operation.kind, deed);
        }
    }
}

fn pick_by_weight(random: &mut XorshiftRandom) -> &'static TmuxOperation {
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

fn is_allowed(random: &mut XorshiftRandom, effect: OperationEffect, station: &ModelServer) -> bool {
    match effect {
        OperationEffect::Changes => true,
        OperationEffect::Adds => panes(station).len() < MAX_PANES && sessions(station).len() < MAX_SESSIONS,
        // Now and then also the last of them goes, and the server with it.
        OperationEffect::Removes => panes(station).len() > MIN_PANES || random.one_in(8),
    }
}

fn new_session(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let name = random_free_name(random, station)?;
    tmux_action(&["new-session", "-d", "-x", "80", "-y", "24", "-s", &name, PROGRAM])
}

fn new_session_in_group(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let (name, other) = (random_free_name(random, station)?, random_session(random, station)?);
    tmux_action(&["new-session", "-d", "-s", &name, "-t", &other])
}

fn new_window(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    tmux_action(&["new-window", "-d", "-t", &end_of_session(&random_session(random, station)?), PROGRAM])
}

fn split(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let direction = if random.one_in(2) { "-h" } else { "-v" };
    tmux_action(&["split-window", "-d", direction, "-t", &random_pane(random, station)?.id, PROGRAM])
}

fn kill_pane(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    tmux_action(&["kill-pane", "-t", &random_pane(random, station)?.id])
}

fn kill_window(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    tmux_action(&["kill-window", "-t", &random_pane(random, station)?.window])
}

fn kill_session(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    tmux_action(&["kill-session", "-t", &random_session(random, station)?])
}

fn kill_process(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    Some(ServerAction::KillPaneProcess { pane: random_live_pane(random, station)?.id })
}

fn respawn(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    tmux_action(&["respawn-pane", "-k", "-t", &random_pane(random, station)?.id, PROGRAM])
}

fn rename_window(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let name = random_name(random);
    tmux_action(&["rename-window", "-t", &random_pane(random, station)?.window, "--", &name])
}

fn rename_session(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let (session, name) = (random_session(random, station)?, random_free_name(random, station)?);
    tmux_action(&["rename-session", "-t", &session, "--", &name])
}

/// The second session takes the name of the first, at once.
fn reuse_session_name(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let (from, to) = (random_pane(random, station)?, random_pane(random, station)?);
    let free = random_free_name(random, station)?;
    if from.session == to.session {
        return None;
    }
    let first = ["rename-session", "-t", &from.session, "--", &free, ";"];
    let second = ["rename-session", "-t", &to.session, "--", &from.session_name];
    tmux_action(&[&first[..], &second[..]].concat())
}

fn select_pane_title(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let title = random.pick(&TITLES)?;
    tmux_action(&["select-pane", "-t", &random_pane(random, station)?.id, "-T", title])
}

fn program_title(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let title = random.pick(&TITLES)?.to_owned();
    Some(ServerAction::SetTitle { pane: random_live_pane(random, station)?.id, title })
}

fn move_window(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let (from, to) = (random_pane(random, station)?, random_session(random, station)?);
    tmux_action(&["move-window", "-d", "-s", &window_in_session(&from), "-t", &end_of_session(&to)])
}

fn link_window(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let (from, to) = (random_pane(random, station)?, random_session(random, station)?);
    tmux_action(&["link-window", "-d", "-s", &window_in_session(&from), "-t", &end_of_session(&to)])
}

fn unlink_window(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let is_linked = |pane: &&TmuxPaneRow| {
        station.panes().iter().any(|other| other.window == pane.window && other.session != pane.session)
    };
    let linked: Vec<TmuxPaneRow> = station.panes().iter().filter(is_linked).cloned().collect();
    tmux_action(&["unlink-window", "-t", &window_in_session(&random.pick(&linked)?)])
}

fn swap_window(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let (one, other) = (random_pane(random, station)?, random_pane(random, station)?);
    tmux_action(&["swap-window", "-d", "-s", &window_in_session(&one), "-t", &window_in_session(&other)])
}

fn swap_pane(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let (one, other) = (random_pane(random, station)?, random_pane(random, station)?);
    tmux_action(&["swap-pane", "-d", "-s", &one.id, "-t", &other.id])
}

fn break_pane(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let (pane, session) = (random_pane(random, station)?, random_session(random, station)?);
    tmux_action(&["break-pane", "-d", "-s", &pane.id, "-t", &end_of_session(&session)])
}

fn join_pane(random: &mut XorshiftRandom, station: &ModelServer) -> Option<ServerAction> {
    let (pane, beside) = (random_pane(random, station)?, random_pane(random, station)?);
    tmux_action(&["join-pane", "-d", "-s", &pane.id, "-t", &beside.id])
}

fn tmux_action(words: &[&str]) -> Option<ServerAction> {
    Some(ServerAction::Tmux(words.iter().map(|word| (*word).to_owned()).collect()))
}

fn panes(station: &ModelServer) -> BTreeSet<&str> {
    station.panes().iter().map(|pane| pane.id.as_str()).collect()
}

fn sessions(station: &ModelServer) -> BTreeSet<&str> {
    station.panes().iter().map(|pane| pane.session.as_str()).collect()
}

fn random_pane(random: &mut XorshiftRandom, station: &ModelServer) -> Option<TmuxPaneRow> {
    random.pick(station.panes())
}

fn random_live_pane(random: &mut XorshiftRandom, station: &ModelServer) -> Option<TmuxPaneRow> {
    let alive: Vec<TmuxPaneRow> = station.panes().iter().filter(|pane| !pane.dead).cloned().collect();
    random.pick(&alive)
}

/// Each with the same chance, however many panes it shows.
fn random_session(random: &mut XorshiftRandom, station: &ModelServer) -> Option<String> {
    let all: Vec<&str> = sessions(station).into_iter().collect();
    random.pick(&all).map(str::to_owned)
}

fn random_name(random: &mut XorshiftRandom) -> String {
    random.pick(&NAMES).unwrap_or(NAMES[0]).to_owned()
}

fn random_free_name(random: &mut XorshiftRandom, station: &ModelServer) -> Option<String> {
    let name = random_name(random);
    station.panes().iter().all(|pane| pane.session_name != name).then_some(name)
}

fn end_of_session(session: &str) -> String {
    format!("{session}:")
}

fn window_in_session(pane: &TmuxPaneRow) -> String {
    format!("{}:{}", pane.session, pane.window)
}
