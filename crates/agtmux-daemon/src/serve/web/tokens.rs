//! The two tokens for scripts. Each token is stored in its own file, which only the user of the daemon can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use agtmux_api::files;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::AccessLevel;

pub(super) const FULL: &str = "web-token";
pub(super) const READ_ONLY: &str = "web-token-read-only";

/// The length of a token: two UUIDs without hyphens.
const LENGTH: usize = 64;

#[derive(Debug)]
pub(super) struct WebTokens {
    full: String,
    read_only: String,
}

impl WebTokens {
    /// Reads the tokens, and creates those that do not exist.
    pub(super) fn load_or_create(dir: &Path) -> io::Result<Self> {
        Ok(Self {
            full: load_or_create_token(&dir.join(FULL))?,
            read_only: load_or_create_token(&dir.join(READ_ONLY))?,
        })
    }

    /// The access that a token gives. The comparison takes the same time for right and wrong tokens, so that a token
    /// cannot be guessed from the response time.
    pub(super) fn access(&self, given: &str) -> Option<AccessLevel> {
        let matches = |token: &str| bool::from(token.as_bytes().ct_eq(given.as_bytes()));
        let (full, read_only) = (matches(&self.full), matches(&self.read_only));
        match (full, read_only) {
            (true, _) => Some(AccessLevel::Full),
            (false, true) => Some(AccessLevel::ReadOnly),
            (false, false) => None,
        }
    }
}

pub(super) fn random_token() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

fn load_or_create_token(path: &Path) -> io::Result<String> {
    let invalid = |why: &str| {
        let message = format!("'{}' {why}; remove the file, and the daemon creates a new one", path.display());
        io::Error::new(io::ErrorKind::InvalidData, message)
    };
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let token = random_token();
            file.write_all(token.as_bytes())?;
            file.sync_all()?;
            Ok(token)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::symlink_metadata(path)?;
            if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
                return Err(invalid("is not a file of your user"));
            }
            if metadata.permissions().mode() & 0o077 != 0 {
                return Err(invalid("can be read by others, so its token may be known"));
            }
            let token = files::read_plain(path, 1024)?.trim().to_owned();
            let is_valid = token.len() == LENGTH && token.bytes().all(|b| b.is_ascii_hexdigit());
            if is_valid { Ok(token) } else { Err(invalid("contains no valid token")) }
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_created_once_and_private_to_their_owner() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = WebTokens::load_or_create(dir.path()).expect("created");
        let again = WebTokens::load_or_create(dir.path()).expect("read");
        assert_eq!((&first.full, &first.read_only), (&again.full, &again.read_only));
        let mode = fs::metadata(dir.path().join(FULL)).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(first.access(&first.full), Some(AccessLevel::Full));
        assert_eq!(first.access(&first.read_only), Some(AccessLevel::ReadOnly));
        for wrong in ["", "x", &first.full[1..], &format!("{}0", first.full)] {
            assert_eq!(first.access(wrong), None);
        }
    }

    #[test]
    fn a_token_file_that_others_can_read_is_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        WebTokens::load_or_create(dir.path()).expect("created");
        let path = dir.path().join(FULL);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("set");
        assert!(
            WebTokens::load_or_create(dir.path()).expect_err("rejected").to_string().contains("can be read by others")
        );
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("/etc/hostname", &path).expect("linked");
        assert!(WebTokens::load_or_create(dir.path()).is_err());
    }
}
