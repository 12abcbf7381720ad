mod examples;

use proptest::prelude::*;

use super::{recognize_prompt, table};
use examples::EXAMPLES;

#[test]
fn every_pattern_recognizes_its_prompts_and_no_lookalikes() {
    let mut wrong: Vec<&&str> = Vec::new();
    for row in EXAMPLES {
        wrong.extend(row.prompts.iter().filter(|line| recognize_prompt(line).as_deref() != Some(line.trim())));
        wrong.extend(row.not_prompts.iter().filter(|line| recognize_prompt(line).is_some()));
    }
    assert!(wrong.is_empty(), "judged wrongly: {wrong:#?}");
}

#[test]
fn each_pattern_matches_its_own_examples() {
    let patterns = table::PROMPT_PATTERNS.iter().chain(table::ABOVE_CURSOR_PATTERNS);
    let rules = super::RULES.iter().chain(&*super::ABOVE_CURSOR_RULES);
    assert_eq!(patterns.clone().count(), EXAMPLES.len(), "each pattern has examples");
    for ((row, rule), examples) in patterns.zip(rules).zip(EXAMPLES) {
        assert_eq!(row.name, examples.name);
        let missed: Vec<&&str> = examples.prompts.iter().filter(|line| !rule.pattern.is_match(line.trim())).collect();
        assert!(!examples.prompts.is_empty() && missed.is_empty(), "{} does not match {missed:?}", row.name);
    }
}

/// Output of programs that work and do not wait for input.
const WORK: &[&str] = &[
    "",
    "$ ",
    "user@host:~/src$ ",
    ">>> ",
    "Listening on http://127.0.0.1:3000",
    "Compiling agtmux-core v0.1.0 (/src/agtmux)",
    "    Finished `dev` profile [unoptimized] target(s) in 2.31s",
    "test result: ok. 12 passed; 0 failed; 0 ignored",
    "[12/40] Building CXX object main.o",
    "Downloading: 43% (1.2/2.8 MB)",
    "GET /login?next=/continue 200",
    "waiting for the password prompt",
    "Enter your password in the form and press the button.",
    "error: the option 'choice' expects a value",
    "Do not continue without a backup.",
    "It asks \"Proceed? [y/N]\" and you answer.",
    "choice of law: the parties agree",
    "[INFO] --- maven-install-plugin:2.4:install ---",
    "[2026-11-15T10:00:00Z INFO  app] user was asked to continue?",
    "10:31:07 vite hmr update /src/App.tsx password:",
    "Nov 15 10:00:00 host sshd[1]: Failed password:",
    "WARN: passphrase:",
    "level=info msg=\"continue?\"",
    "{\"prompt\": \"Proceed? [y/N]\"",
    "progress: [====>    ] 50%",
    "Progress (y/n): 3/4 done",
    "webpack compiled successfully (yes)",
    "Restarting, please wait:",
    "Selected option: b",
    "Deleting 3 files:",
    "What is new in this release?",
    "Proceeding with the installation",
    "Steps to continue:",
    "Removing intermediate container 3f2a",
];

#[test]
fn output_of_working_programs_is_not_a_prompt() {
    let wrong: Vec<_> = WORK.iter().filter(|line| recognize_prompt(line).is_some()).collect();
    assert!(wrong.is_empty(), "taken for prompts: {wrong:#?}");
}

#[test]
fn a_complete_line_can_only_ask_for_a_key() {
    assert_eq!(recognize_prompt("Press Enter to continue\n").as_deref(), Some("Press Enter to continue"));
    assert_eq!(recognize_prompt("Proceed? [y/N]\n"), None);
    assert_eq!(recognize_prompt("Password:\n"), None);
}

#[test]
fn a_very_long_line_is_not_a_prompt() {
    assert_eq!(recognize_prompt(&format!("{} [y/N]", "x".repeat(500))), None);
}

proptest! {
    #[test]
    fn any_line_can_be_judged(line in "\\PC{0,120}") {
        let _ = recognize_prompt(&line);
    }

    /// The result does not depend on the question's words or surrounding whitespace.
    #[test]
    fn a_bracketed_choice_is_a_prompt_after_any_question(question in "[A-Z][a-z]{2,8}( [a-z]{1,8}){0,6}", blanks in " {0,3}") {
        let line = format!("{question}? [y/N]{blanks}");
        prop_assert_eq!(recognize_prompt(&line), Some(line.trim().to_owned()));
    }

    /// A sentence that continues after the prompt words is prose.
    #[test]
    fn a_continued_sentence_is_not_a_prompt(rest in " [a-z]{2,8} [a-z]{2,8}\\.") {
        for asked in ["Proceed? [y/N]", "password:", "continue?", "choice:", "Enter your choice:"] {
            let line = format!("{asked}{rest}");
            prop_assert_eq!(recognize_prompt(&line), None);
        }
    }
}
