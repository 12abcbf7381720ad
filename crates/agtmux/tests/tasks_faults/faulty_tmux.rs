//! A stage on which tmux, as the daemon calls it, can be told to fail.

use std::fs;

use agtmux_testkit::wait_until;

use crate::agtmux::{SOON, configure, script, start, stop};
use crate::stage::Stage;

/// Does what tmux does, and:
/// - notes each look at a session when it is over;
/// - refuses to show one while `blind` is there, shows none as dead while `undead` is, and says of none how it ended while `mute` is;
/// - says that there is no server while `lost` is there, until a session is to be made;
/// - ends the daemon before or after the call that `kill-before` or `kill-after` counts down to.
const FAULTY_TMUX: &str = r#"
count() {
    [ -e "$HOME/$1" ] || return 1
    printf x >>"$HOME/calls"
    [ "$(wc -c <"$HOME/calls")" -ge "$(cat "$HOME/$1")" ] && rm "$HOME/$1" 2>/dev/null
}
case "$*" in
*new-session*) rm -f "$HOME/lost" ;;
*"list-panes -s"*)
    if [ -e "$HOME/lost" ]; then
        echo "lost server" >&2
        exit 1
    fi
    if [ -e "$HOME/blind" ]; then
        echo refused >>"$HOME/refused"
        echo "server is on fire" >&2
        exit 1
    fi ;;
esac
hidden=
[ -e "$HOME/undead" ] && hidden='s/#{pane_dead}/0/'
[ -e "$HOME/mute" ] && hidden='s/#{pane_dead_status}//;s/#{pane_dead_signal}//'
if [ -n "$hidden" ]; then
    for word; do
        shift
        case $word in
        *'#{pane_dead}'*) word=$(printf %s "$word" | sed "$hidden") ;;
        esac
        set -- "$@" "$word"
    done
fi
if count kill-before; then kill -9 $PPID; exit 1; fi
tmux "$@"
code=$?
if count kill-after; then kill -9 $PPID; fi
case "$*" in
*task-exec*) if rm "$HOME/kill-after-launch" 2>/dev/null; then kill -9 $PPID; fi ;;
*"list-panes -s"*) echo shown >>"$HOME/shown" ;;
esac
exit $code
"#;

/// With these settings.
pub(crate) fn start_with_settings(settings: &str) -> Stage {
    let stage = Stage::new();
    stop(&stage.world);
    configure(&stage.world, settings);
    start(&stage.world);
    stage
}

pub(crate) fn start_with_faulty_tmux() -> Stage {
    let stage = Stage::new();
    stop(&stage.world);
    let program = script(&stage.world, "faulty-tmux", FAULTY_TMUX);
    configure(&stage.world, &format!("[tmux]\nprogram = \"{}\"\n", program.display()));
    start(&stage.world);
    stage
}

/// Tells the stand-in for tmux something.
pub(crate) fn set_fault(stage: &Stage, what: &str, value: &str) {
    fs::write(stage.world.home().join(what), value).expect("the world is writable");
}

pub(crate) fn clear_fault(stage: &Stage, what: &str) -> bool {
    fs::remove_file(stage.world.home().join(what)).is_ok()
}

/// How often it has said something.
pub(crate) fn count_lines(stage: &Stage, what: &str) -> usize {
    fs::read_to_string(stage.world.home().join(what)).unwrap_or_default().lines().count()
}

#[track_caller]
pub(crate) fn wait_for_more_lines(stage: &Stage, what: &str, more: usize) {
    let before = count_lines(stage, what);
    wait_until(&format!("{more} more '{what}'"), SOON, || count_lines(stage, what) >= before + more);
}

/// Returns when there is no daemon any more.
#[track_caller]
pub(crate) fn wait_for_daemon_death(stage: &Stage) {
    wait_until("the daemon is dead", SOON, || stage.world.daemons().is_empty());
}
