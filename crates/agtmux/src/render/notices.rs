use agtmux_api::wire::TargetError;
use agtmux_core::fleet::OutageCode;

use crate::message::CliMessage;

/// The messages for targets and servers that the daemon could not read. If a host is unreachable, there is one message
/// for the host and none for its servers.
pub(crate) fn target_errors(errors: &[TargetError]) -> impl Iterator<Item = CliMessage> {
    let is_down = |target: &str| {
        let mut of_target = errors.iter().filter(|error| error.target == target);
        of_target.any(|error| error.server.is_none() && error.code == OutageCode::TargetUnreachable)
    };
    let is_repeated = move |error: &&TargetError| {
        error.server.is_some() && error.code == OutageCode::TargetUnreachable && is_down(&error.target)
    };
    errors.iter().filter(move |error| !is_repeated(error)).map(target_error)
}

/// The message for a target, or for one of its servers, that the daemon could not read.
fn target_error(error: &TargetError) -> CliMessage {
    let location = match &error.server {
        Some(server) => format!("{}@{server}", error.target),
        None => error.target.clone(),
    };
    let message = CliMessage::new(format!("{location}: {}", error.message));
    let message = message.because("showing the last known state");
    if error.hint.is_empty() { message } else { message.hint(&error.hint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_down_is_reported_once() {
        let error = |target: &str, server: Option<&str>, code| TargetError {
            target: target.into(),
            server: server.map(str::to_owned),
            code,
            message: "no answer".into(),
            hint: String::new(),
            since: jiff::Timestamp::UNIX_EPOCH,
        };
        let down = OutageCode::TargetUnreachable;
        let errors = [
            error("vm1", None, down),
            error("vm1", Some("default"), down),
            error("vm1", Some("work"), OutageCode::TmuxTooOld),
            error("vm2", Some("default"), down),
        ];
        let shown: Vec<String> = target_errors(&errors).map(|message| message.headline()).collect();
        assert_eq!(shown, ["vm1: no answer", "vm1@work: no answer", "vm2@default: no answer"]);
    }

    #[test]
    fn the_message_names_the_server_the_error_and_the_hint() {
        let error = TargetError {
            target: "host".into(),
            server: Some("default".into()),
            code: OutageCode::ServerNotResponding,
            message: "tmux did not answer".into(),
            hint: "tmux kill-server".into(),
            since: jiff::Timestamp::UNIX_EPOCH,
        };
        let text = target_error(&error).to_string();
        assert!(text.starts_with("agtmux: host@default: tmux did not answer\n"), "{text}");
        assert!(text.ends_with("  try: tmux kill-server\n"), "{text}");
    }
}
