//! The menus of a fleet, in each format, with harmless and with hostile text.

use agtmux_api::wire::{ListResponse, ListSummary, PaneItem};
use agtmux_core::dialog::{Dialog, DialogOption};
use agtmux_core::evidence::DialogKind;
use agtmux_core::state::State;
use agtmux_testkit::hostile_texts::HOSTILE_TEXTS;

use super::*;
use crate::commands::menubar::waybar;
use crate::render::test_items::{at, pane, tally};

const RUNTIME: &str = "0f9c1d2e3b4a";
const FORMATS: [MenubarFormat; 3] = [MenubarFormat::Swiftbar, MenubarFormat::Xbar, MenubarFormat::Argos];

fn list(items: Vec<PaneItem>) -> ListResponse<PaneItem> {
    let count = |state: &State| u32::try_from(items.iter().filter(|item| item.state == Some(*state)).count());
    let counts: Vec<(State, u32)> = State::ALL.iter().map(|state| (*state, count(state).expect("few"))).collect();
    let summary = ListSummary { by_state: tally(&counts), ..ListSummary::default() };
    ListResponse {
        schema_version: 1,
        generated_at: at(0),
        filters: Default::default(),
        summary,
        partial: false,
        target_errors: Vec::new(),
        items,
    }
}

/// An agent that asks for permission, one that runs, and one that waits with a text that is too long for a menu.
fn fleet(text: &str) -> ListResponse<PaneItem> {
    let option = |n, label: &str| DialogOption { n, label: label.to_owned() };
    let options = vec![option(1, &format!("Yes {text}")), option(2, "No")];
    let dialog = |subject: &str| {
        let question = format!("Proceed {text}?");
        let dialog = Dialog::new(DialogKind::Approval, question, Some(subject.to_owned()), options.clone());
        Dialog { fingerprint: "4d5e6f".into(), ..dialog }
    };
    let waiting = PaneItem {
        runtime_id: Some(RUNTIME.into()),
        dialog: Some(dialog(&format!("rm -r build {text}"))),
        title: Some(format!("Title {text}")),
        window_name: format!("editor {text}"),
        ..pane(&format!("api {text}"), 1, 0, Some("claude"), Some(State::WaitingApproval))
    };
    let long = PaneItem {
        runtime_id: Some("77aa".into()),
        dialog: Some(dialog(&"x".repeat(200))),
        since: Some(at(50)),
        ..pane("web", 2, 0, Some("codex"), Some(State::WaitingApproval))
    };
    let running = PaneItem {
        runtime_id: Some("88bb".into()),
        name: Some(format!("reviewer {text}")),
        ..pane("web", 2, 1, Some("codex"), Some(State::Running))
    };
    list(vec![waiting, long, running])
}

fn menu(text: &str) -> FleetMenu {
    FleetMenu::new(Some(&fleet(text)), at(70))
}

fn rendered(format: MenubarFormat, text: &str) -> Vec<String> {
    lines(&menu(text), format, "/opt/my tools/agtmux")
}

#[test]
fn a_fleet_as_a_menu_of_each_format() {
    let formats = FORMATS.map(|format| format!("# {format:?}\n{}", rendered(format, "").join("\n")));
    let waybar = waybar::line(&menu(""));
    let off = lines(&FleetMenu::new(None::<&ListResponse<PaneItem>>, at(0)), MenubarFormat::Xbar, "/agtmux");
    let off_waybar = waybar::line(&FleetMenu::new(None::<&ListResponse<PaneItem>>, at(0)));
    let all = [formats.join("\n\n"), format!("# Waybar\n{waybar}\n{off_waybar}"), format!("# Off\n{}", off.join("\n"))];
    insta::assert_snapshot!(all.join("\n\n"));
}

/// The parameters that a menu program reads from a line: everything after the first `|`.
fn parameters_of(line: &str) -> Vec<String> {
    let Some((_, parameters)) = line.split_once('|') else { return Vec::new() };
    assert!(!parameters.contains('|'), "{line}");
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in parameters.chars() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => words.push(std::mem::take(&mut word)),
            (c, _) => word.push(c),
        }
    }
    assert_eq!(quote, None, "an open quote in {line}");
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

#[test]
fn foreign_text_cannot_add_a_line_a_level_or_a_parameter() {
    let more = [
        "x | bash=/bin/sh param1=-c",
        "|shell=rm",
        "-- deeper",
        "---",
        "~~~",
        "<b>bold</b> & \"q\" 'q'",
        ":smile: :sf.symbol:",
        "\u{1b}[31m",
        "a\\nb",
        "eval=imports",
    ];
    let hostile = HOSTILE_TEXTS.iter().map(|text| String::from_utf8_lossy(text).into_owned());
    for text in hostile.chain(more.map(str::to_owned)) {
        for format in FORMATS {
            let (plain, changed) = (rendered(format, "text"), rendered(format, &text));
            // A text of several lines in a question is shown as several lines.
            let levels = |lines: &[String]| -> Vec<(usize, Vec<String>)> {
                let level = |line: &str| line.chars().take_while(|c| *c == '-').count();
                let shown = lines.iter().filter(|line| !line.contains("? ") && !line.contains("│ "));
                shown.map(|line| (level(line), parameters_of(line))).collect()
            };
            assert_eq!(levels(&changed), levels(&plain), "{format:?} with {text:?}");
            for line in changed {
                let actions = ["bash", "shell", "href", "eval", "param1"];
                let runs = parameters_of(&line)
                    .iter()
                    .any(|word| word.split_once('=').is_some_and(|(name, _)| actions.contains(&name)));
                let is_own = line.contains("tools/agtmux");
                assert!(!runs || is_own, "{format:?}: {line}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
        let waybar = waybar::line(&menu(&text));
        assert!(!waybar.contains('\n'), "{waybar}");
        let value: serde_json::Value = serde_json::from_str(&waybar).expect("JSON");
        let tooltip = value["tooltip"].as_str().expect("a text");
        assert_eq!(tooltip.lines().count(), 3, "{tooltip}");
        for entity in tooltip.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|known| entity.starts_with(known)), "{tooltip}");
        }
        assert!(!tooltip.contains(['<', '>', '"', '\'']), "{tooltip}");
    }
}

#[test]
fn a_hostile_id_gets_no_action() {
    let mut fleet = fleet("");
    for item in &mut fleet.items {
        item.runtime_id = Some("x terminal=true bash=/bin/sh".into());
    }
    let lines = lines(&FleetMenu::new(Some(&fleet), at(70)), MenubarFormat::Swiftbar, "/agtmux");
    assert!(!lines.iter().any(|line| line.contains("/bin/sh")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("param1")), "{lines:?}");
}

#[test]
fn an_answer_is_offered_only_for_a_dialog_that_the_menu_shows_in_full() {
    let lines = rendered(MenubarFormat::Swiftbar, "");
    let answers = lines.iter().filter(|line| line.contains("param1=respond")).count();
    assert_eq!(answers, 2, "the two options of the short dialog: {lines:#?}");
    assert!(lines.iter().any(|line| line.contains("too long for a menu") && line.contains("param1=attach")));
    let truncated = |item: &mut PaneItem| item.dialog.as_mut().expect("a dialog").subject_truncated = true;
    let mut fleet = fleet("");
    truncated(&mut fleet.items[0]);
    let menu = FleetMenu::new(Some(&fleet), at(70));
    assert!(!super::lines(&menu, MenubarFormat::Xbar, "/agtmux").iter().any(|line| line.contains("param1=respond")));
}
