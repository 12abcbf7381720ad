use proptest::prelude::*;

use super::{NONCE, command, mark, prompt, track};
use crate::mirror::{MirrorShell, OutputCleaner, ShellEvent};

/// Output that tries to look like marks: other nonces, old numbers, unfinished sequences, long ones.
fn hostile_output() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(mark("D;0;agt=other;2;r=1")),
        Just(mark("D;0")),
        Just(mark(&format!("D;0;agt={NONCE};1;r=1"))),
        Just(mark(&format!("A;agt={NONCE};1;q='/'"))),
        Just(mark(&format!("C;agt={NONCE};1"))),
        Just("\x1b]133;D;0;agt=".to_owned()),
        Just("\x1b]0;title".to_owned()),
        Just("\x1b[1;31m".to_owned()),
        Just("\x1b".to_owned()),
        Just("\x1b]133;".to_owned()),
        Just("\x07".to_owned()),
        "[ -~]{0,20}\r\n",
        "\\PC{0,5}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// The output without copies of earlier marks that have the right nonce. The tracker drops these copies, and no
/// terminal shows them.
fn without_copies(output: &str) -> String {
    ["D;0;agt=N0;1;r=1", "A;agt=N0;1;q='/'", "C;agt=N0;1"]
        .iter()
        .fold(output.to_owned(), |output, copy| output.replace(&mark(copy), ""))
}

proptest! {
    #[test]
    fn the_result_does_not_depend_on_how_the_stream_is_split(
        first in hostile_output(), second in hostile_output(), lengths in proptest::collection::vec(1_usize..40, 1..20),
    ) {
        let stream = [prompt(1), command(1, &first, 0), prompt(2), command(2, &second, 1), prompt(3)].concat();
        prop_assert_eq!(track(stream.as_bytes(), &lengths), track(stream.as_bytes(), &[]));
    }

    #[test]
    fn output_cannot_end_its_command(output in hostile_output(), code in 0_i32..256) {
        let stream = [prompt(1), command(1, "", 0), prompt(2), command(2, &output, code), prompt(3)].concat();
        let tracked = track(stream.as_bytes(), &[]);
        let ends: Vec<_> = tracked.events.iter().filter_map(|event| match event {
            ShellEvent::Ended { number, code, .. } => Some((*number, *code)),
            _ => None,
        }).collect();
        prop_assert_eq!(ends, vec![(1, Some(0)), (2, Some(code))]);
        prop_assert_eq!(String::from_utf8_lossy(&tracked.outputs[1]).into_owned(), without_copies(&output));
    }

    #[test]
    fn any_bytes_are_accepted(bytes in proptest::collection::vec(any::<u8>(), 0..400), length in 1_usize..9) {
        prop_assert_eq!(track(&bytes, &[length]), track(&bytes, &[]));
    }

    #[test]
    fn line_endings_are_undone_for_any_output(bytes in proptest::collection::vec(any::<u8>(), 0..200), length in 1_usize..9) {
        let shown: Vec<u8> = bytes.iter().flat_map(|byte| match byte {
            b'\n' => b"\r\n".to_vec(),
            byte => vec![*byte],
        }).collect();
        for shell in [MirrorShell::Bash, MirrorShell::Zsh] {
            let mut cleaner = OutputCleaner::new(shell, true);
            let mut cleaned: Vec<u8> = shown.chunks(length).flat_map(|chunk| cleaner.push(chunk)).collect();
            cleaned.extend(cleaner.finish());
            prop_assert_eq!(&cleaned, &bytes);
        }
    }

    #[test]
    fn cleaning_does_not_depend_on_how_the_output_is_split(
        text in "([a-c\r]{0,4}(\r\n|\u{1b}\\[\\?1049[hl]|\u{1b}\\[K)){0,8}[a-c\r]{0,3}", length in 1_usize..9,
    ) {
        for shell in [MirrorShell::Bash, MirrorShell::Fish] {
            let clean = |length: usize| {
                let mut cleaner = OutputCleaner::new(shell, false);
                let mut cleaned: Vec<u8> = text.as_bytes().chunks(length).flat_map(|chunk| cleaner.push(chunk)).collect();
                cleaned.extend(cleaner.finish());
                cleaned
            };
            prop_assert_eq!(clean(length), clean(10_000));
        }
    }
}
