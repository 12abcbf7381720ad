//! A file that setup owns completely. Its first line has a digest, which shows whether the user changed the file.

use uuid::Uuid;

use super::hook_format::quoted;
use super::{EditError, EditHints, SettingsEditor};
use crate::commands::setup::command::HookCommand;

const MARK: &str = "// Written by `agtmux setup`, removed by `agtmux setup --uninstall`. Changes of yours stop both. ";

/// The text in the template that setup replaces to insert the path of agtmux.
const PROGRAM: &str = "const PROGRAM = \"agtmux\"";

pub(in crate::commands::setup) struct OwnFileEditor {
    pub(in crate::commands::setup) template: &'static str,
    pub(in crate::commands::setup) hook_command: HookCommand,
}

impl SettingsEditor for OwnFileEditor {
    fn install(&self, text: &str) -> Result<(String, EditHints), EditError> {
        let why = "a file with this name exists that agtmux did not write; move it and run agtmux setup again";
        if text.is_empty() { Ok((self.written(), EditHints::default())) } else { Err(EditError::at(text, 0, why)) }
    }

    /// Recognises the files of every version of agtmux, whatever path of agtmux they contain. Fails if the file was
    /// changed after setup wrote it.
    fn installed_program(&self, text: &str, _: &EditHints) -> Result<Option<String>, EditError> {
        let rest = text.strip_prefix(MARK).and_then(|rest| rest.split_once('\n'));
        let why = "the file was changed after agtmux wrote it; move or delete it and run agtmux setup again";
        match rest {
            Some((digest, body)) if digest != digest_of(body) => Err(EditError::at(text, 0, why)),
            rest => Ok(rest.map(|_| self.hook_command.program.clone())),
        }
    }

    fn is_current(&self, text: &str, _: &EditHints) -> Result<bool, EditError> {
        Ok(text == self.written())
    }

    fn remove(&self, _: &str, _: &EditHints) -> Result<String, EditError> {
        Ok(String::new())
    }
}

impl OwnFileEditor {
    fn written(&self) -> String {
        let body = with_program(self.template, &self.hook_command.program);
        format!("{MARK}{}\n{body}", digest_of(&body))
    }
}

/// The template with the path of agtmux.
pub(super) fn with_program(template: &str, program: &str) -> String {
    template.replacen(PROGRAM, &format!("const PROGRAM = {}", quoted(program)), 1)
}

pub(super) fn digest_of(body: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, body.as_bytes()).simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "// What it does.\nconst PROGRAM = \"agtmux\";\nrun();\n";

    fn editor(program: &str, template: &'static str) -> OwnFileEditor {
        OwnFileEditor { template, hook_command: HookCommand::new(program, "pi") }
    }

    #[test]
    fn a_written_file_is_recognized() {
        let ours = editor("/opt/a \"b\"/agtmux", TEMPLATE);
        let (text, hints) = ours.install("").expect("there was nothing");
        assert!(text.contains(r#"const PROGRAM = "/opt/a \"b\"/agtmux";"#), "{text}");
        assert!(ours.installed_program(&text, &hints).is_ok_and(|program| program.is_some()));
        assert_eq!(ours.is_current(&text, &hints), Ok(true));
        for other in [editor("/usr/bin/agtmux", TEMPLATE), editor("/opt/a \"b\"/agtmux", "another version")] {
            assert_eq!(other.is_current(&text, &hints), Ok(false));
        }
    }

    #[test]
    fn other_files_and_changed_files_are_refused() {
        let (ours, theirs) = (editor("/opt/agtmux", TEMPLATE), "export default () => {}\n");
        assert_eq!(ours.installed_program(theirs, &EditHints::default()), Ok(None));
        assert!(ours.install(theirs).is_err());
        let (text, hints) = ours.install("").expect("there was nothing");
        let fault = ours.installed_program(&text.replace("run()", "walk()"), &hints).expect_err("it was changed");
        assert!(fault.why.contains("changed after"), "{fault:?}");
    }
}
