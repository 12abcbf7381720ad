use std::borrow::Borrow;

use agtmux_api::wire::{DeadPane, PaneItem};
use agtmux_core::runtime::RuntimeKind;
use agtmux_core::state::State;
use jiff::Timestamp;

use super::age::age;
use super::cell::TableCell;
use super::colour::Colour;
use super::locations::LocationFormat;
use super::table::{TableColumn, TextTable};

/// How many words of a dialog's question or subject the table may show.
const MAX_ASKS_WORDS: usize = 40;

/// The table of panes, in the given order.
pub(crate) fn panes(items: &[impl Borrow<PaneItem>], now: Timestamp) -> TextTable {
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
    draw(items, now, home.as_deref())
}

fn draw(items: &[impl Borrow<PaneItem>], now: Timestamp, home: Option<&str>) -> TextTable {
    let items: Vec<&PaneItem> = items.iter().map(Borrow::borrow).collect();
    let format = LocationFormat::for_servers(items.iter().map(|item| (&*item.identity.target, &*item.identity.server)));
    let since = |item: &PaneItem| item.since.map(|since| age(since, now));
    let cwd = |item: &PaneItem| item.cwd.as_deref().map(|cwd| below_home(cwd, home));
    let mut columns = vec![
        TableColumn::required("STATE", 7, &items, |item| state(item)),
        TableColumn::required("AGENT", 5, &items, |item| TableCell::from_option(agent(item).as_deref())),
        TableColumn::required("WHERE", 8, &items, |item| location(item, format)),
        TableColumn::optional("PANE", 3, &items, |item| TableCell::new(&item.identity.pane_id.to_string())),
        TableColumn::required("SINCE", 3, &items, |item| TableCell::from_option(since(item).as_deref())),
    ];
    if items.iter().any(|item| item.dialog.is_some()) {
        columns.push(TableColumn::optional("ASKS", 12, &items, |item| TableCell::from_option(asks(item).as_deref())));
    }
    // If every pane has an agent, the command column adds nothing.
    if items.iter().any(|item| item.agent_type.is_none()) {
        columns
            .push(TableColumn::optional("COMMAND", 6, &items, |item| TableCell::from_option(item.command.as_deref())));
    }
    columns.push(TableColumn::optional("TITLE", 10, &items, |item| TableCell::from_option(item.title.as_deref())));
    columns.push(TableColumn::optional("CWD", 8, &items, |item| TableCell::from_option(cwd(item).as_deref())));
    TextTable::new(columns)
}

/// The type and the name of the agent. Both can be used as a reference. A shared terminal is marked as one.
fn agent(item: &PaneItem) -> Option<String> {
    if item.runtime_kind == Some(RuntimeKind::Mirror) {
        return Some("(mirror)".into());
    }
    let kind = item.agent_type.as_ref()?;
    Some(item.name.as_ref().map_or_else(|| kind.to_string(), |name| format!("{kind} {name}")))
}

fn state(item: &PaneItem) -> TableCell {
    match (item.state, item.reason_code, item.dead) {
        (Some(state @ State::Unknown), Some(reason), _) => {
            TableCell::new(&format!("{state} ({reason})")).coloured(Colour::for_state(state))
        }
        (Some(state), _, _) if item.unseen => {
            TableCell::new(&format!("{state} (unseen)")).coloured(Colour::for_state(State::Completed))
        }
        (Some(state), _, _) => TableCell::new(state.as_str()).coloured(Colour::for_state(state)),
        (None, _, Some(dead)) => TableCell::new(&dead_label(dead)).coloured(Colour::Dim),
        (None, _, None) => TableCell::none(),
    }
}

fn dead_label(dead: DeadPane) -> String {
    match (dead.signal, dead.exit_code) {
        (Some(signal), _) => format!("dead (signal {signal})"),
        (None, Some(code)) => format!("dead (exit {code})"),
        (None, None) => "dead".to_owned(),
    }
}

/// What the agent asks, in one line: the command or file that needs approval, otherwise the question.
pub(crate) fn asks(item: &PaneItem) -> Option<String> {
    let dialog = item.dialog.as_ref()?;
    let text = dialog.subject.as_deref().filter(|subject| !subject.trim().is_empty()).unwrap_or(&dialog.question);
    // A column shows far fewer words.
    Some(text.split_whitespace().take(MAX_ASKS_WORDS).collect::<Vec<_>>().join(" "))
}

/// The place of the pane as tmux users write it: `session:window.pane`.
fn location(item: &PaneItem, format: LocationFormat) -> TableCell {
    let id = &item.identity;
    TableCell::new(&format.session(&id.target, &id.server, &id.session_name))
        .with_tail(format!(":{}.{}", item.window_index, item.pane_index))
}

