//! Random operations on the sessions, windows and panes of a tmux server.

use std::collections::BTreeSet;

use agtmux_testkit::seeded_random::SeededRandom;

use super::model_server::{ModelServer, PROGRAM, ServerAction, TmuxPaneRow};

/// Limits for the size of a server: small enough to be fast, large enough to be interesting.
const MIN_PANES: usize = 4;
const MAX_PANES: usize = 18;
const MAX_SESSIONS: usize = 5;

/// Few names so that they are reused, including names that look like ids or options.
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
    make: fn(&mut SeededRandom, &ModelServer) -> Option<ServerAction>,
}

const fn operation(
    kind: &'static str,
    weight: usize,
    effect: OperationEffect,
    make: fn(&mut SeededRandom, &ModelServer) -> Option<ServerAction>,
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

/// Picks an operation that fits the current server. tmux may still refuse it.
pub(crate) fn choose(random: &mut SeededRandom, server: &ModelServer) -> (&'static str, ServerAction) {
    if !server.is_running() {
        return ("start", ServerAction::Start { session: random_name(random) });
    }
    loop {
        let operation = pick_by_weight(random);
        if is_allowed(random, operation.effect, server)
            && let Some(action) = (operation.make)(random, server)
        {
            return (operation.kind, action);
        }
    }
}

fn pick_by_weight(random: &mut SeededRandom) -> &'static TmuxOperation {
    let all: usize = OPERATIONS.iter().map(|operation| operation.weight).sum();
    let mut left = random.below(all);
    let chosen = OPERATIONS.iter().find(|operation| match left.checked_sub(operation.weight) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    chosen.expect("a number below the sum selects an operation")
}

fn is_allowed(random: &mut SeededRandom, effect: OperationEffect, server: &ModelServer) -> bool {
    match effect {
        OperationEffect::Changes => true,
        OperationEffect::Adds => panes(server).len() < MAX_PANES && sessions(server).len() < MAX_SESSIONS,
        // Sometimes remove even the last pane, which ends the server.
        OperationEffect::Removes => panes(server).len() > MIN_PANES || random.one_in(8),
    }
}

fn new_session(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let name = random_free_name(random, server)?;
    tmux_action(&["new-session", "-d", "-x", "80", "-y", "24", "-s", &name, PROGRAM])
}

fn new_session_in_group(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let (name, other) = (random_free_name(random, server)?, random_session(random, server)?);
    tmux_action(&["new-session", "-d", "-s", &name, "-t", &other])
}

fn new_window(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    tmux_action(&["new-window", "-d", "-t", &end_of_session(&random_session(random, server)?), PROGRAM])
}

fn split(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let direction = if random.one_in(2) { "-h" } else { "-v" };
    tmux_action(&["split-window", "-d", direction, "-t", &random_pane(random, server)?.id, PROGRAM])
}

fn kill_pane(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    tmux_action(&["kill-pane", "-t", &random_pane(random, server)?.id])
}

fn kill_window(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    tmux_action(&["kill-window", "-t", &random_pane(random, server)?.window])
}

fn kill_session(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    tmux_action(&["kill-session", "-t", &random_session(random, server)?])
}

fn kill_process(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    Some(ServerAction::KillPaneProcess { pane: random_live_pane(random, server)?.id })
}

fn respawn(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    tmux_action(&["respawn-pane", "-k", "-t", &random_pane(random, server)?.id, PROGRAM])
}

fn rename_window(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let name = random_name(random);
    tmux_action(&["rename-window", "-t", &random_pane(random, server)?.window, "--", &name])
}

fn rename_session(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let (session, name) = (random_session(random, server)?, random_free_name(random, server)?);
    tmux_action(&["rename-session", "-t", &session, "--", &name])
}

/// Renames the first session and gives its old name to the second, in one command.
fn reuse_session_name(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let (from, to) = (random_pane(random, server)?, random_pane(random, server)?);
    let free = random_free_name(random, server)?;
    if from.session == to.session {
        return None;
    }
    let first = ["rename-session", "-t", &from.session, "--", &free, ";"];
    let second = ["rename-session", "-t", &to.session, "--", &from.session_name];
    tmux_action(&[&first[..], &second[..]].concat())
}

fn select_pane_title(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let title = random.pick(&TITLES)?;
    tmux_action(&["select-pane", "-t", &random_pane(random, server)?.id, "-T", title])
}

fn program_title(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let title = random.pick(&TITLES)?.to_owned();
    Some(ServerAction::SetTitle { pane: random_live_pane(random, server)?.id, title })
}

fn move_window(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let (from, to) = (random_pane(random, server)?, random_session(random, server)?);
    tmux_action(&["move-window", "-d", "-s", &window_in_session(&from), "-t", &end_of_session(&to)])
}

fn link_window(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let (from, to) = (random_pane(random, server)?, random_session(random, server)?);
    tmux_action(&["link-window", "-d", "-s", &window_in_session(&from), "-t", &end_of_session(&to)])
}

fn unlink_window(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let is_linked = |pane: &&TmuxPaneRow| {
        server.panes().iter().any(|other| other.window == pane.window && other.session != pane.session)
    };
    let linked: Vec<TmuxPaneRow> = server.panes().iter().filter(is_linked).cloned().collect();
    tmux_action(&["unlink-window", "-t", &window_in_session(&random.pick(&linked)?)])
}

fn swap_window(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let (one, other) = (random_pane(random, server)?, random_pane(random, server)?);
    tmux_action(&["swap-window", "-d", "-s", &window_in_session(&one), "-t", &window_in_session(&other)])
}

fn swap_pane(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let (one, other) = (random_pane(random, server)?, random_pane(random, server)?);
    tmux_action(&["swap-pane", "-d", "-s", &one.id, "-t", &other.id])
}

fn break_pane(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let (pane, session) = (random_pane(random, server)?, random_session(random, server)?);
    tmux_action(&["break-pane", "-d", "-s", &pane.id, "-t", &end_of_session(&session)])
}

fn join_pane(random: &mut SeededRandom, server: &ModelServer) -> Option<ServerAction> {
    let (pane, neighbour) = (random_pane(random, server)?, random_pane(random, server)?);
    tmux_action(&["join-pane", "-d", "-s", &pane.id, "-t", &neighbour.id])
}

fn tmux_action(words: &[&str]) -> Option<ServerAction> {
    Some(ServerAction::Tmux(words.iter().map(|word| (*word).to_owned()).collect()))
}

fn panes(server: &ModelServer) -> BTreeSet<&str> {
    server.panes().iter().map(|pane| pane.id.as_str()).collect()
}

fn sessions(server: &ModelServer) -> BTreeSet<&str> {
    server.panes().iter().map(|pane| pane.session.as_str()).collect()
}

fn random_pane(random: &mut SeededRandom, server: &ModelServer) -> Option<TmuxPaneRow> {
    random.pick(server.panes())
}

fn random_live_pane(random: &mut SeededRandom, server: &ModelServer) -> Option<TmuxPaneRow> {
    let alive: Vec<TmuxPaneRow> = server.panes().iter().filter(|pane| !pane.dead).cloned().collect();
    random.pick(&alive)
}

/// Picks uniformly among sessions, regardless of their number of panes.
fn random_session(random: &mut SeededRandom, server: &ModelServer) -> Option<String> {
    let all: Vec<&str> = sessions(server).into_iter().collect();
    random.pick(&all).map(str::to_owned)
}

fn random_name(random: &mut SeededRandom) -> String {
    random.pick(&NAMES).unwrap_or(NAMES[0]).to_owned()
}

fn random_free_name(random: &mut SeededRandom, server: &ModelServer) -> Option<String> {
    let name = random_name(random);
    server.panes().iter().all(|pane| pane.session_name != name).then_some(name)
}

fn end_of_session(session: &str) -> String {
    format!("{session}:")
}

fn window_in_session(pane: &TmuxPaneRow) -> String {
    format!("{}:{}", pane.session, pane.window)
}
