//! Names of task sessions. A task session is the tmux session that contains the tasks of one harness session.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::text;
use crate::text_types::checked_text_type;

checked_text_type!(
    /// The name of a task session. It contains only characters that tmux neither replaces nor interprets.
    TaskSessionName,
    check_session_name,
    SessionNameError
);

const MAX_LEN: usize = 200;

/// The slug of a project whose directory name has no usable character.
const FALLBACK_SLUG: &str = "project";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionNameError {
    #[error("'{}' is not an absolute path; pass the project's full path, such as \"$PWD\"", .0.escape_debug())]
    RelativePath(String),
    #[error("no session id; pass one, or set PI_SESSION_ID")]
    NoId,
    #[error(
        "'{}' is not a valid task session name: use up to {MAX_LEN} letters, digits, '_' or '-', \
         or a name printed by `agtmux task session-name`", .0.escape_debug()
    )]
    NotAName(String),
}

impl TaskSessionName {
    /// Builds `pi-<project-slug>-<session-id>`.
    pub fn of(project: &Path, session_id: &str) -> Result<Self, SessionNameError> {
        let slug = project_slug(project)?;
        let id = plain(session_id, |c| c.is_ascii_alphanumeric());
        if id.is_empty() {
            return Err(SessionNameError::NoId);
        }
        format!("pi-{slug}-{id}").parse()
    }

    /// Builds `agtmux-<project-slug>`, the default session if the user names none.
    pub fn default_of(project: &Path) -> Result<Self, SessionNameError> {
        let mut name = format!("agtmux-{}", project_slug(project)?);
        // The slug is ASCII.
        name.truncate(MAX_LEN);
        name.parse()
    }

    /// Returns the harness's own session id, which is the end of this name. A caller that knows the id passes it as
    /// `known`. Returns `None` if the name ends neither with `known` nor with a UUID, because the id could then begin
    /// at any `-`.
    pub fn session_id(&self, known: Option<&str>) -> Option<&str> {
        let ends_with = |id: &str| self.0.strip_suffix(id).is_some_and(|rest| rest.ends_with('-'));
        let start = match known.filter(|id| !id.is_empty() && ends_with(id)) {
            Some(id) => self.0.len() - id.len(),
            None => self.0.len().checked_sub(uuid::fmt::Hyphenated::LENGTH)?,
        };
        let id = self.0.get(start..).filter(|id| ends_with(id))?;
        (Some(id) == known || uuid::Uuid::try_parse(id).is_ok()).then_some(id)
    }
}

/// Returns the last path component in lowercase. Each run of characters other than `a-z`, `0-9`, `_` and `-` becomes
/// one `-`. Two projects can share a slug, so a slug does not prove which project owns a session.
pub fn project_slug(project: &Path) -> Result<String, SessionNameError> {
    if !project.is_absolute() {
        return Err(SessionNameError::RelativePath(text::from_bytes(project.as_os_str().as_bytes())));
    }
    let name = project.file_name().map(|name| text::from_bytes(name.as_bytes())).unwrap_or_default();
    let slug = plain(&name.to_lowercase(), |c| c.is_ascii_lowercase() || c.is_ascii_digit());
    Ok(if slug.is_empty() { FALLBACK_SLUG.to_owned() } else { slug })
}

/// Keeps `_`, `-` and the characters for which `kept` is true. Replaces each run of other characters with one `-`. Then
/// trims `-` at both ends.
fn plain(text: &str, kept: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_run = false;
    for c in text.chars() {
        let fits = kept(c) || c == '_' || c == '-';
        if fits {
            out.push(c);
        } else if !in_run {
            out.push('-');
        }
        in_run = !fits;
    }
    out.trim_matches('-').to_owned()
}

