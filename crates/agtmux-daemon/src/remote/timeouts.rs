//! Timeouts of remote hosts. They are defined in one place, because together they guarantee that a host that has
//! disappeared is not reported as `ok` for longer than `MAX_DETECTION_TIME`.
//!
//! Each kind of connection has its own sum, counted from the moment when the host falls silent:
//!
//! | connection | timeouts | sum |
//! |---|---|---|
//! | native | [`SILENCE_TIMEOUT`], then [`SSH_EXIT_TIMEOUT`] | 8 s |
//! | shell, running a batch | [`PROGRAM_TIMEOUT`] and [`MAX_TEXT_ALLOWANCE`], then [`ROUND_TRIP_ALLOWANCE`] | 8 s |
//! | shell, idle | [`PING_INTERVAL`], then [`PROGRAM_TIMEOUT`] and [`ROUND_TRIP_ALLOWANCE`] | 8 s |
//! | reconnecting while `ok` | [`SSH_EXIT_TIMEOUT`], then [`HELLO_TIMEOUT_WHEN_OK`] | 8 s |
//!
//! The timeouts do not depend on the settings. A host that is not `ok` gets more time for its first message.
//!
//! [`MAX_TEXT_ALLOWANCE`]: agtmux_tmux::host::MAX_TEXT_ALLOWANCE
//! [`ROUND_TRIP_ALLOWANCE`]: agtmux_tmux::host::ROUND_TRIP_ALLOWANCE

use std::time::Duration;

use agtmux_core::target::TargetHealth;

/// The longest time that a lost host may still be shown as `ok`, according to the documentation.
#[cfg(test)]
const MAX_DETECTION_TIME: Duration = Duration::from_secs(10);

/// A host with agtmux sends a heartbeat every three seconds. The host counts as gone after two missed heartbeats and
/// one second.
pub(crate) const SILENCE_TIMEOUT: Duration = Duration::from_secs(7);
/// If bytes wait to be written and the host reads none of them for this long, the host counts as stuck.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// After ssh has closed its output, ssh gets this long to exit and to print the reason.
pub(crate) const SSH_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The timeout of a relayed action. Long, because the remote daemon may wait for other actions on the same pane.
pub(super) const ACTION_TIMEOUT: Duration = Duration::from_secs(100);
/// The timeout of a relayed action that only reads.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The timeout of one program on an agentless host, such as one tmux call.
pub(crate) const PROGRAM_TIMEOUT: Duration = Duration::from_secs(3);
/// An idle shell gets a ping after this time.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(3);

/// The longest time from the start of ssh to the first message. It includes a login, and possibly the start of a
/// daemon.
const HELLO_TIMEOUT: Duration = Duration::from_secs(9);
/// The same limit while the host counts as `ok`. A host that needs longer is no longer `ok`, and is tried again.
const HELLO_TIMEOUT_WHEN_OK: Duration = Duration::from_secs(7);

/// The timeout of the first message, by the current health of the host.
pub(crate) fn hello_timeout(health: TargetHealth) -> Duration {
    if health == TargetHealth::Ok { HELLO_TIMEOUT_WHEN_OK } else { HELLO_TIMEOUT }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_api::host_protocol::HEARTBEAT_INTERVAL;
    use agtmux_tmux::host::{MAX_TEXT_ALLOWANCE, ROUND_TRIP_ALLOWANCE};

    /// Slack for a busy machine.
    const MARGIN: Duration = Duration::from_millis(1500);

    #[test]
    fn a_silent_host_is_detected_within_ten_seconds() {
        let sums = [
            ("native", SILENCE_TIMEOUT + SSH_EXIT_TIMEOUT),
            ("shell, running a batch", PROGRAM_TIMEOUT + MAX_TEXT_ALLOWANCE + ROUND_TRIP_ALLOWANCE),
            ("shell, idle", PING_INTERVAL + PROGRAM_TIMEOUT + ROUND_TRIP_ALLOWANCE),
            ("reconnecting while ok", SSH_EXIT_TIMEOUT + hello_timeout(TargetHealth::Ok)),
        ];
        for (what, sum) in sums {
            assert!(sum + MARGIN < MAX_DETECTION_TIME, "{what}: {sum:?}");
        }
        // One late or lost heartbeat must not count as silence.
        assert!(SILENCE_TIMEOUT > 2 * HEARTBEAT_INTERVAL, "one late heartbeat is allowed");
        assert!(WRITE_TIMEOUT < SILENCE_TIMEOUT, "the write timeout is not part of the sums");
        assert!(hello_timeout(TargetHealth::Down) > hello_timeout(TargetHealth::Ok));
    }
}
