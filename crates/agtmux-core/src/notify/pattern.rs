//! Patterns for names.

/// A pattern in which `*` matches any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(String);

impl NamePattern {
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether the whole name matches. Each part between two `*` is found at its first place, which takes time in
    /// proportion to the lengths and finds a match if there is one.
    pub fn matches(&self, name: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == name };
        let Some(name) = name.strip_prefix(first) else { return false };
        let mut parts: Vec<&str> = rest.split('*').collect();
        let last = parts.pop().unwrap_or_default();
        let mut left = name;
        for part in parts {
            match left.find(part) {
                Some(at) => left = &left[at + part.len()..],
                None => return false,
            }
        }
        left.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_text_and_everything_else_matches_itself() {
        for (pattern, name, expected) in [
            ("work", "work", true),
            ("work", "work2", false),
            ("*", "", true),
            ("api-*", "api-", true),
            ("api-*", "my-api-1", false),
            ("*-prod", "api-prod", true),
            ("*a*b*", "xxaxxbxx", true),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*bc*c", "abcbc", true),
            ("a.c", "abc", false),
        ] {
            assert_eq!(NamePattern::new(pattern).matches(name), expected, "{pattern} on {name}");
        }
    }
}
