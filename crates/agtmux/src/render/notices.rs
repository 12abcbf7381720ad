use agtmux_api::wire::TargetError;

use crate::message::CliMessage;

/// The message for a target that could not be read.
pub(crate) fn target_error(error: &TargetError) -> CliMessage {
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
    fn the_message_names_the_server_the_error_and_the_hint() {
        let error = TargetError {
            target: "host".into(),
            server: Some("default".into()),
            code: agtmux_core::fleet::OutageCode::ServerNotResponding,
            message: "tmux did not answer".into(),
            hint: "tmux kill-server".into(),
            since: jiff::Timestamp::UNIX_EPOCH,
        };
        let text = target_error(&error).to_string();
        assert!(text.starts_with("agtmux: host@default: tmux did not answer\n"), "{text}");
        assert!(text.ends_with("  try: tmux kill-server\n"), "{text}");
    }
}
