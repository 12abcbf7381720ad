use agtmux_api::wire::TargetError;

use crate::message::CliMessage;

/// Something that could not be read, and what to do about it.
pub(crate) fn target_error(error: &TargetError) -> CliMessage {
    let place = match &error.server {
        Some(server) => format!("{}@{server}", error.target),
        None => error.target.clone(),
    };
    let message = CliMessage::new(format!("{place}: {}", error.message));
    let message = message.because("what is shown of it is what was last known");
    if error.hint.is_empty() { message } else { message.hint(&error.hint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_the_fault_and_the_remedy() {
        let error = TargetError {
            target: "host".into(),
            server: Some("default".into()),
            code: agtmux_core::fleet::OutageCode::ServerNotResponding,
            message: "tmux did not answer".into(),
            hint: "tmux kill-server".into(),
            since: jiff::Timestamp::UNIX_EPOCH,
        };
        let told = target_error(&error).to_string();
        assert!(told.starts_with("agtmux: host@default: tmux did not answer\n"), "{told}");
        assert!(told.ends_with("  try: tmux kill-server\n"), "{told}");
    }
}
