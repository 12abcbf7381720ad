//! Reads dialogs from screens of different widths and situations.

use agtmux_agents::{AnswerMethod, CapturedScreen, Judgement, OptionKeys, SavedScreen, judge};
use agtmux_core::dialog::Dialog;
use agtmux_core::state::State;

use crate::builtin;

fn judged(agent: &str, text: &str) -> Judgement {
    judge(builtin(agent), &SavedScreen { text: text.as_bytes(), title: None, command: None })
}

fn dialog(agent: &str, text: &str) -> Dialog {
    let judgement = judged(agent, text);
    judgement.dialog.unwrap_or_else(|| panic!("no dialog in\n{text}"))
}

fn labels(dialog: &Dialog) -> Vec<&str> {
    dialog.options.iter().map(|option| option.label.as_str()).collect()
}

const ASK: &str = "\
❯ ASK

────────────────────────────────────────────────────────────────────────────────
 ☐ Colour

Which colour should the button be?

❯ 1. Red
     The red one
  2. Blue
     The blue one
  3. Type something.
────────────────────────────────────────────────────────────────────────────────
  4. Chat about this

Enter to select · ↑/↓ to navigate · Esc to cancel
";

#[test]
fn option_labels_do_not_contain_descriptions() {
    let asked = dialog("claude", ASK);
    assert_eq!(asked.question, "Which colour should the button be?");
    assert_eq!(labels(&asked), ["Red", "Blue", "Type something.", "Chat about this"]);
    assert_eq!(judged("claude", ASK).state, State::WaitingInput);
}

#[test]
fn the_selection_does_not_change_the_fingerprint() {
    let moved = ASK.replace("❯ 1. Red", "  1. Red").replace("  2. Blue", "❯ 2. Blue");
    assert_eq!(dialog("claude", ASK).fingerprint, dialog("claude", &moved).fingerprint);
    let other = ASK.replace("2. Blue", "2. Green");
    assert_ne!(dialog("claude", ASK).fingerprint, dialog("claude", &other).fingerprint);
    let ticked = ASK.replace("1. Red", "1. [✔] Red").replace("2. Blue", "2. [ ] Blue");
    assert_eq!(dialog("claude", ASK).fingerprint, dialog("claude", &ticked).fingerprint);
}

#[test]
fn a_list_with_two_markers_or_none_is_not_a_dialog() {
    for text in [ASK.replace("  2. Blue", "❯ 2. Blue"), ASK.replace("❯ 1. Red", "  1. Red")] {
        assert_eq!(judged("claude", &text).state, State::Unknown);
    }
}

#[test]
fn menus_and_startup_questions_are_dialogs() {
    let model = "────────────────────────\n  Select model\n  Switch between models.\n\n    1. Default (recommended) ✔  Sonnet 4.5\n  \
                 ❯ 2. Opus                      Opus 4.1\n    3. Haiku                     Haiku 4.5\n\n  Enter to confirm · Esc to exit\n";
    assert_eq!(judged("claude", model).state, State::WaitingInput);
    assert_eq!(labels(&dialog("claude", model)), ["Default (recommended)", "Opus", "Haiku"]);
    let trust = "────────────────────────\n Accessing workspace:\n\n /srv/proj\n\n Quick safety check: Is this a project you \
                 trust?\n\n   1. Yes, I trust this folder\n ❯ 2. No, exit\n\n Enter to confirm · Esc to cancel\n";
    assert_eq!(judged("claude", trust).state, State::WaitingApproval);
}

#[test]
fn wrapped_labels_are_joined() {
    let narrow = "────────────────────────\n Bash command\n\n   touch /srv/project/work/with/a/long/pa\n   th/a.txt\n\n Do you want to \
                  proceed?\n ❯ 1. Yes\n   2. Yes, and always allow access\n      to /srv/project/work from this\n      project\n   3. No\n\n Esc \
                  to cancel · Tab to\n amend\n";
    let asked = dialog("claude", narrow);
    assert_eq!(labels(&asked), ["Yes", "Yes, and always allow access to /srv/project/work from this project", "No"]);
    assert_eq!(asked.question, "Do you want to proceed?");
}