fn below_home(cwd: &str, home: Option<&str>) -> String {
    match home.and_then(|home| cwd.strip_prefix(home)) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => cwd.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_items::{at, drawn, pane, wide};
    use agtmux_core::dialog::Dialog;
    use agtmux_core::evidence::DialogKind;
    use agtmux_core::state::ReasonCode;
    use unicode_width::UnicodeWidthStr;

    fn show(items: &[PaneItem], width: usize) -> String {
        drawn(&draw(items, at(100), Some("/home/me")), width)
    }

    fn some_panes() -> Vec<PaneItem> {
        let mut waiting = pane("work", 1, 2, Some("claude"), Some(State::WaitingApproval));
        waiting.title = Some("✳ Fix the login".into());
        let mut unknown = pane("work", 1, 3, Some("codex"), Some(State::Unknown));
        unknown.reason_code = Some(ReasonCode::NoAdapter);
        unknown.title = Some("日本語のタイトル".into());
        vec![waiting, unknown]
    }

    #[test]
    fn the_table_shows_one_row_per_agent() {
        insta::assert_snapshot!(show(&some_panes(), 120), @r"
        STATE                 AGENT   WHERE     PANE  SINCE  TITLE             CWD
        waiting_approval      claude  work:1.2  %2    1m     ✳ Fix the login   ~/src
        unknown (no_adapter)  codex   work:1.3  %3    1m     日本語のタイトル  ~/src
        ");
    }

    #[test]
    fn an_unseen_agent_is_marked() {
        let mut unseen = pane("work", 1, 2, Some("claude"), Some(State::Idle));
        unseen.unseen = true;
        let seen = pane("work", 1, 3, Some("codex"), Some(State::Completed));
        insta::assert_snapshot!(show(&[unseen, seen], 60), @r"
        STATE          AGENT   WHERE     PANE  SINCE  TITLE  CWD
        idle (unseen)  claude  work:1.2  %2    1m     -      ~/src
        completed      codex   work:1.3  %3    1m     -      ~/src
        ");
    }

    #[test]
    fn the_name_is_shown_after_the_type() {
        let mut named = pane("work", 1, 2, Some("claude"), Some(State::Idle));
        named.name = Some("reviewer".into());
        assert!(show(&[named], 120).contains("claude reviewer  work:1.2"));
    }

    #[test]
    fn a_dialog_is_shown_by_its_subject_or_its_question() {
        let mut approval = pane("work", 1, 2, Some("claude"), Some(State::WaitingApproval));
        let ask = |subject: Option<&str>, question: &str| {
            Some(Dialog::new(DialogKind::Approval, question.into(), subject.map(str::to_owned), Vec::new()))
        };
        approval.dialog = ask(Some("Bash command\n  git push --force\n"), "Do you want to proceed?");
        let mut question = pane("work", 1, 3, Some("codex"), Some(State::WaitingInput));
        question.dialog = ask(None, "Which colour?");
        let idle = pane("work", 1, 4, Some("codex"), Some(State::Idle));
        insta::assert_snapshot!(show(&[approval, question, idle], 120), @r"
        STATE             AGENT   WHERE     PANE  SINCE  ASKS                           TITLE  CWD
        waiting_approval  claude  work:1.2  %2    1m     Bash command git push --force  -      ~/src
        waiting_input     codex   work:1.3  %3    1m     Which colour?                  -      ~/src
        idle              codex   work:1.4  %4    1m     -                              -      ~/src
        ");
    }

    #[test]
    fn narrow_terminals_keep_the_required_columns() {
        insta::assert_snapshot!(show(&some_panes(), 48), @r"
        STATE                 AGENT   WHERE     SINCE
        waiting_approval      claude  work:1.2  1m
        unknown (no_adapter)  codex   work:1.3  1m
        ");
        insta::assert_snapshot!(show(&some_panes(), 30), @r"
        STATE     AGENT  WHERE     SI…
        waiting…  clau…  work:1.2  1m
        unknown…  codex  work:1.3  1m
        ");
    }

    #[test]
    fn panes_without_agents_show_their_command() {
        let mut shell = pane("work", 1, 1, None, None);
        shell.command = Some("vim".into());
        let mut dead = pane("work", 1, 2, None, None);
        dead.dead = Some(DeadPane { exit_code: Some(1), signal: None });
        insta::assert_snapshot!(show(&[shell, dead], 120), @r"
        STATE          AGENT  WHERE     PANE  SINCE  COMMAND  TITLE  CWD
        -              -      work:1.1  %1    -      vim      -      ~/src
        dead (exit 1)  -      work:1.2  %2    -      -        -      ~/src
        ");
    }

    #[test]
    fn the_server_is_shown_if_there_are_several() {
        let mut other = pane("work", 1, 2, Some("codex"), Some(State::Running));
        other.identity.server = "second".into();
        let here = pane("work", 1, 2, Some("claude"), Some(State::Idle));
        let text = show(&[other, here], 120);
        assert!(text.contains("host@default work:1.2") && text.contains("host@second work:1.2"), "{text}");
    }

    #[test]
    fn hostile_text_stays_in_its_line_and_its_column() {
        let mut hostile = pane("a\nb\x1b[2J", 1, 2, Some("cl\x07aude"), Some(State::Running));
        hostile.title = Some("\x1b]0;x\x07\u{202e}evil\r\n".repeat(20_000));
        hostile.cwd = Some("/tmp/\t$(touch x)\u{200b}".into());
        for width in 1..130 {
            let text = show(std::slice::from_ref(&hostile), width);
            assert_eq!(text.lines().count(), 2, "at {width}");
            assert!(text.lines().all(|line| line.width() <= width), "at {width}: {text}");
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "at {width}: {text:?}");
        }
        let unlimited = wide(&draw(&[hostile], at(100), None));
        assert!(unlimited.len() < 2000, "{}", unlimited.len());
    }
}
