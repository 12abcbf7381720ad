//! Validates target names and `ssh` destinations. Only a few characters are allowed in them, so neither `ssh` nor a
//! shell can read a name as an option, a command or several words.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::TargetName;

const MAX_NAME_LEN: usize = 64;
/// The maximum length of an `ssh` destination, including an optional user. It equals the limit of a DNS name.
const MAX_SSH_TARGET_LEN: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetNameError {
    #[error(
        "a target name has 1 to {MAX_NAME_LEN} letters, digits, '.', '_' or '-' and starts with a letter or a digit"
    )]
    Target,
    #[error("'{}' is reserved for this machine, which is always watched", TargetName::LOCAL)]
    Local,
    #[error(
        "an ssh target is a host name or an ssh_config alias, optionally with 'user@': letters, digits, \
         '.', '_', '-' and ':', not starting with '-'"
    )]
    Ssh,
}

/// Whether this is a valid target name.
pub fn is_target_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MAX_NAME_LEN).contains(&name.len())
        && name.bytes().all(allowed)
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

impl TargetName {
    /// Parses the name of a remote target.
    pub fn parse_remote(name: &str) -> Result<Self, TargetNameError> {
        if name == Self::LOCAL {
            return Err(TargetNameError::Local);
        }
        if is_target_name(name) { Ok(Self::new(name)) } else { Err(TargetNameError::Target) }
    }
}

/// The destination passed to `ssh`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SshTarget(String);

impl SshTarget {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SshTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SshTarget {
    type Err = TargetNameError;

    fn from_str(text: &str) -> Result<Self, TargetNameError> {
        let (user, host) = match text.split_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, text),
        };
        let plain = |part: &str, extra: &[u8]| {
            !part.is_empty()
                && !part.starts_with('-')
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || extra.contains(&byte))
        };
        let valid = user.is_none_or(|user| plain(user, b"._-")) && plain(host, b"._-:");
        if valid && text.len() <= MAX_SSH_TARGET_LEN { Ok(Self(text.to_owned())) } else { Err(TargetNameError::Ssh) }
    }
}

impl TryFrom<String> for SshTarget {
    type Error = TargetNameError;

    fn try_from(text: String) -> Result<Self, TargetNameError> {
        text.parse()
    }
}

impl From<SshTarget> for String {
    fn from(target: SshTarget) -> Self {
        target.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOSTILE: [&str; 18] = [
        "",
        "-oProxyCommand=touch x",
        "-V",
        "a$(touch x)",
        "`id`",
        "a;b",
        "a b",
        "a\nb",
        "a'b",
        "a\"b",
        "a|b",
        "a&b",
        "a>b",
        "ä",
        "a\u{202e}b",
        "a%h",
        "../a",
        "a\0b",
    ];

    #[test]
    fn names_with_a_second_meaning_are_rejected() {
        for bad in HOSTILE {
            assert_eq!(TargetName::parse_remote(bad), Err(TargetNameError::Target), "{bad:?}");
            assert_eq!(bad.parse::<SshTarget>(), Err(TargetNameError::Ssh), "{bad:?}");
        }
        assert_eq!(TargetName::parse_remote("host"), Err(TargetNameError::Local));
        assert_eq!(TargetName::parse_remote(&"a".repeat(65)), Err(TargetNameError::Target));
        for bad in ["-a@host", "user@-host", "a@b@c", "@host", "user@", &"a".repeat(256)] {
            assert_eq!(bad.parse::<SshTarget>(), Err(TargetNameError::Ssh), "{bad:?}");
        }
    }

    #[test]
    fn ordinary_names_are_accepted() {
        for good in ["vm1", "build-box", "a.b_c", "9"] {
            assert_eq!(TargetName::parse_remote(good).map(|name| name.to_string()), Ok(good.to_owned()));
        }
        for good in ["vm1", "me@vm1.example.org", "192.168.0.7", "fe80::1", "_a", "root@::1"] {
            assert_eq!(good.parse::<SshTarget>().map(String::from), Ok(good.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn accepted_names_are_one_plain_word(text in any::<String>()) {
            let plain = |accepted: &str| {
                !accepted.starts_with('-') && accepted.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-:@".contains(&b))
            };
            if let Ok(target) = text.parse::<SshTarget>() {
                prop_assert!(plain(target.as_str()));
            }
            if let Ok(name) = TargetName::parse_remote(&text) {
                prop_assert!(plain(name.as_str()));
            }
        }
    }
}
