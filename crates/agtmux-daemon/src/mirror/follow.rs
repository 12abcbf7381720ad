//! Watches the files of all terminals, and stores the exit code of each command in the tmux session, where scripts can
//! read it.

use std::sync::Arc;
use std::time::Duration;

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{PaneId, SessionId};
use agtmux_tmux::platform::{self, Platform, PlatformOptions, PlatformSignal, WatchToken};

use super::Mirrors;
use super::select::place;
use super::terminal::SharedTerminal;
use crate::view::MirrorPanes;

/// How often to read the files if they cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

impl Mirrors {
    /// Follows all terminals until the daemon stops.
    pub(super) async fn follow(self) {
        let platform = platform::open(PlatformOptions { pty_events: false, force_portable: false });
        let mut platform = platform
            .inspect_err(|error| tracing::warn!(%error, "cannot watch files; checking shared terminals at intervals"))
            .ok();
        loop {
            let terminals = self.terminals();
            self.0.engine.set_mirror_panes(panes_of(&terminals)).await;
            let watched = platform.as_ref().is_some_and(|platform| watch(platform, &terminals));
            // Read the events that were written before the watch began.
            terminals.iter().for_each(|terminal| self.refresh(terminal));
            self.follow_until_changed(&terminals, platform.as_mut().filter(|_| watched)).await;
            if let Some(platform) = &platform {
                (0..terminals.len()).flat_map(tokens).for_each(|token| platform.watcher.unwatch(token));
            }
        }
    }

    /// Follows these terminals until a terminal is added or removed.
    async fn follow_until_changed(&self, terminals: &[Arc<SharedTerminal>], mut platform: Option<&mut Platform>) {
        loop {
            let signal = async {
                match platform.as_mut() {
                    Some(platform) => platform.signals.recv().await,
                    None => {
                        tokio::time::sleep(POLL_INTERVAL).await;
                        Some(PlatformSignal::Overflow)
                    }
                }
            };
            tokio::select! {
                () = self.0.wake.notified() => return,
                signal = signal => match signal {
                    Some(signal) => match signal.token() {
                        Some(WatchToken(n)) => {
                            let at = usize::try_from(n / 2).ok();
                            at.and_then(|at| terminals.get(at)).into_iter().for_each(|terminal| self.refresh(terminal));
                        }
                        None => terminals.iter().for_each(|terminal| self.refresh(terminal)),
                    },
                    None => platform = None,
                },
            }
        }
    }

    fn refresh(&self, terminal: &Arc<SharedTerminal>) {
        terminal.refresh();
        if let Some(last_end) = terminal.take_unpublished_end() {
            self.write_last_code(terminal.clone(), last_end);
        }
    }

    /// Sets the variable PI_LAST_RC of the tmux session to the number and the exit code of the last command.
    fn write_last_code(&self, terminal: Arc<SharedTerminal>, (number, code): (u64, i32)) {
        let Ok(session) = terminal.spec.session.parse::<SessionId>() else { return };
        let mirrors = self.clone();
        tokio::spawn(async move {
            let _turn = mirrors.0.locks.take(format!("code {}", terminal.spec.mirror_id)).await;
            // If a later command has ended meanwhile, the code of that command must stay.
            if terminal.last_ended().is_some_and(|newest| newest > number) {
                return;
            }
            let value = format!("{number} {code}");
            let tmux = mirrors.tmux(&terminal.spec.socket);
            // The session may be gone.
            let _ = tmux.set_session_variable(terminal.server(), session.0, "PI_LAST_RC", Some(&value)).await;
        });
    }
}

/// The panes of these terminals, for the lists of panes.
fn panes_of(terminals: &[Arc<SharedTerminal>]) -> MirrorPanes {
    let mut panes = MirrorPanes::default();
    for terminal in terminals {
        if let (Ok(place), Some((pid, _))) = (place(terminal), terminal.spec.process) {
            let key = PaneKey { server: place.server, pane: PaneId(terminal.spec.pane) };
            panes.insert(key, pid, terminal.spec.mirror_id.clone());
        }
    }
    panes
}

fn watch(platform: &Platform, terminals: &[Arc<SharedTerminal>]) -> bool {
    terminals.iter().enumerate().all(|(n, terminal)| {
        let dirs = [terminal.files.dir().to_owned(), terminal.files.outputs_dir()];
        tokens(n).into_iter().zip(dirs).all(|(token, dir)| platform.watcher.watch_dir_contents(token, &dir).is_ok())
    })
}

/// The tokens of the two watches of terminal `n`: one for its events and one for its outputs.
fn tokens(n: usize) -> [WatchToken; 2] {
    let first = 2 * n as u64;
    [WatchToken(first), WatchToken(first + 1)]
}
