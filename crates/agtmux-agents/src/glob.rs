//! Matches paths against patterns with `*`.

/// The maximum length of a path. A longer text never matches: it is not a path but, for example, a process argument of
/// several megabytes.
const MAX_PATH_BYTES: usize = 4096;

/// Whether the whole path matches the pattern. `*` matches any bytes, including slashes. A pattern such as `*/bin/tool`
/// also matches the relative path `bin/tool`.
pub(crate) fn matches(pattern: &str, path: &[u8]) -> bool {
    if path.len() > MAX_PATH_BYTES {
        return false;
    }
    let below_anything = pattern.strip_prefix("*/").is_some_and(|rest| matches_whole(rest.as_bytes(), path));
    below_anything || matches_whole(pattern.as_bytes(), path)
}

/// Whether the whole path matches the pattern. After a mismatch, tries again from the last star only, so that a long
/// path cannot make the match slow.
fn matches_whole(pattern: &[u8], path: &[u8]) -> bool {
    let (mut p, mut at) = (0, 0);
    let mut retry = None;
    while at < path.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, at));
        } else if pattern.get(p) == Some(&path[at]) {
            p += 1;
            at += 1;
        } else if let Some((after_star, start)) = retry {
            p = after_star;
            at = start + 1;
            retry = Some((after_star, at));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_cross_slashes() {
        assert!(matches("*/@scope/tool/*", b"/usr/lib/node_modules/@scope/tool/dist/cli.js"));
        assert!(matches("*/bin/tool", b"/usr/bin/tool"));
        assert!(matches("*a*ab", b"xaxaab"));
        assert!(matches("exact", b"exact"));
    }

    #[test]
    fn relative_paths_match() {
        assert!(matches("*/bin/tool", b"bin/tool"));
        assert!(matches("*/@scope/tool/*", b"@scope/tool/cli.js"));
    }

    #[test]
    fn parts_of_names_do_not_match() {
        assert!(!matches("*/bin/tool", b"/usr/bin/toolbox"));
        assert!(!matches("*/bin/tool", b"/usr/sbin/tool"));
        assert!(!matches("*/@scope/tool/*", b"/lib/@scope/tool"));
        assert!(!matches("exact", b""));
        assert!(matches("*", b""));
    }

    #[test]
    fn texts_longer_than_a_path_do_not_match() {
        assert!(matches("*/x", &[b"/".repeat(4095), b"x".to_vec()].concat()));
        assert!(!matches("*/x", &[b"/".repeat(4096), b"x".to_vec()].concat()));
    }
}