#[test]
fn codex_asks_for_approval() {
    let text = "› RUN touch a\n\n  Would you like to run the following command?\n\n  Reason: it must be\n\n  $ touch a\n\n› 1. Yes, proceed \
                (y)\n  2. Yes, and don't ask again for commands that start with `touch` (p)\n  3. No, and tell Codex what to do\n     \
                differently (esc)\n\n  Press enter to confirm or esc to cancel\n";
    let asked = dialog("codex", text);
    assert_eq!(asked.question, "Would you like to run the following command?");
    assert_eq!(asked.subject.as_deref(), Some("Reason: it must be\n$ touch a"));
    assert_eq!(asked.options[2].label, "No, and tell Codex what to do differently (esc)");
    assert_eq!(judged("codex", text).state, State::WaitingApproval);
}

#[test]
fn gemini_asks_for_approval_without_a_hint() {
    let text = " > RUN touch a\n\n╭──────────────────────────────╮\n│ ?  Shell touch a             │\n│                              \
                │\n│ Allow execution of [Shell]?  │\n│                              │\n│ ● 1. Allow once              │\n│   2. Allow for \
                this session │\n│   3. No, suggest changes (esc)│\n╰──────────────────────────────╯\n";
    let asked = dialog("gemini", text);
    assert_eq!(asked.question, "Allow execution of [Shell]?");
    assert_eq!(labels(&asked), ["Allow once", "Allow for this session", "No, suggest changes (esc)"]);
    assert_eq!(
        judged("gemini", &text.replace("Allow execution of [Shell]?", "Apply this change?")).state,
        State::WaitingApproval
    );
    let looping = "╭───────────────╮\n│ A potential loop was detected │\n│ │\n│ ● 1. Keep loop detection enabled (esc) │\n│   2. Disable \
                   it for this session │\n╰───────────────╯\n";
    assert_eq!(judged("gemini", looping).state, State::WaitingInput);
}

#[test]
fn answer_keys_are_found_by_rule_name() {
    let keys = |agent: &str, rule: &str| builtin(agent).answer_keys(rule).clone();
    let permission = judged("claude", &ASK.replace("☐ Colour", "Bash").replace("Which", "Do you want to know which"));
    assert_eq!(permission.rule.as_deref(), Some("permission"));
    assert!(matches!(keys("claude", "permission").deny, Some(AnswerMethod::Keys(keys)) if keys == ["Escape"]));
    assert_eq!(keys("claude", "consent-list").option, Some(OptionKeys::Down));
    assert!(keys("claude", "menu").approve.is_none());
}

#[test]
fn an_approval_never_chooses_an_option_that_allows_more() {
    let approved = |agent: &str, rule: &str, labels: &[&str]| {
        let method = builtin(agent).answer_keys(rule).approve.clone();
        let Some(AnswerMethod::Option(pattern)) = method else {
            panic!("{agent} does not approve {rule} by an option")
        };
        labels.iter().position(|label| pattern.is_match(label)).map(|at| at + 1)
    };
    let once = ["Yes", "Yes, and always allow access to /srv/project from this project", "No"];
    let edits = ["Yes, allow all edits during this session (shift+tab)", "Yes", "No"];
    let plan = ["Yes, and auto-accept edits", "Yes, and manually approve edits", "No, keep planning"];
    for agent in ["claude", "qwen", "copilot"] {
        assert_eq!(approved(agent, "permission", &once), Some(1), "{agent}");
        assert_eq!(approved(agent, "permission", &edits), Some(2), "{agent}");
        assert_eq!(approved(agent, "plan", &plan), Some(2), "{agent}");
    }
    assert_eq!(
        approved("claude", "plan", &["Yes, and switch to default (ask each time) for this session", "No"]),
        Some(1)
    );
    assert_eq!(
        approved("claude", "plan", &["Yes, and bypass permissions", "No"]),
        None,
        "the caller must name the option"
    );
    assert_eq!(approved("gemini", "plan", &["Yes, automatically accept edits", "Yes, manually accept edits"]), Some(2));
    assert_eq!(approved("gemini", "permission", &["Yes, allow always", "Yes, allow once", "No (esc)"]), Some(2));
    assert_eq!(approved("codex", "permission", &["Yes, and don't ask again for `touch`", "Yes, proceed"]), Some(2));
    assert_eq!(approved("codex", "consent", &["Trust all and continue", "Trust and continue"]), Some(2));
}

