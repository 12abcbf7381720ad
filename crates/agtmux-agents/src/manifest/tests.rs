use super::*;

const GOOD: &str = "contract = 1\nname = \"x\"\n[process]\nprograms = [\"x\"]\n";
const LAYOUT: &str = "[layout]\nprompt = '^>'\nfooter = 1\n";

fn error(text: &str) -> String {
    Manifest::parse("x.toml", text).expect_err("the manifest is invalid").to_string()
}

fn with(rest: &str) -> String {
    format!("{GOOD}{LAYOUT}{rest}")
}

#[test]
fn a_manifest_needs_only_a_name_and_a_program() {
    let manifest = Manifest::parse("x.toml", GOOD).expect("valid manifest");
    assert_eq!((manifest.name.as_str(), manifest.version), ("x", 1));
}

#[test]
fn errors_name_the_invalid_key() {
    assert!(error("name = \"x\"").contains("contract"));
    assert!(error(&GOOD.replace("name = \"x\"", "name = \"X y\"")).contains("lower-case"));
    assert!(error(&GOOD.replace("[\"x\"]", "[]")).contains("at least one program"));
    assert!(error(&GOOD.replace("[\"x\"]", "[\"a/x\"]")).contains("names, not paths"));
    assert!(error(&format!("{GOOD}helpers = [[]]\n")).contains("empty list"));
}

#[test]
fn unknown_keys_cause_warnings() {
    let text = with(
        "line = 1\n[[screen]]\nname = 'r'\nregion = 'last'\nall = ['x']\nstate = 'idle'\ncolour = 1\n[answers]\nundo = 1\n",
    );
    let warnings = Manifest::parse("x.toml", &text).expect("valid manifest").warnings;
    let about = |key: &str| warnings.iter().filter(|warning| warning.contains(key)).count();
    assert_eq!((warnings.len(), about("layout.line"), about("screen.0.colour"), about("answers.undo")), (3, 1, 1, 1));
    assert!(warnings.iter().all(|warning| warning.starts_with("x.toml:")), "{warnings:?}");
}

#[test]
fn another_contract_is_rejected_before_its_keys_are_read() {
    let message = error("contract = 2\nunknown_key = true\n");
    assert_eq!(
        message,
        "x.toml:1: written for contract 2, but this agtmux reads contract 1; update agtmux or the manifest"
    );
}

#[test]
fn errors_name_the_file_and_the_invalid_rule() {
    let screen = |rest: &str| with(&format!("[[screen]]\nname = 'r'\nstate = 'idle'\n{rest}\n"));
    let dialog = |rest: &str| with(&format!("[[dialog]]\nname = 'd'\nkind = 'approval'\n{rest}\n"));
    let title = |rest: &str| with(&format!("[[title]]\nname = 't'\n{rest}\n"));
    for (text, expected) in [
        (screen("region = 'last'\nall = ['(']"), "rule 'r': 'all' is not a valid regular expression"),
        (screen("region = 'last'\nany = ['']"), "rule 'r': 'any' is empty"),
        (screen("region = 'last'\nall = ['\\w{999}{999}']"), "rule 'r': 'all' is not a valid regular expression"),
        (screen("region = 'last'\nnone = ['x']"), "rule 'r' needs a pattern"),
        (screen("region = 'footer'\nall = ['x']\nneeds = 'no_box'"), "rule 'r' can never match"),
        (screen("region = 'nowhere'\nall = ['x']"), "unknown variant `nowhere`"),
        (screen("region = 'last'\nall = ['x']").replace("idle", "unknown"), "rule 'r' must not have the state"),
        (screen("region = 'last'\nall = ['x']").replace("'r'", "'R r'"), "rule 'R r': a name may contain"),
        (
            screen("region = 'last'\nall = ['x']").replace(LAYOUT, ""),
            "rule 'r' judges a screen, but the manifest has no",
        ),
        (dialog("options = 'inline'\nhint = 'x'"), "dialog 'd': 'choices' is required"),
        (dialog("options = 'listed'\nhint = 'x'"), "dialog 'd': 'marker' is required"),
        (dialog("options = 'numbered'"), "dialog 'd' would match any list"),
        (dialog("options = 'none'\nhead = 'x'"), "dialog 'd' has no options: it requires a 'hint'"),
        (dialog("options = 'numbered'\nhint = '['"), "dialog 'd': 'hint' is not a valid regular expression"),
        (title("match = '*'\nstate = 'idle'"), "rule 't': 'match' is not a valid regular expression"),
        (title("match = 'x'\nstate = 'unknown'"), "rule 't' must not have the state"),
        (
            title("match = 'x'\nstate = 'idle'")
                .replace("[[title]]", "[[title]]\nname = 't'\nmatch = 'y'\nstate = 'idle'\n[[title]]"),
            "two rules are named 't'",
        ),
        (with("[answers]\noption = 'left'"), "'answers.option' must be '{n}', 'down' or 'right', not 'left'"),
        (
            with("[answers]\napprove = { option = '^Yes' }"),
            "'answers' chooses an option, so it requires the key 'option'",
        ),
        (
            with("[answers]\napprove = { option = '(' }\noption = '{n}'"),
            "'answers.approve' is not a valid regular expression",
        ),
        (
            with("[answers]\napprove = { option = '^Yes', except = '[' }\noption = '{n}'"),
            "'answers.approve' is not a valid regular expression",
        ),
        (with("[answers]\ntext = { at = 'a', take = 'b' }\noption = '{n}'"), "'answers.text' has both 'at' and 'take'"),
        (with("[answers.dialogs.d]\ndeny = ['n']"), "'answers.dialogs.d' refers to a dialog that has no rule"),
    ] {
        let message = error(&text);
        assert!(message.starts_with("x.toml:") && message.contains(expected), "{message}\nbut expected\n{expected}");
    }
}

#[test]
fn rules_are_sorted_by_priority() {
    let rule = |name: &str, priority: i32| {
        format!("[[screen]]\nname = '{name}'\nregion = 'last'\nall = ['x']\nstate = 'idle'\npriority = {priority}\n")
    };
    let text = with(&[rule("a", 0), rule("b", 5), rule("c", 0), rule("d", -1)].concat());
    let manifest = Manifest::parse("x.toml", &text).expect("valid manifest");
    let order: Vec<&str> = manifest.screen.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(order, ["b", "a", "c", "d"]);
}

#[test]
fn a_dialog_uses_the_default_answers_unless_it_overrides_them() {
    let text = with(
        "[[dialog]]\nname = 'd'\nkind = 'input'\noptions = 'numbered'\nhint = 'x'\n\
         [answers]\napprove = ['1']\ndeny = ['Escape']\noption = '{n}'\n[answers.dialogs.d]\napprove = []\noption = 'down'\n",
    );
    let manifest = Manifest::parse("x.toml", &text).expect("valid manifest");
    let answers = &manifest.answers;
    assert_eq!(answers.for_dialog("other").option, Some(OptionKeys::Digits));
    assert_eq!(answers.for_dialog("d").option, Some(OptionKeys::Down));
    assert!(answers.for_dialog("d").approve.is_none());
    assert!(matches!(&answers.for_dialog("d").deny, Some(AnswerMethod::Keys(keys)) if keys == &["Escape"]));
}
