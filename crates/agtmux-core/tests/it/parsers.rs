//! Property tests of all parsers of external input: no parser panics, and errors name the rejected input.

use agtmux_core::evidence::{Claim, DialogKind, Source};
use agtmux_core::ids::{PaneId, SessionId, WindowId};
use agtmux_core::refs::{PaneRef, RefError};
use agtmux_core::resolver::{ResolverInput, StateResolver};
use agtmux_core::runtime::RuntimeId;
use agtmux_core::state::{ReasonCode, State};
use proptest::prelude::*;

/// Generates text that is often almost valid.
fn almost_valid(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![3 => proptest::sample::select(words).prop_map(str::to_owned), 1 => "\\PC{0,4}", 1 => any::<String>()];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn any_ref() -> impl Strategy<Value = PaneRef> {
    let path_parts =
        (any::<String>(), proptest::option::of(any::<String>()), any::<String>(), any::<u32>(), any::<u32>());
    prop_oneof![
        "[A-Za-z0-9-]{1,40}".prop_map(|id| PaneRef::Runtime(RuntimeId::from_stored(id))),
        any::<u32>().prop_map(|n| PaneRef::Pane(PaneId(n))),
        any::<u32>().prop_map(|n| PaneRef::Window(WindowId(n))),
        ("[a-z ]{1,9}[0-9]", "[a-z0-9.: ]{1,20}").prop_map(|(session, place)| PaneRef::Place { session, place }),
        "[A-Za-z0-9_.-]{1,20}".prop_map(PaneRef::Agent),
        path_parts.prop_map(|(target, server, session, window, pane)| PaneRef::Path {
            target,
            server,
            session,
            window: WindowId(window),
            pane: PaneId(pane),
        }),
    ]
}

proptest! {
    #[test]
    fn a_reference_parses_or_the_error_quotes_it(
        text in almost_valid(&["runtime:", "pane:", "host", "@", "/", "%", "%3", "@1", "%2F", "%zz", "é", "default", "claude"]),
    ) {
        match text.parse::<PaneRef>() {
            Ok(reference) => prop_assert_eq!(reference.to_string().parse::<PaneRef>(), Ok(reference)),
            Err(error) => prop_assert_eq!(error, RefError::Invalid(text)),
        }
    }

    #[test]
    fn a_printed_reference_parses_back(reference in any_ref()) {
        prop_assert_eq!(reference.to_string().parse::<PaneRef>(), Ok(reference));
    }

    #[test]
    fn a_tmux_id_parses_exactly_or_is_rejected(text in almost_valid(&["%", "@", "$", "0", "7", "4294967295", "-", "+", " "])) {
        if let Ok(id) = text.parse::<PaneId>() {
            prop_assert!(text.starts_with('%') && text[1..].bytes().all(|b| b.is_ascii_digit()));
            prop_assert_eq!(text[1..].parse(), Ok(id.0));
        }
        for error in [
            text.parse::<PaneId>().err(),
            text.parse::<WindowId>().err(),
            text.parse::<SessionId>().err(),
        ].into_iter().flatten() {
            prop_assert!(error.to_string().contains("%N"));
        }
    }

    #[test]
    fn a_wire_enum_name_parses_exactly_or_the_error_lists_all_names(
        text in almost_valid(&["hook", "poller", "screen", "running", "idle", "turn", "dialog", "approval", " ", "Hook"]),
    ) {
        match Source::parse(&text) {
            Ok(source) => prop_assert!(source.as_str() == text || text == "poller"),
            Err(error) => prop_assert!(error.to_string().contains("hook, notify, wrapper")),
        }
        if let Ok(state) = text.parse::<State>() {
            prop_assert_eq!(state.as_str(), &text);
        }
        let _ = (text.parse::<Claim>(), text.parse::<DialogKind>(), text.parse::<ReasonCode>());
    }

    #[test]
    fn damaged_inputs_and_checkpoints_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let input = ResolverInput::Ended { runtime: RuntimeId::from_stored("r".into()) };
        let engine = StateResolver::new(jiff::SignedDuration::from_secs(120));
        for valid in [serde_json::to_vec(&input), serde_json::to_vec(&engine)] {
            let mut bytes = valid.expect("own types serialize");
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = (serde_json::from_slice::<ResolverInput>(&bytes), serde_json::from_slice::<StateResolver>(&bytes));
            let _ = serde_json::from_slice::<ResolverInput>(&bytes[..at]);
        }
    }
}