#[test]
fn the_selected_option_is_found_by_marker_or_by_style() {
    let selected = |agent: &str, text: &str| {
        let reading = builtin(agent).read_screen(&CapturedScreen::parse(text.as_bytes()), None);
        assert!(reading.dialog().is_some(), "{text}");
        reading.selected
    };
    assert_eq!(selected("claude", ASK), Some(1));
    assert_eq!(selected("claude", &ASK.replace("❯ 1.", "  1.").replace("  2.", "❯ 2.")), Some(2));
    let row = |options: [&str; 3]| {
        let options = options.join("\x1b[48;2;30;30;30m  ");
        format!(
            "  ┃  △ Permission required\n  ┃    # Shell command\n  ┃\n  ┃  $ touch a\n  ┃\n  \
             \x1b[48;2;20;20;20m┃\x1b[48;2;30;30;30m  {options}\x1b[48;2;30;30;30m          ⇆ select  enter confirm\n  ┃\n"
        )
    };
    let filled = |label: &str| format!("\x1b[48;2;245;167;66m {label} ");
    assert_eq!(selected("opencode", &row([&filled("Allow once"), " Allow always ", " Reject "])), Some(1));
    assert_eq!(selected("opencode", &row([" Allow once ", " Allow always ", &filled("Reject")])), Some(3));
    // Without exactly one selected option, the result is None.
    assert_eq!(selected("opencode", &row([" Allow once ", " Allow always ", " Reject "])), None);
    assert_eq!(selected("opencode", &row([&filled("Allow once"), &filled("Allow always"), " Reject "])), None);
}

#[test]
fn half_block_borders_belong_to_the_input_box() {
    let text = "✦ hello\n\n                     ? for shortcuts\n────────────────\n Shift+Tab to accept edits\n▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄\n >   Type your \
                message or @path/to/file\n▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\n workspace (/directory)   sandbox\n /srv  no sandbox\n";
    assert_eq!(judged("gemini", text).state, State::Idle);
    let running = text.replace("                     ? for", " ⠦ Thinking... (esc to cancel, 2s)   ? for");
    assert_eq!(judged("gemini", &running).state, State::Running);
}

#[test]
fn idle_is_not_concluded_when_the_spinner_may_be_off_the_screen() {
    let palette = "────────────────\n Shift+Tab to accept edits\n\n > /h\n\n help    For help\n hooks   Manage hooks\n auth    Manage \
                   authentication\n workspace (/directory)   sandbox\n /srv  no sandbox\n";
    let state_with_title = |title: &str, text: &str| {
        let saved = SavedScreen { text: text.as_bytes(), title: Some(title), command: Some("node") };
        judge(builtin("gemini"), &saved).state
    };
    assert_eq!(state_with_title("host", palette), State::Unknown);
    assert_eq!(state_with_title("◇  Ready (proj)", palette), State::Idle);
    assert_eq!(state_with_title("✦  Working… (proj)", palette), State::Running);
    let whole = format!("✦ hello\n\n\n\n{palette}");
    assert_eq!(state_with_title("host", &whole), State::Idle);
    // If a command has the keyboard focus, only the top of its frame shows that it runs. Here the top is cut off.
    let cut = format!("│ some output   │\n╰───────────────╯\n\n\n{palette}");
    assert_eq!(state_with_title("host", &cut), State::Unknown);
}

#[test]
fn a_scrolled_list_keeps_its_numbers() {
    let text = "▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔\n   Select model\n\n   ↑ 4. Sonnet                 Sonnet 5.5\n     5. Haiku                  Haiku 5.5\n   ❯ 6. Sonnet 4.5 ✔           \
                Newer version\n                               available\n\n   Enter to set as default · Esc to cancel\n";
    let numbers: Vec<u32> = dialog("claude", text).options.iter().map(|option| option.n).collect();
    assert_eq!((numbers, labels(&dialog("claude", text))), (vec![4, 5, 6], vec!["Sonnet", "Haiku", "Sonnet 4.5"]));
}

#[test]
fn a_question_with_more_rows_than_the_pane_is_a_dialog() {
    let many = "Which shapes?\n\n❯ 1. [ ] Round\n  The round one\n  2. [ ] Square\n  The square one\n↓ 3. [ ] Oval\n  The oval one\n     \
                Submit\n────────────────────\n  5. Chat about this\n\nEnter to select · ↑/↓ to navigate · Esc to cancel\n";
    assert_eq!(labels(&dialog("claude", many)), ["Round", "Square", "Oval", "Chat about this"]);
    assert_eq!(judged("claude", many).state, State::WaitingInput);
    let cut = "  2. Second\n     A description\n↓ 3. Third\n     A description\n────────────────────\n  6. Chat about this\n\nEnter to \
               select · ↑/↓ to navigate · Esc to cancel\n";
    assert_eq!(judged("claude", cut).state, State::WaitingInput);
}

