//! Patterns over paths.

/// No path is longer, and an argument may be megabytes.
const MAX_PATH_BYTES: usize = 4096;

/// Whether the whole path fits the pattern, in which `*` stands for any bytes, slashes too. A pattern that begins with
/// `*/` also fits a relative path.
pub(crate) fn matches(pattern: &str, path: &[u8]) -> bool {
    if path.len() > MAX_PATH_BYTES {
        return false;
    }
    let below_anything = pattern.strip_prefix("*/").is_some_and(|rest| matches_whole(rest.as_bytes(), path));
    below_anything || matches_whole(pattern.as_bytes(), path)
}

/// Goes back to the last star only, so that a long path cannot make it slow.
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
    fn relative_paths_fit_too() {
        assert!(matches("*/bin/tool", b"bin/tool"));
        assert!(matches("*/@scope/tool/*", b"@scope/tool/cli.js"));
    }

    #[test]
    fn parts_of_names_do_not_fit() {
        assert!(!matches("*/bin/tool", b"/usr/bin/toolbox"));
        assert!(!matches("*/bin/tool", b"/usr/sbin/tool"));
        assert!(!matches("*/@scope/tool/*", b"/lib/@scope/tool"));
        assert!(!matches("exact", b""));
        assert!(matches("*", b""));
    }

    #[test]
    fn what_is_too_long_for_a_path_is_none() {
        assert!(matches("*/x", &[b"/".repeat(4095), b"x".to_vec()].concat()));
        assert!(!matches("*/x", &[b"/".repeat(4096), b"x".to_vec()].concat()));
    }
}
