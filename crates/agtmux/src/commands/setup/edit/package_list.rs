//! Adds the directory of a package to `packages`, a list in a JSON file: `{"packages": ["/path/of/package"]}`.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::hook_format::{quoted, written_member};
use super::hooks::{append, restore_blank, without_entry};
use super::json::{self, JsonBrackets, member, text_of};
use super::{EditError, EditHints, SettingsEditor, newline_of};
use crate::commands::setup::command::HookCommand;

const PACKAGES: &str = "packages";

pub(in crate::commands::setup) struct PackageListEditor {
    /// The directory of the package.
    pub(in crate::commands::setup) package: String,
    pub(in crate::commands::setup) hook_command: HookCommand,
}

impl SettingsEditor for PackageListEditor {
    fn install(&self, text: &str) -> Result<(String, EditHints), EditError> {
        let root = match json::parse(text)? {
            Some(Value::Object(root)) => root,
            Some(other) => return Err(EditError::at(text, other.start(), "the file is not a JSON object")),
            None => {
                let newline = newline_of(text);
                let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
                let (after, hints) = self.install(&format!("{text}{line_end}{{}}{newline}"))?;
                return Ok((after, EditHints { blank: Some(text.to_owned()), ..hints }));
            }
        };
        let mut hints = EditHints { package: Some(self.package.clone()), ..EditHints::default() };
        let item = quoted(&self.package);
        let after = match member(&root, PACKAGES) {
            None => {
                let list = written_member(PACKAGES, &format!("[{item}]"));
                append("", &JsonBrackets::object(text, &root), &list, &mut hints)
            }
            Some((_, list)) => {
                let not_a_list = || EditError::at(text, list.start(), "\"packages\" is not a list");
                let list = list.as_array().ok_or_else(not_a_list)?;
                append(PACKAGES, &JsonBrackets::list(text, list), &item, &mut hints)
            }
        };
        Ok((after, hints))
    }

    fn installed_program(&self, text: &str, hints: &EditHints) -> Result<Option<String>, EditError> {
        let is_listed = self.without_one(text, hints)?.is_some();
        Ok(is_listed.then(|| self.hook_command.program.clone()))
    }

    fn is_current(&self, text: &str, _: &EditHints) -> Result<bool, EditError> {
        Ok(self.without_one(text, &EditHints::default())?.is_some())
    }

    fn remove(&self, text: &str, hints: &EditHints) -> Result<String, EditError> {
        let mut left = text.to_owned();
        while let Some(without) = self.without_one(&left, hints)? {
            left = without;
        }
        if left == text { Ok(left) } else { restore_blank(left, hints) }
    }
}

impl PackageListEditor {
    /// The text without one entry of this package. `None` if the list has no such entry.
    fn without_one(&self, text: &str, hints: &EditHints) -> Result<Option<String>, EditError> {
        let Some(root) = json::root_object(text)? else { return Ok(None) };
        let Some((at, Value::Array(list))) = member(&root, PACKAGES) else { return Ok(None) };
        let Some(index) = list.elements.iter().position(|item| self.is_package(item, hints)) else { return Ok(None) };
        let around = vec![
            (String::new(), JsonBrackets::object(text, &root), at),
            (PACKAGES.to_owned(), JsonBrackets::list(text, list), index),
        ];
        Ok(Some(without_entry(text, around, hints)))
    }

    /// Whether this entry names the package. Pi turns a path into an object if the user selects parts of the package.
    fn is_package(&self, item: &Value<'_>, hints: &EditHints) -> bool {
        let source = match item {
            Value::StringLit(path) => Some(path.value.as_ref()),
            Value::Object(package) => text_of(package, "source"),
            _ => None,
        };
        source.is_some_and(|source| source == self.package || hints.package.as_deref() == Some(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor() -> PackageListEditor {
        PackageListEditor { package: "/data/pi-agtmux".into(), hook_command: HookCommand::new("/opt/agtmux", "pi") }
    }

    #[test]
    fn the_package_is_added_and_every_other_byte_stays() {
        for text in [
            "",
            "{}",
            "{\n}\n",
            "{\"a\": 1}",
            "{\n  \"packages\": []\n}\n",
            "{\n  \"packages\": [\n    \"npm:x\" // mine\n  ],\n  \"z\": 1\n}\n",
            "{\"packages\":[\"npm:x\",\"/other/pi-agtmux\"]}",
            "{\r\n\t\"packages\": [ /* none */ ]\r\n}",
        ] {
            let (after, hints) = editor().install(text).expect("installs");
            assert_eq!(editor().is_current(&after, &hints), Ok(true), "{after}");
            assert!(after.contains("\"/data/pi-agtmux\""), "{after}");
            assert_eq!(editor().remove(&after, &hints).as_deref(), Ok(text), "{after}");
            assert_eq!(editor().installed_program(text, &EditHints::default()), Ok(None));
        }
    }

    #[test]
    fn an_entry_with_selected_parts_is_recognized() {
        let text = "{\"packages\": [{\"source\": \"/data/pi-agtmux\", \"skills\": []}, \"npm:x\"]}";
        assert_eq!(editor().is_current(text, &EditHints::default()), Ok(true));
        let left = editor().remove(text, &EditHints::default()).expect("removes");
        assert_eq!(left, "{\"packages\": [ \"npm:x\"]}");
    }

    #[test]
    fn a_recorded_directory_is_replaced() {
        let old = PackageListEditor { package: "/old/pi-agtmux".into(), ..editor() };
        let (text, hints) = old.install("{}").expect("installs");
        assert_eq!(editor().is_current(&text, &hints), Ok(false));
        assert_eq!(editor().remove(&text, &hints).as_deref(), Ok("{}"));
    }

    #[test]
    fn other_values_are_refused() {
        for text in ["[]", "{\"packages\": 1}", "{"] {
            assert!(editor().install(text).is_err(), "{text}");
        }
    }
}