#[test]
fn options_above_the_users_last_message_do_not_belong_to_a_panel() {
    let text = "● It looks so:\n  Do you want to proceed?\n  ❯ 1. Yes\n    2. No\n\n❯ /resume\n────────────────────\n\nResume Session\n\n  \
                Type to search · Esc to cancel\n";
    let judgement = judged("claude", text);
    assert_eq!((judgement.dialog, judgement.state), (None, State::Unknown), "the panel has no readable options");
}

#[test]
fn options_above_the_border_of_a_panel_do_not_belong_to_it() {
    let quoted = "● It looks so:\n  Do you want to proceed?\n  ❯ 1. Yes\n    2. No\n\n";
    let panel = "────────────────────\n  Search prompts\n\n  Enter to use · Esc to cancel · ctrl+s to scope\n";
    assert_eq!(judged("claude", &format!("{quoted}{panel}")).dialog, None);
}

#[test]
fn a_panel_below_an_old_input_box_waits_for_input() {
    let old = "● Done.\n\n────────────────────\n\x1b[39m❯ \x1b[2mTry\x1b[0m\n────────────────────\n";
    for hint in ["Esc to cancel", "Enter to view · Esc to close", "Esc to go back · ↑/↓ to navigate"] {
        let text = format!("{old}   Version:   2.1.325\n   Session name:   none\n\n   {hint}\n");
        assert_eq!(judged("claude", &text).state, State::WaitingInput, "{hint}");
    }
    assert_eq!(judged("claude", old).state, State::Idle);
}

#[test]
fn aider_at_an_unread_prompt_is_not_running() {
    let turn = "────────────────────\ndiff> SAY hi\n\nhi\n\nTokens: 2.3k sent, 2 received.\n";
    let at_rest = [
        // Files in the chat are listed between the line and the prompt.
        format!("{turn}────────────────────\nfoo.py\ndiff>\n"),
        format!("{turn}────────────────────\nfoo.py\ndiff> \n"),
        // Without `--pretty`, aider draws no line.
        "diff> SAY hi\n\nhi\n\ndiff>\n".to_owned(),
        // This sign marks an option of a list and is not a prompt.
        "> 1. Sign in\n     Usage included\nplans\n\n  2. Use a key\n".to_owned(),
    ];
    for text in at_rest {
        assert_ne!(judged("aider", &text).state, State::Running, "{text}");
    }
}

#[test]
fn a_list_scrolled_below_an_arrow_keeps_its_numbers() {
    let text = captured("gemini-28-80-ask-scrolled");
    let asked = dialog("gemini", &text);
    let options: Vec<(u32, &str)> = asked.options.iter().map(|option| (option.n, option.label.as_str())).collect();
    assert_eq!(options, [(3, "Enter a custom value")]);
    assert_eq!(asked.question, "Which colour should the button be?");
    // Without the arrow, the missing first options make the list unreadable.
    assert_eq!(dialog("gemini", &text.replace('▲', " ")).options, []);
}

#[test]
fn gemini_asks_about_an_exhausted_quota_in_the_middle_of_a_turn() {
    let text = "╭───────────────────────────────╮\n│ Usage limit reached for gemini-2.5-flash. │\n│ │\n│ ● 1. Keep trying │\n│   2. Stop │\n│ \
                │\n╰───────────────────────────────╯\n";
    let saved = SavedScreen { text: text.as_bytes(), title: Some("✦  Working… (proj)"), command: Some("node") };
    let judgement = judge(builtin("gemini"), &saved);
    assert_eq!((judgement.state, judgement.rule.as_deref()), (State::WaitingInput, Some("quota")));
    assert!(builtin("gemini").answer_keys("quota").approve.is_none());
}

#[test]
fn the_end_of_a_plan_dialog_is_not_a_menu() {
    let text = captured("gemini-60-plan");
    assert_eq!(judged("gemini", &text).rule.as_deref(), Some("plan-options"));
    let hint: String =
        text.lines().skip_while(|row| !row.contains("Enter to select")).flat_map(|row| [row, "\n"]).collect();
    assert_eq!(judged("gemini", &hint).state, State::WaitingApproval);
}

