//! Patterns over paths.

/// No path is longer, and an argument may be megabytes.
const LONGEST_PATH: usize = 4096;

/// Whether the whole path fits the pattern, in which `*` stands for any bytes, slashes too. A pattern that begins with
/// `*/` also fits a relative path.
pub(crate) fn fits(pattern: &str, path: &[u8]) -> bool {
    if path.len() > LONGEST_PATH {
        return false;
    }
    let below_anything = pattern.strip_prefix("*/").is_some_and(|rest| fits_whole(rest.as_bytes(), path));
    below_anything || fits_whole(pattern.as_bytes(), path)
}

/// Goes back to the last star only, so that a long path cannot make it slow.
fn fits_whole(pattern: &[u8], path: &[u8]) -> bool {
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
        assert!(fits("*/@scope/tool/*", b"/usr/lib/node_modules/@scope/tool/dist/cli.js"));
        assert!(fits("*/bin/tool", b"/usr/bin/tool"));
        assert!(fits("*a*ab", b"xaxaab"));
        assert!(fits("exact", b"exact"));
    }

    #[test]
    fn relative_paths_fit_too() {
        assert!(fits("*/bin/tool", b"bin/tool"));
        assert!(fits("*/@scope/tool/*", b"@scope/tool/cli.js"));
    }

    #[test]
    fn parts_of_names_do_not_fit() {
        assert!(!fits("*/bin/tool", b"/usr/bin/toolbox"));
        assert!(!fits("*/bin/tool", b"/usr/sbin/tool"));
        assert!(!fits("*/@scope/tool/*", b"/lib/@scope/tool"));
        assert!(!fits("exact", b""));
        assert!(fits("*", b""));
    }

    #[test]
    fn what_is_too_long_for_a_path_is_none() {
        assert!(fits("*/x", &[b"/".repeat(4095), b"x".to_vec()].concat()));
        assert!(!fits("*/x", &[b"/".repeat(4096), b"x".to_vec()].concat()));
    }
}
