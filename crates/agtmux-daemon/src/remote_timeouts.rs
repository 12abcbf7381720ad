//! How long another host may be silent before it is taken to be away. All of these times are here, because they add up to one
//! promise: a host that is not there any more, however that came about, is not called `ok` for longer than [`PROMISE`].
//!
//! Each way in which a host is listened to has a sum of its own, counted from the moment in which it fell silent:
//!
//! | while | what is waited for | sum |
//! |---|---|---|
//! | its agtmux tells | [`SILENT_AFTER`], and why it ended: [`LAST_WORDS`] | 8 s |
//! | its shell is asked, and a question is under way | [`PROGRAM`] and [`TEXT_TAKES`] there, and [`ON_THE_WAY`] | 8 s |
//! | its shell is asked, and none is | [`ASKED_EVERY`], then [`PROGRAM`] and [`ON_THE_WAY`] | 8 s |
//! | another way to it is tried while it is `ok` | why the last one ended: [`LAST_WORDS`], then [`HELLO_AGAIN`] | 8 s |
//!
//! None of it depends on the settings. A host that is not `ok` gets longer to say its first word.
//!
//! [`TEXT_TAKES`]: agtmux_tmux::host::TEXT_TAKES
//! [`ON_THE_WAY`]: agtmux_tmux::host::ON_THE_WAY

use std::time::Duration;

use agtmux_core::target::TargetHealth;

/// The promise. The documents give it too.
#[cfg(test)]
const MAX_DETECTION_TIME: Duration = Duration::from_secs(10);

/// A host with agtmux beats every three seconds. One that misses two beats, and a second more, is not there.
pub(crate) const SILENCE_TIMEOUT: Duration = Duration::from_secs(7);
/// One that takes nothing of what is written to it for so long is stuck, whatever it says.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// For ssh to end and to have said why, once its output has ended.
pub(crate) const SSH_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// What one program may take on a host that is asked through its shell, such as one question to a tmux server.
pub(crate) const PROGRAM_TIMEOUT: Duration = Duration::from_secs(3);
/// Its shell is asked something at least this often, if only whether it is there.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(3);

/// From the call of ssh to the first word: a login, and perhaps the start of a daemon.
const HELLO_TIMEOUT: Duration = Duration::from_secs(9);
/// The same for a host that is said to be well. One that needs longer is tried again, and not called well meanwhile.
const HELLO_TIMEOUT_WHEN_OK: Duration = Duration::from_secs(7);

/// How long a host that fares like this has for its first word.
pub(crate) fn hello_timeout(health: TargetHealth) -> Duration {
    if health == TargetHealth::Ok { HELLO_TIMEOUT_WHEN_OK } else { HELLO_TIMEOUT }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_api::collect::HEARTBEAT_INTERVAL;
    use agtmux_tmux::host::{MAX_TEXT_ALLOWANCE, ROUND_TRIP_ALLOWANCE};

    /// What a busy machine may add to any of them.
    const MARGIN: Duration = Duration::from_millis(1500);

    #[test]
    fn however_a_host_falls_silent_it_is_known_within_ten_seconds() {
        let sums = [
            ("its agtmux tells", SILENCE_TIMEOUT + SSH_EXIT_TIMEOUT),
            ("a question is under way", PROGRAM_TIMEOUT + MAX_TEXT_ALLOWANCE + ROUND_TRIP_ALLOWANCE),
            ("no question is under way", PING_INTERVAL + PROGRAM_TIMEOUT + ROUND_TRIP_ALLOWANCE),
            ("another way is tried", SSH_EXIT_TIMEOUT + hello_timeout(TargetHealth::Ok)),
        ];
        for (what, sum) in sums {
            assert!(sum + MARGIN < MAX_DETECTION_TIME, "{what}: {sum:?}");
        }
        // One beat that is lost, or late, is no silence.
        assert!(SILENCE_TIMEOUT > 2 * HEARTBEAT_INTERVAL, "a beat may be late");
        assert!(WRITE_TIMEOUT < SILENCE_TIMEOUT, "it is in none of the sums");
        assert!(hello_timeout(TargetHealth::Down) > hello_timeout(TargetHealth::Ok));
    }
}
