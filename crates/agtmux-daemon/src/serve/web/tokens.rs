//! The two tokens that scripts use. Each is a file that only its owner can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use agtmux_api::files;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::Access;

pub(super) const FULL: &str = "web-token";
pub(super) const READ_ONLY: &str = "web-token-read-only";

/// Two random ids: as hard to guess as anything.
const LENGTH: usize = 64;

#[derive(Debug)]
pub(super) struct Tokens {
    full: String,
    read_only: String,
}

impl Tokens {
    /// Those that are there, and new ones where there are none.
    pub(super) fn in_dir(dir: &Path) -> io::Result<Self> {
        Ok(Self { full: token(&dir.join(FULL))?, read_only: token(&dir.join(READ_ONLY))? })
    }

    /// Takes the same time whichever is given, and however much of it is right.
    pub(super) fn access(&self, given: &str) -> Option<Access> {
        let is = |token: &str| bool::from(token.as_bytes().ct_eq(given.as_bytes()));
        let (full, read_only) = (is(&self.full), is(&self.read_only));
        match (full, read_only) {
            (true, _) => Some(Access::Full),
            (false, true) => Some(Access::ReadOnly),
            (false, false) => None,
        }
    }
}

pub(super) fn fresh() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

fn token(path: &Path) -> io::Result<String> {
    let refuse = |why: &str| {
        let message = format!("'{}' {why}; remove it, and the daemon makes another", path.display());
        io::Error::new(io::ErrorKind::InvalidData, message)
    };
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let token = fresh();
            file.write_all(token.as_bytes())?;
            file.sync_all()?;
            Ok(token)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::symlink_metadata(path)?;
            if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
                return Err(refuse("is not a file of yours"));
            }
            if metadata.permissions().mode() & 0o077 != 0 {
                return Err(refuse("can be read by others, so its token may be known"));
            }
            let token = files::plain(path, 1024)?.trim().to_owned();
            let whole = token.len() == LENGTH && token.bytes().all(|b| b.is_ascii_hexdigit());
            if whole { Ok(token) } else { Err(refuse("holds no token")) }
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_made_once_and_for_their_owner_only() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = Tokens::in_dir(dir.path()).expect("made");
        let again = Tokens::in_dir(dir.path()).expect("read");
        assert_eq!((&first.full, &first.read_only), (&again.full, &again.read_only));
        let mode = fs::metadata(dir.path().join(FULL)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(first.access(&first.full), Some(Access::Full));
        assert_eq!(first.access(&first.read_only), Some(Access::ReadOnly));
        for wrong in ["", "x", &first.full[1..], &format!("{}0", first.full)] {
            assert_eq!(first.access(wrong), None);
        }
    }

    #[test]
    fn one_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        Tokens::in_dir(dir.path()).expect("made");
        let path = dir.path().join(FULL);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("set");
        assert!(Tokens::in_dir(dir.path()).expect_err("refused").to_string().contains("can be read by others"));
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("/etc/hostname", &path).expect("linked");
        assert!(Tokens::in_dir(dir.path()).is_err());
    }
}
