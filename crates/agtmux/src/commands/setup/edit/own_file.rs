//! A file that setup owns completely. Its first line has a digest, which shows whether the user changed the file.

use uuid::Uuid;

use super::{EditError, EditHints};
use crate::commands::setup::command::HookCommand;

const MARK: &str = "// Written by `agtmux setup`, removed by `agtmux setup --uninstall`. Changes of yours stop both. ";

/// The placeholder for the path of agtmux in the template.
const PROGRAM: &str = "const PROGRAM = \"agtmux\"";

pub(in crate::commands::setup) fn install(
    text: &str,
    template: &str,
    hook_command: &HookCommand,
) -> Result<(String, EditHints), EditError> {
    if text.is_empty() {
        return Ok((written(template, hook_command), EditHints::default()));
    }
    Err(EditError::at(
        text,
        0,
        "a file with this name exists that agtmux did not write; move it and run agtmux setup again",
    ))
}

/// Whether setup wrote this file, with any version and any path of agtmux. Fails if the file was changed since.
pub(in crate::commands::setup) fn is_installed(text: &str) -> Result<bool, EditError> {
    let Some((digest, body)) = text.strip_prefix(MARK).and_then(|rest| rest.split_once('\n')) else { return Ok(false) };
    if digest == digest_of(body) {
        return Ok(true);
    }
    Err(EditError::at(
        text,
        0,
        "the file was changed after agtmux wrote it; move or delete it and run agtmux setup again",
    ))
}

pub(in crate::commands::setup) fn is_current(text: &str, template: &str, hook_command: &HookCommand) -> bool {
    text == written(template, hook_command)
}

fn written(template: &str, hook_command: &HookCommand) -> String {
    let program = format!("const PROGRAM = {}", serde_json::Value::from(hook_command.program()));
    let body = template.replacen(PROGRAM, &program, 1);
    format!("{MARK}{}\n{body}", digest_of(&body))
}

fn digest_of(body: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, body.as_bytes()).simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "// What it does.\nconst PROGRAM = \"agtmux\";\nrun();\n";

    fn hook_command() -> HookCommand {
        HookCommand::new("/opt/a \"b\"/agtmux", "pi")
    }

    #[test]
    fn a_written_file_is_recognized() {
        let (text, _) = install("", TEMPLATE, &hook_command()).expect("there was nothing");
        assert!(text.contains(r#"const PROGRAM = "/opt/a \"b\"/agtmux";"#), "{text}");
        assert_eq!(is_installed(&text), Ok(true));
        assert!(is_current(&text, TEMPLATE, &hook_command()));
        let elsewhere = HookCommand::new("/usr/bin/agtmux", "pi");
        assert!(!is_current(&text, TEMPLATE, &elsewhere) && !is_current(&text, "another version", &hook_command()));
    }

    #[test]
    fn other_files_and_changed_files_are_refused() {
        assert_eq!(is_installed("export default () => {}\n"), Ok(false));
        assert!(install("export default () => {}\n", TEMPLATE, &hook_command()).is_err());
        let (text, _) = install("", TEMPLATE, &hook_command()).expect("there was nothing");
        let fault = is_installed(&text.replace("run()", "walk()")).expect_err("it was changed");
        assert!(fault.why.contains("changed after"), "{fault:?}");
    }
}
