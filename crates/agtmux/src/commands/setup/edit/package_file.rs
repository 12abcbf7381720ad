//! A file of a package that setup owns completely. It has no place for a digest, because it may be JSON or a script, so
//! the record of setup has the digest.

use super::own_file::{digest_of, with_program};
use super::{EditError, EditHints, SettingsEditor};
use crate::commands::setup::command::HookCommand;

pub(in crate::commands::setup) struct PackageFileEditor {
    pub(in crate::commands::setup) template: &'static str,
    pub(in crate::commands::setup) hook_command: HookCommand,
}

impl SettingsEditor for PackageFileEditor {
    fn install(&self, text: &str) -> Result<(String, EditHints), EditError> {
        if !text.is_empty() {
            let why = "a file with this name exists that agtmux did not write; move it and run agtmux setup again";
            return Err(EditError::at(text, 0, why));
        }
        let written = self.written();
        let hints = EditHints { digest: Some(digest_of(&written)), ..EditHints::default() };
        Ok((written, hints))
    }

    /// Recognizes the file that the record describes, and the file of this version. Fails if the file was changed after
    /// setup wrote it.
    fn installed_program(&self, text: &str, hints: &EditHints) -> Result<Option<String>, EditError> {
        let is_recorded = hints.digest.as_ref().is_some_and(|digest| *digest == digest_of(text));
        if is_recorded || text == self.written() {
            return Ok(Some(self.hook_command.program.clone()));
        }
        let why = "the file was changed after agtmux wrote it; move or delete it and run agtmux setup again";
        if hints.digest.is_some() && !text.is_empty() { Err(EditError::at(text, 0, why)) } else { Ok(None) }
    }

    fn is_current(&self, text: &str, _: &EditHints) -> Result<bool, EditError> {
        Ok(text == self.written())
    }

    fn remove(&self, _: &str, _: &EditHints) -> Result<String, EditError> {
        Ok(String::new())
    }
}

impl PackageFileEditor {
    fn written(&self) -> String {
        with_program(self.template, &self.hook_command.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "{\"name\": \"a package\"}\n";

    fn editor(template: &'static str) -> PackageFileEditor {
        PackageFileEditor { template, hook_command: HookCommand::new("/opt/agtmux", "pi") }
    }

    #[test]
    fn a_written_file_is_recognized_by_its_digest() {
        let (text, hints) = editor(TEMPLATE).install("").expect("there was nothing");
        assert_eq!(text, TEMPLATE);
        let newer = editor("another version");
        assert!(newer.installed_program(&text, &hints).is_ok_and(|program| program.is_some()));
        assert_eq!(newer.is_current(&text, &hints), Ok(false));
        assert!(newer.installed_program("changed", &hints).is_err());
    }

    #[test]
    fn without_the_record_only_the_file_of_this_version_is_recognized() {
        let none = EditHints::default();
        assert!(editor(TEMPLATE).installed_program(TEMPLATE, &none).is_ok_and(|program| program.is_some()));
        assert_eq!(editor(TEMPLATE).installed_program("theirs", &none), Ok(None));
        assert!(editor(TEMPLATE).install("theirs").is_err());
    }
}