fn check_session_name(name: &str) -> Result<(), SessionNameError> {
    let fits = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    let fits = fits && (1..=MAX_LEN).contains(&name.len()) && !name.starts_with('-');
    if fits { Ok(()) } else { Err(SessionNameError::NotAName(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slug(path: &str) -> String {
        project_slug(Path::new(path)).expect("an absolute path")
    }

    #[test]
    fn a_slug_contains_only_characters_that_tmux_keeps() {
        let cases = [
            ("/home/x/agtmux", "agtmux"),
            ("/home/x/My App", "my-app"),
            ("/home/x/my.app", "my-app"),
            ("/home/x/a:b", "a-b"),
            ("/home/x/Ünïcode", "n-code"),
            ("/home/x/snake_case-2", "snake_case-2"),
            ("/home/x/--dash--", "dash"),
            ("/home/x/a - b", "a---b"),
            ("/home/x/日本", "project"),
            ("/home/x/...", "project"),
            ("/home/x/trailing/", "trailing"),
            ("/", "project"),
            ("/home/x/$(id)", "id"),
            ("/home/x/#{pid}", "pid"),
            ("/home/x/two\nlines", "two-lines"),
        ];
        for (path, expected) in cases {
            assert_eq!(slug(path), expected, "{path}");
        }
    }

    #[test]
    fn the_default_session_is_named_after_the_project() {
        let name = |path: &str| TaskSessionName::default_of(Path::new(path)).map(|name| name.to_string());
        assert_eq!(name("/home/x/My App"), Ok("agtmux-my-app".into()));
        assert_eq!(name(&format!("/{}", "a".repeat(300))).map(|name| name.len()), Ok(MAX_LEN));
        assert!(name("foo").is_err());
    }

    #[test]
    fn a_relative_path_is_rejected() {
        for path in ["", ".", "foo", "../foo", "~/foo"] {
            let error = project_slug(Path::new(path)).expect_err("relative");
            assert!(error.to_string().contains("absolute path"), "{error}");
        }
    }

    #[test]
    fn a_session_name_contains_the_full_id() {
        let name = |path: &str, id: &str| TaskSessionName::of(Path::new(path), id).map(String::from);
        let id = "0198A3c2-7d4e-7c11-9f00-5b6a3f1e2d4c";
        assert_eq!(name("/w/Foo.Bar", id), Ok(format!("pi-foo-bar-{id}")));
        assert_eq!(name("/w/foo", "ses_1.2:3"), Ok("pi-foo-ses_1-2-3".into()));
        assert_eq!(name("/w/foo", "::"), Err(SessionNameError::NoId));
        assert_eq!(name("foo", id), Err(SessionNameError::RelativePath("foo".into())));
    }

    #[test]
    fn session_id_is_the_known_id_or_a_uuid() {
        let id =
            |name: &str, known| name.parse::<TaskSessionName>().expect("a name").session_id(known).map(str::to_owned);
        let uuid = "0198a3c2-7d4e-7c11-9f00-5b6a3f1e2d4c";
        assert_eq!(id(&format!("pi-foo-{uuid}"), None).as_deref(), Some(uuid));
        assert_eq!(id(&format!("pi-foo-{uuid}"), Some("x")).as_deref(), Some(uuid));
        assert_eq!(id("pi-foo-a-1", Some("a-1")).as_deref(), Some("a-1"));
        assert_eq!(id("pi-foo-a-1", Some("o-a-1")), None);
        assert_eq!(id("pi-foo-a-1", None), None);
        assert_eq!(id(uuid, None), None);
    }

    #[test]
    fn a_name_that_tmux_would_interpret_is_rejected() {
        for bad in ["", "a.b", "a:b", "=a", "-a", "$1", "@1", "%1", "a b", "a\n", "#(id)", "é", &"x".repeat(201)] {
            assert!(bad.parse::<TaskSessionName>().is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn every_directory_has_a_usable_slug(name in "[^/\0]{1,60}", id in "[0-9a-f]{8}") {
            let path = Path::new("/w").join(&name);
            let slug = project_slug(&path).expect("absolute");
            prop_assert!(!slug.is_empty() && !slug.starts_with('-') && !slug.ends_with('-'));
            prop_assert!(slug.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c)));
            prop_assert_eq!(project_slug(&Path::new("/w").join(&slug)), Ok(slug));
            prop_assert!(TaskSessionName::of(&path, &id).is_ok());
        }
    }
}