#[test]
fn qwen_asks_below_its_transcript() {
    let text = "  > RUN touch b.txt\n\n╭──────────────────────────────╮\n│ ?  Shell touch b.txt         │\n│                              │\n│ touch b.txt                  \
                │\n│                              │\n│ Allow execution of: 'touch'? │\n│                              │\n│ › 1. Yes, allow once         │\n│   2. Always \
                allow in this project │\n│   3. No (esc)                │\n╰──────────────────────────────╯\n\n  ⠏  Waiting for user confirmation...\n";
    let asked = dialog("qwen", text);
    assert_eq!(asked.question, "Allow execution of: 'touch'?");
    assert_eq!(labels(&asked), ["Yes, allow once", "Always allow in this project", "No (esc)"]);
    assert_eq!(judged("qwen", text).state, State::WaitingApproval);
}

/// A capture of the real agent.
fn captured(name: &str) -> String {
    let agent = name.split('-').next().unwrap_or(name);
    let path = format!("{}/evidence/screens/{agent}/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_question_with_several_answers_shows_the_ticked_ones() {
    let read = |name: &str| builtin("claude").read_screen(&CapturedScreen::parse(captured(name).as_bytes()), None);
    let (ticked, below) = (read("claude-120-choices"), read("claude-120-choices-next"));
    let dialog = ticked.dialog().expect("a dialog").clone();
    assert!(dialog.multiple);
    assert_eq!(dialog.question, "Which colours should the buttons have?");
    assert_eq!(labels(&dialog), ["Red", "Blue", "Green", "Type something", "Chat about this"]);
    assert_eq!(ticked.ticks, [(1, true), (2, false), (3, true), (4, false)]);
    assert_eq!((ticked.selected, below.selected), (Some(1), None), "the submit row has no number");
    assert_eq!(below.dialog().map(|dialog| &dialog.fingerprint), Some(&dialog.fingerprint));
    assert_eq!(ticked.observations[0].rule.name, "choices");
    assert!(read("claude-80-multi").dialog().is_some_and(|dialog| dialog.multiple));
    // Claude shows a review of the answers. Confirming it is part of the answer, unless an answer is missing.
    for (name, rule) in [("claude-120-review", "review"), ("claude-120-review-incomplete", "review-incomplete")] {
        let review = read(name);
        assert_eq!((review.observations[0].rule.name.as_str(), review.ticks.as_slice()), (rule, &[][..]));
        assert_eq!(labels(review.dialog().expect("a dialog")), ["Submit answers", "Cancel"]);
    }
    let then = |rule: &str| builtin("claude").answer_keys(rule).then.clone();
    assert!(["choices", "question"].iter().all(|rule| then(rule).keys().eq(["review"])));
}

#[test]
fn copilot_asks_with_a_list_between_two_lines() {
    let asked = dialog("copilot", &captured("copilot-question"));
    assert_eq!(asked.question, "Which colour should the button be?");
    assert_eq!(labels(&asked), ["Red", "Blue", "Other (type your answer)"]);
    assert_eq!(asked.subject.as_deref(), Some("Colour:"), "the subject contains no transcript text");
}

#[test]
fn qwen_asks_for_trust_and_for_an_answer() {
    let trust = dialog("qwen", &captured("qwen-trust"));
    assert_eq!(labels(&trust), ["Trust folder (proj)", "Trust parent folder (agt-abcdef)", "Don't trust (esc)"]);
    let asked = dialog("qwen", &captured("qwen-question"));
    assert_eq!(asked.question, "Which colour should the button be?");
    assert_eq!(labels(&asked), ["Red", "Blue", "Type something..."]);
}

#[test]
fn codex_asks_how_to_sign_in() {
    let text = "  Sign in with ChatGPT to use Codex as part of your paid plan\n  or connect an API key\n\n> 1. Sign in with ChatGPT\n     Usage included\n\n  2. Provide \
                your own API key\n     Pay for what you use\n\n  Press enter to continue\n";
    assert_eq!(labels(&dialog("codex", text)), ["Sign in with ChatGPT", "Provide your own API key"]);
    assert_eq!(judged("codex", text).state, State::WaitingInput);
}
