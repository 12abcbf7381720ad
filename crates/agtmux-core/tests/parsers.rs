//! Whatever comes from outside: no parser of it panics, and each says what it could not read.

use agtmux_core::evidence::{Claim, DialogKind, Source};
use agtmux_core::ids::{PaneId, SessionId, WindowId};
use agtmux_core::refs::{PaneRef, RefError};
use agtmux_core::resolver::{ResolverInput, StateResolver};
use agtmux_core::runtime::RuntimeId;
use agtmux_core::state::{ReasonCode, State};
use proptest::prelude::*;

/// Text that is nearly right more often than chance would have it.
fn nearly(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![3 => proptest::sample::select(words).prop_map(str::to_owned), 1 => "\\PC{0,4}", 1 => any::<String>()];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn any_ref() -> impl Strategy<Value = PaneRef> {
    let place = (any::<String>(), proptest::option::of(any::<String>()), any::<String>(), any::<u32>(), any::<u32>());
    prop_oneof![
        "[A-Za-z0-9-]{1,40}".prop_map(|id| PaneRef::Runtime(RuntimeId::from_stored(id))),
        any::<u32>().prop_map(|n| PaneRef::Pane(PaneId(n))),
        "[A-Za-z0-9_.-]{1,20}".prop_map(PaneRef::Agent),
        place.prop_map(|(target, server, session, window, pane)| PaneRef::Path {
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
    fn a_reference_is_read_or_refused_by_its_own_words(
        text in nearly(&["runtime:", "pane:", "host", "@", "/", "%", "%3", "@1", "%2F", "%zz", "é", "default", "claude"]),
    ) {
        match text.parse::<PaneRef>() {
            Ok(reference) => prop_assert_eq!(reference.to_string().parse::<PaneRef>(), Ok(reference)),
            Err(error) => prop_assert_eq!(error, RefError::Invalid(text)),
        }
    }

    #[test]
    fn a_reference_that_is_printed_reads_back(reference in any_ref()) {
        prop_assert_eq!(reference.to_string().parse::<PaneRef>(), Ok(reference));
    }

    #[test]
    fn an_id_of_tmux_is_read_exactly_or_refused(text in nearly(&["%", "@", "$", "0", "7", "4294967295", "-", "+", " "])) {
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
    fn a_word_of_a_closed_set_is_read_exactly_or_refused_with_the_set(
        text in nearly(&["hook", "poller", "screen", "running", "idle", "turn", "dialog", "approval", " ", "Hook"]),
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
    fn a_damaged_input_or_checkpoint_is_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let input = ResolverInput::Ended { runtime: RuntimeId::from_stored("r".into()) };
        let engine = StateResolver::new(jiff::SignedDuration::from_secs(120));
        for sound in [serde_json::to_vec(&input), serde_json::to_vec(&engine)] {
            let mut bytes = sound.expect("our own types serialise");
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = (serde_json::from_slice::<ResolverInput>(&bytes), serde_json::from_slice::<StateResolver>(&bytes));
            let _ = serde_json::from_slice::<ResolverInput>(&bytes[..at]);
        }
    }
}
