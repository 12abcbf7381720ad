//! Words that a shell takes as they are, and bytes that it prints as they are.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Longer words than this may not reach a `printf` that is a program of its own.
const CHUNK: usize = 16 * 1024;

/// One word for sh, bash, zsh and fish. fish takes a backslash between quotes for more than a backslash, so it stands outside
/// of them, as a quote does for the others.
pub fn quoted(word: &OsStr) -> Vec<u8> {
    let mut text = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => text.extend(b"'\\''"),
            b'\\' => text.extend(b"'\\\\'"),
            byte => text.push(byte),
        }
    }
    text.push(b'\'');
    text
}

/// A command line of these words.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> Vec<u8> {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(&b' ')
}

/// A command that prints these bytes and nothing else. A here-document would add a newline, lose a NUL, and in some shells
/// change what looks like a mark of their own; an escape of `printf` does none of that.
pub(crate) fn print_command(bytes: &[u8]) -> Vec<u8> {
    let mut script = b"{ :".to_vec();
    for chunk in bytes.chunks(CHUNK) {
        script.extend(b"; printf '");
        for (n, &byte) in chunk.iter().enumerate() {
            let is_plain = byte == b'\n' || byte == b' ' || byte.is_ascii_graphic();
            match byte {
                b'%' => script.extend(b"%%"),
                b'\\' | b'\'' => script.extend(octal(byte)),
                // It would be taken for an option.
                b'-' if n == 0 => script.extend(octal(byte)),
                byte if is_plain => script.push(byte),
                byte => script.extend(octal(byte)),
            }
        }
        script.push(b'\'');
    }
    script.extend(b"; }");
    script
}

fn octal(byte: u8) -> [u8; 4] {
    [b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsString;
    use std::io::Write;
    use std::os::unix::ffi::OsStringExt;
    use std::process::{Command, Stdio};

    /// Those that are not installed are left out; `scripts/ensure-tools shells` installs them.
    fn shells() -> Vec<&'static str> {
        let works = |shell: &&str| Command::new(shell).args(["-c", ":"]).stderr(Stdio::null()).status().is_ok();
        ["sh", "dash", "bash", "zsh", "fish", "mksh", "busybox"].into_iter().filter(works).collect()
    }

    fn said(shell: &str, script: &[u8]) -> Vec<u8> {
        let script = OsString::from_vec(script.to_vec());
        let command = &mut named(shell);
        command.arg("-c").arg(script).stdin(Stdio::null()).output().expect("it runs").stdout
    }

    /// The same with a script that it reads as it comes, as long as it may be.
    fn said_to(shell: &str, script: &[u8]) -> Vec<u8> {
        let mut child = named(shell).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        child.stdin.take().expect("piped").write_all(script).expect("it reads");
        child.wait_with_output().expect("it ends").stdout
    }

    fn named(shell: &str) -> Command {
        let mut command = Command::new(shell);
        if shell == "busybox" {
            command.arg("sh");
        }
        command
    }

    const HOSTILE: [&[u8]; 18] = [
        b"",
        b"-n",
        b"--",
        b"'",
        b"\\",
        b"\\'",
        b"'\\''",
        b"\n",
        b"a\nb\n\n",
        b"$(touch x)",
        b"`touch x`",
        b"a;b && c | d > e",
        b"\"$HOME\" ~ * ? [a] {a,b} !x #y %z",
        b"\xff\xfe\xc3\x28",
        "ü日本 \u{1F600} \u{202e}".as_bytes(),
        b"\x01\x7f\x80\x81\x88",
        b"\t\x1b[31m",
        b"(a) <b> ^c =ls",
    ];

    #[test]
    fn every_shell_takes_hostile_words_as_they_are() {
        for shell in shells() {
            for word in HOSTILE {
                // A marker keeps an empty word and a newline at the end from being overlooked.
                let line = [b"printf '<%s>' ".to_vec(), quoted(OsStr::from_bytes(word))].concat();
                let told = said(shell, &line);
                assert_eq!(told, [b"<", word, b">"].concat(), "{shell}: {}", line.escape_ascii());
            }
        }
        assert!(!std::path::Path::new("x").exists(), "nothing was run");
    }

    #[test]
    fn bytes_are_printed_to_the_last_one() {
        let all: Vec<u8> = (0..=255).chain(0..=255).collect();
        let long: Vec<u8> = all.iter().copied().cycle().take(3 * CHUNK + 7).collect();
        for shell in shells().into_iter().filter(|shell| *shell != "fish") {
            for bytes in [&b""[..], b"-x", b"%d %%", b"\n\n", b"a\n", &all, &long] {
                assert!(said_to(shell, &[print_command(bytes), b"\n".to_vec()].concat()) == bytes, "{shell}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("AGTMUX_SOAK").is_some() { 3000 } else { 24 }))]

        /// Several words at once, each of any bytes that a word can have.
        #[test]
        fn any_words_survive_every_shell(
            words in proptest::collection::vec(proptest::collection::vec(1_u8..=255, 0..24), 1..5),
        ) {
            let printf = [OsStr::new("printf"), OsStr::new("<%s>")];
            let all = printf.into_iter().chain(words.iter().map(|word| OsStr::from_bytes(word)));
            let line = command_line(all);
            let expected: Vec<u8> = words.iter().flat_map(|word| [b"<", word.as_slice(), b">"].concat()).collect();
            for shell in shells() {
                prop_assert_eq!(said(shell, &line), &expected[..], "{}", shell);
            }
        }

        #[test]
        fn any_bytes_are_printed(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for shell in shells().into_iter().filter(|shell| *shell != "fish") {
                prop_assert_eq!(said(shell, &print_command(&bytes)), &bytes[..], "{}", shell);
            }
        }
    }
}
