//! Quotes words for shells, and builds shell commands that print exact bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The maximum size of one `printf` argument. A longer argument could fail on hosts where `printf` is an external
/// program.
const CHUNK: usize = 16 * 1024;

/// Quotes one word for sh, bash, zsh and fish. A single quote in the word is placed outside the quotes, because
/// sh cannot escape it inside. A backslash is placed outside too, because fish interprets it inside.
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

/// A command line that consists of these words, quoted.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> Vec<u8> {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(&b' ')
}

/// A shell command that prints exactly these bytes. It uses `printf` with escapes. A here-document would add a newline
/// and lose NUL bytes, and some shells would modify its text.
pub(crate) fn print_command(bytes: &[u8]) -> Vec<u8> {
    let mut script = b"{ :".to_vec();
    for chunk in bytes.chunks(CHUNK) {
        script.extend(b"; printf '");
        for (n, &byte) in chunk.iter().enumerate() {
            let is_plain = byte == b'\n' || byte == b' ' || byte.is_ascii_graphic();
            match byte {
                b'%' => script.extend(b"%%"),
                b'\\' | b'\'' => script.extend(octal(byte)),
                // A leading dash would be read as an option.
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

    /// The shells that these tests use, if they are installed. `scripts/ensure-tools shells` installs the missing ones.
    fn shells() -> Vec<&'static str> {
        let works = |shell: &&str| Command::new(shell).args(["-c", ":"]).stderr(Stdio::null()).status().is_ok();
        ["sh", "dash", "bash", "zsh", "fish", "mksh", "busybox"].into_iter().filter(works).collect()
    }

    fn run_script(shell: &str, script: &[u8]) -> Vec<u8> {
        let script = OsString::from_vec(script.to_vec());
        let command = &mut shell_command(shell);
        command.arg("-c").arg(script).stdin(Stdio::null()).output().expect("the process runs").stdout
    }

    /// Like `run_script`, but passes the script on stdin, where its length is not limited.
    fn run_script_on_stdin(shell: &str, script: &[u8]) -> Vec<u8> {
        let mut child =
            shell_command(shell).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the process runs");
        child.stdin.take().expect("piped").write_all(script).expect("the shell reads its stdin");
        child.wait_with_output().expect("the process ends").stdout
    }

    fn shell_command(shell: &str) -> Command {
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
    fn every_shell_reads_hostile_words_unchanged() {
        for shell in shells() {
            for word in HOSTILE {
                // The brackets make an empty word and a trailing newline visible.
                let line = [b"printf '<%s>' ".to_vec(), quoted(OsStr::from_bytes(word))].concat();
                let printed = run_script(shell, &line);
                assert_eq!(printed, [b"<", word, b">"].concat(), "{shell}: {}", line.escape_ascii());
            }
        }
        assert!(!std::path::Path::new("x").exists(), "no word was executed");
    }

    #[test]
    fn print_command_prints_exact_bytes() {
        let all: Vec<u8> = (0..=255).chain(0..=255).collect();
        let long: Vec<u8> = all.iter().copied().cycle().take(3 * CHUNK + 7).collect();
        for shell in shells().into_iter().filter(|shell| *shell != "fish") {
            for bytes in [&b""[..], b"-x", b"%d %%", b"\n\n", b"a\n", &all, &long] {
                assert!(
                    run_script_on_stdin(shell, &[print_command(bytes), b"\n".to_vec()].concat()) == bytes,
                    "{shell}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("AGTMUX_SOAK").is_some() { 3000 } else { 24 }))]

        /// Tests several words at once. Together they contain all bytes that a word can contain.
        #[test]
        fn every_shell_reads_any_words_unchanged(
            words in proptest::collection::vec(proptest::collection::vec(1_u8..=255, 0..24), 1..5),
        ) {
            let printf = [OsStr::new("printf"), OsStr::new("<%s>")];
            let all = printf.into_iter().chain(words.iter().map(|word| OsStr::from_bytes(word)));
            let line = command_line(all);
            let expected: Vec<u8> = words.iter().flat_map(|word| [b"<", word.as_slice(), b">"].concat()).collect();
            for shell in shells() {
                prop_assert_eq!(run_script(shell, &line), &expected[..], "{}", shell);
            }
        }

        #[test]
        fn print_command_prints_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for shell in shells().into_iter().filter(|shell| *shell != "fish") {
                prop_assert_eq!(run_script(shell, &print_command(&bytes)), &bytes[..], "{}", shell);
            }
        }
    }
}
