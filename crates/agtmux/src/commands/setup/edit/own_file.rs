//! A file that is all ours. Its first line tells whether somebody else has changed it since.

use uuid::Uuid;

use super::{EditError, EditHints};
use crate::commands::setup::command::HookCommand;

const MARK: &str = "// Written by `agtmux setup`, removed by `agtmux setup --uninstall`. Changes of yours stop both. ";

/// What stands in the text for the path of agtmux.
const PROGRAM: &str = "const PROGRAM = \"agtmux\"";

pub(in crate::commands::setup) fn install(
    text: &str,
    template: &str,
    ours: &HookCommand,
) -> Result<(String, EditHints), EditError> {
    if text.is_empty() {
        return Ok((written(template, ours), EditHints::default()));
    }
    Err(EditError::at(
        text,
        0,
        "there is a file of this name that agtmux has not written; move it and run agtmux setup again",
    ))
}

/// Also one that another version has written, or one for another place.
pub(in crate::commands::setup) fn is_installed(text: &str) -> Result<bool, EditError> {
    let Some((digest, body)) = text.strip_prefix(MARK).and_then(|rest| rest.split_once('\n')) else { return Ok(false) };
    if digest == digest_of(body) {
        return Ok(true);
    }
    Err(EditError::at(text, 0, "it was changed after agtmux wrote it; move or delete it and run agtmux setup again"))
}

pub(in crate::commands::setup) fn is_current(text: &str, template: &str, ours: &HookCommand) -> bool {
    text == written(template, ours)
}

fn written(template: &str, ours: &HookCommand) -> String {
    let program = format!("const PROGRAM = {}", serde_json::Value::from(ours.program()));
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

    fn ours() -> HookCommand {
        HookCommand::new("/opt/a \"b\"/agtmux", "pi")
    }

    #[test]
    fn what_was_written_is_known_again() {
        let (text, _) = install("", TEMPLATE, &ours()).expect("there was nothing");
        assert!(text.contains(r#"const PROGRAM = "/opt/a \"b\"/agtmux";"#), "{text}");
        assert_eq!(is_installed(&text), Ok(true));
        assert!(is_current(&text, TEMPLATE, &ours()));
        let elsewhere = HookCommand::new("/usr/bin/agtmux", "pi");
        assert!(!is_current(&text, TEMPLATE, &elsewhere) && !is_current(&text, "another version", &ours()));
    }

    #[test]
    fn what_others_wrote_or_changed_is_left_alone() {
        assert_eq!(is_installed("export default () => {}\n"), Ok(false));
        assert!(install("export default () => {}\n", TEMPLATE, &ours()).is_err());
        let (text, _) = install("", TEMPLATE, &ours()).expect("there was nothing");
        let fault = is_installed(&text.replace("run()", "walk()")).expect_err("it was changed");
        assert!(fault.why.contains("changed after"), "{fault:?}");
    }
}
