//! The variables of `mirror exec --env`. The shell exports them before it runs the command.

use std::collections::BTreeMap;

use agtmux_api::error::ApiResult;
use agtmux_core::mirror::MirrorShell;
use agtmux_tmux::quoted_for_shell;

use super::errors;

const MAX_BYTES: usize = 64 << 10;

/// Refuses names that are no variables, and values that a shell cannot hold.
pub(super) fn check(env: &BTreeMap<String, String>) -> ApiResult<()> {
    if let Some(name) = env.keys().find(|name| !is_name(name)) {
        return Err(errors::bad(format!("'{}' is not the name of a variable", name.escape_debug())));
    }
    if let Some((name, _)) = env.iter().find(|(_, value)| value.contains('\0')) {
        return Err(errors::bad(format!("the value of {name} contains a NUL character")));
    }
    match env.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() {
        size if size > MAX_BYTES => Err(errors::bad(format!("the variables have more than {} KiB", MAX_BYTES >> 10))),
        _ => Ok(()),
    }
}

fn is_name(name: &str) -> bool {
    let is_word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    !name.is_empty() && name.bytes().all(is_word) && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// Lines that export the variables in this shell.
pub(super) fn exports(shell: MirrorShell, env: &BTreeMap<String, String>) -> String {
    let line = |(name, value): (&String, &String)| match shell {
        MirrorShell::Fish => format!("set -gx {name} {}\n", quoted(shell, value)),
        _ => format!("export {name}={}\n", quoted(shell, value)),
    };
    env.iter().map(line).collect()
}

/// The text as one word of this shell. In fish, a backslash has a meaning inside single quotes.
pub(super) fn quoted(shell: MirrorShell, text: &str) -> String {
    match shell {
        MirrorShell::Fish if text.contains('\\') => {
            format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
        }
        _ => quoted_for_shell(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_checked() {
        let checked = |name: &str, value: &str| check(&BTreeMap::from([(name.to_owned(), value.to_owned())])).is_ok();
        assert!(checked("PI_TMUX_SESSION", "a b'\n$(x)") && checked("_a1", ""));
        for name in ["", "1a", "a b", "a=b", "a;id", "é"] {
            assert!(!checked(name, "x"), "{name}");
        }
        assert!(!checked("a", "\0") && !checked("a", &"x".repeat(MAX_BYTES)));
    }
}
