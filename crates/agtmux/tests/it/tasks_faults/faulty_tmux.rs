//! Starts the daemon with a tmux program whose failures a test controls.

use std::fs;

use agtmux_testkit::agtmux::{SOON, configure, script, start, stop};
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::wait_until;

/// A script that runs tmux. These control files in the home directory cause failures:
/// - `blind`: listings fail, and each adds a line to `refused`;
/// - `undead`: no pane is shown as dead;
/// - `mute`: dead panes show no exit code or signal;
/// - `lost`: listings fail as if there were no server, until a session is created;
/// - `kill-before` and `kill-after`: the daemon is killed before or after the tmux call whose number is in the file;
/// - `kill-after-launch`: the daemon is killed after the call that launches a task.
///
/// Each listing that is not made to fail adds a line to `shown` when it has finished.
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

/// Starts the daemon with these settings.
pub(crate) fn start_with_settings(settings: &str) -> TaskFixture {
    let fixture = TaskFixture::new();
    stop(&fixture.world);
    configure(&fixture.world, settings);
    start(&fixture.world);
    fixture
}

pub(crate) fn start_with_faulty_tmux() -> TaskFixture {
    let fixture = TaskFixture::new();
    stop(&fixture.world);
    let program = script(&fixture.world, "faulty-tmux", FAULTY_TMUX);
    configure(&fixture.world, &format!("[tmux]\nprogram = \"{}\"\n", program.display()));
    start(&fixture.world);
    fixture
}

/// Writes a control file of the faulty tmux.
pub(crate) fn set_fault(fixture: &TaskFixture, what: &str, value: &str) {
    fs::write(fixture.world.home().join(what), value).expect("the world is writable");
}

pub(crate) fn clear_fault(fixture: &TaskFixture, what: &str) -> bool {
    fs::remove_file(fixture.world.home().join(what)).is_ok()
}

/// The number of lines that the faulty tmux wrote to this file.
pub(crate) fn count_lines(fixture: &TaskFixture, what: &str) -> usize {
    fs::read_to_string(fixture.world.home().join(what)).unwrap_or_default().lines().count()
}

#[track_caller]
pub(crate) fn wait_for_more_lines(fixture: &TaskFixture, what: &str, more: usize) {
    let before = count_lines(fixture, what);
    wait_until(&format!("{more} more '{what}'"), SOON, || count_lines(fixture, what) >= before + more);
}

/// Waits until no daemon runs.
#[track_caller]
pub(crate) fn wait_for_daemon_death(fixture: &TaskFixture) {
    wait_until("the death of the daemon", SOON, || fixture.world.daemons().is_empty());
}
