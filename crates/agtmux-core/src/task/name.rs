//! Task names.

use crate::text_types::checked_text_type;

checked_text_type!(
    /// A task name: 1 to 40 ASCII letters, digits, `.`, `_` or `-`.
    TaskName,
    check_task_name,
    TaskNameError
);

const MAX_LEN: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not a valid task name: use 1 to {MAX_LEN} letters, digits, '.', '_' or '-'", .0.escape_debug())]
pub struct TaskNameError(pub String);

fn check_task_name(name: &str) -> Result<(), TaskNameError> {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if plain && (1..=MAX_LEN).contains(&name.len()) { Ok(()) } else { Err(TaskNameError(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_parsed_strictly() {
        for good in ["a", "api-server", "tests.watch_2", "-x", "..", &"n".repeat(40)] {
            assert_eq!(good.parse::<TaskName>().map(String::from).as_deref(), Ok(good));
        }
        for bad in ["", " ", "a b", "a:b", "a/b", "ä", "a\n", "#(id)", "$(id)", "a;b", &"n".repeat(41)] {
            assert!(bad.parse::<TaskName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_error_escapes_control_characters() {
        let message = "a\u{1b}[31m".parse::<TaskName>().expect_err("no name").to_string();
        assert!(message.contains("1 to 40") && !message.contains('\u{1b}'), "{message}");
    }

    proptest! {
        #[test]
        fn a_name_is_valid_exactly_if_the_rule_allows_it(text in "\\PC{0,45}") {
            let fits = (1..=40).contains(&text.chars().count())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
            prop_assert_eq!(text.parse::<TaskName>().is_ok(), fits);
        }
    }
}
