//! The text of notices. All text comes from agents and other programs, so it is redacted, sanitized and cut.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{Notice, NoticeAgent, NoticeKind, PaneItem};
use agtmux_core::state::State;
use agtmux_core::{redact, sanitize};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The most columns of a question, and of its subject.
const MAX_COLUMNS: usize = 300;
const MAX_NAME_COLUMNS: usize = 60;
/// The most agents that a digest describes. The others are counted.
const MAX_DIGEST_LINES: usize = 10;

/// Makes notices. The times in their texts are local times.
pub(super) struct NoticeWriter {
    pub(super) zone: TimeZone,
}

impl NoticeWriter {
    pub(super) fn about(&self, pane: &PaneItem, notice_id: &str, at: Timestamp) -> Notice {
        let agent = notice_agent(pane);
        let question = [&agent.question, &agent.subject].into_iter().flatten().map(|text| shown(text, MAX_COLUMNS));
        let question = question.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
        let lines = [question, self.place_and_time(&agent)];
        Notice {
            schema_version: SCHEMA_VERSION,
            kind: NoticeKind::Notify,
            notice_id: notice_id.to_owned(),
            at,
            escalated: false,
            title: title(&agent),
            text: lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n"),
            agents: vec![agent],
        }
    }

    /// One notice about several agents.
    pub(super) fn digest(&self, panes: &[&PaneItem], notice_id: &str, at: Timestamp) -> Notice {
        let agents: Vec<NoticeAgent> = panes.iter().map(|pane| notice_agent(pane)).collect();
        let line = |agent: &NoticeAgent| format!("{}: {}", title(agent), self.place_and_time(agent));
        let mut lines: Vec<String> = agents.iter().take(MAX_DIGEST_LINES).map(line).collect();
        if agents.len() > MAX_DIGEST_LINES {
            lines.push(format!("and {} more", agents.len() - MAX_DIGEST_LINES));
        }
        Notice {
            kind: NoticeKind::Digest,
            title: digest_title(&agents),
            text: lines.join("\n"),
            agents,
            ..self.test(notice_id, at)
        }
    }

    pub(super) fn test(&self, notice_id: &str, at: Timestamp) -> Notice {
        let time = at.to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string();
        Notice {
            schema_version: SCHEMA_VERSION,
            kind: NoticeKind::Test,
            notice_id: notice_id.to_owned(),
            at,
            escalated: false,
            title: "agtmux test".into(),
            text: format!("This is how agtmux notifies you. Sent at {time}."),
            agents: Vec::new(),
        }
    }

    /// Where the agent is, and since when: `work:1.0 on vm1, since 14:02`.
    fn place_and_time(&self, agent: &NoticeAgent) -> String {
        let session = shown(&agent.session_name, MAX_NAME_COLUMNS);
        let host = match agent.target.as_str() {
            "host" => String::new(),
            target => format!(" on {}", shown(target, MAX_NAME_COLUMNS)),
        };
        let since = agent.since.map(|since| since.to_zoned(self.zone.clone()).strftime(", since %H:%M").to_string());
        let since = since.unwrap_or_default();
        format!("{session}:{}.{}{host}{since}", agent.window_index, agent.pane_index)
    }
}

/// The notice that tells a channel that an earlier one is over.
pub(super) fn withdrawal(sent: &Notice, at: Timestamp) -> Notice {
    Notice { kind: NoticeKind::Withdraw, at, ..sent.clone() }
}

/// The whole notice on one line.
pub(super) fn one_line(notice: &Notice) -> String {
    let lines = std::iter::once(notice.title.as_str()).chain(notice.text.lines());
    lines.collect::<Vec<_>>().join(" · ")
}

fn notice_agent(pane: &PaneItem) -> NoticeAgent {
    let hidden = |text: &String| redact::text(text).into_owned();
    let dialog = pane.dialog.as_ref().filter(|_| pane.state.is_some_and(State::is_waiting));
    NoticeAgent {
        runtime_id: pane.runtime_id.clone().unwrap_or_default(),
        agent_type: pane.agent_type.as_ref().map(ToString::to_string).unwrap_or_default(),
        name: pane.name.clone(),
        target: pane.identity.target.clone(),
        server: pane.identity.server.clone(),
        session_name: pane.identity.session_name.clone(),
        window_index: pane.window_index,
        window_name: pane.window_name.clone(),
        pane_index: pane.pane_index,
        pane_id: pane.identity.pane_id,
        cwd: pane.cwd.as_ref().map(hidden),
        state: pane.state.unwrap_or(State::Unknown),
        since: pane.since,
        dialog_kind: dialog.map(|dialog| dialog.kind),
        question: dialog.map(|dialog| hidden(&dialog.question)),
        subject: dialog.and_then(|dialog| dialog.subject.as_ref()).map(hidden),
        fingerprint: dialog.map(|dialog| dialog.fingerprint.clone()),
    }
}

fn title(agent: &NoticeAgent) -> String {
    let kind = shown(&agent.agent_type, MAX_NAME_COLUMNS);
    let who = match &agent.name {
        Some(name) => format!("{} ({kind})", shown(name, MAX_NAME_COLUMNS)),
        None => kind,
    };
    let what = match agent.state {
        State::WaitingApproval => "asks for approval",
        State::WaitingInput => "asks a question",
        State::Error => "failed",
        State::Completed => "has finished",
        State::Running => "is running",
        State::Idle => "is idle",
        State::Unknown => "has an unknown state",
    };
    format!("{who} {what}")
}

fn digest_title(agents: &[NoticeAgent]) -> String {
    let count = |is: fn(State) -> bool| agents.iter().filter(|agent| is(agent.state)).count();
    let waiting = count(State::is_waiting);
    let failed = count(|state| state == State::Error);
    let finished = count(|state| matches!(state, State::Completed | State::Idle));
    let parts = [(waiting, "waiting"), (failed, "failed"), (finished, "finished")];
    let parts: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    format!("After quiet hours: {}", parts.join(", "))
}

/// The text on one line, safe for a terminal, with secrets redacted before it is cut.
fn shown(text: &str, columns: usize) -> String {
    let text = redact::text(text);
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    sanitize::for_column(&one_line, columns)
}

#[cfg(test)]
mod tests {
    use agtmux_api::wire::PaneIdentity;
    use agtmux_core::dialog::Dialog;
    use agtmux_core::evidence::DialogKind;
    use agtmux_core::ids::{AgentType, PaneId, WindowId};
    use agtmux_testkit::hostile_texts::{HOSTILE_TEXTS, assert_terminal_safe};

    use super::*;

    fn writer() -> NoticeWriter {
        NoticeWriter { zone: TimeZone::UTC }
    }

    fn at() -> Timestamp {
        Timestamp::from_second(1_790_942_520).expect("a time")
    }

    fn waiting(session: &str, question: &str, subject: &str) -> PaneItem {
        let identity = PaneIdentity {
            target: "host".into(),
            server: "default".into(),
            session_name: session.into(),
            window_id: WindowId(1),
            pane_id: PaneId(1),
        };
        let dialog = Dialog::new(DialogKind::Approval, question.into(), Some(subject.into()), Vec::new());
        PaneItem {
            runtime_id: Some("r".into()),
            agent_type: Some(AgentType::new("claude")),
            state: Some(State::WaitingApproval),
            since: Some(at()),
            dialog: Some(dialog),
            window_index: 2,
            ..PaneItem::new(identity, at())
        }
    }

    #[test]
    fn a_notice_names_agent_question_place_and_time() {
        let mut pane = waiting("work", "Run this\n  command?", "make test");
        let notice = writer().about(&pane, "n", at());
        assert_eq!(notice.title, "claude asks for approval");
        assert_eq!(notice.text, "Run this command? make test\nwork:2.0, since 12:02");
        assert_eq!(one_line(&notice), "claude asks for approval · Run this command? make test · work:2.0, since 12:02");
        pane.identity.target = "vm1".into();
        pane.name = Some("reviewer".into());
        pane.state = Some(State::Completed);
        let notice = writer().about(&pane, "n", at());
        assert_eq!(one_line(&notice), "reviewer (claude) has finished · work:2.0 on vm1, since 12:02");
    }

    #[test]
    fn secrets_are_redacted_before_the_text_is_cut() {
        let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
        for filler in [0, MAX_COLUMNS - 20] {
            let subject = format!("{} curl -H 'Authorization: token {secret}'", "x".repeat(filler));
            let notice = writer().about(&waiting("work", "Run?", &subject), "n", at());
            let whole = serde_json::to_string(&notice).expect("JSON");
            assert!(!whole.contains(&secret[..12]), "{whole}");
        }
    }

    #[test]
    fn hostile_texts_stay_one_safe_line() {
        for text in HOSTILE_TEXTS {
            let text = String::from_utf8_lossy(text);
            let mut pane = waiting(&text, &text, &text.repeat(100));
            pane.name = Some(text.to_string());
            let notice = writer().about(&pane, "n", at());
            assert_eq!(notice.title.lines().count(), 1, "{notice:?}");
            assert_eq!(notice.text.lines().count(), 2, "{notice:?}");
            let line = one_line(&notice);
            assert!(line.chars().count() < 1_000);
            assert_terminal_safe(line.as_bytes(), false);
            let digest = writer().digest(&[&pane, &pane], "n", at());
            assert_eq!(digest.text.lines().count(), 2, "{digest:?}");
            assert_terminal_safe(one_line(&digest).as_bytes(), false);
        }
    }

    #[test]
    fn a_digest_counts_and_lists_what_still_waits() {
        let mut panes = vec![waiting("work", "Run?", "x"); 12];
        panes[0].state = Some(State::Error);
        panes[1].state = Some(State::Completed);
        let digest = writer().digest(&panes.iter().collect::<Vec<_>>(), "n", at());
        assert_eq!(digest.title, "After quiet hours: 10 waiting, 1 failed, 1 finished");
        let lines: Vec<&str> = digest.text.lines().collect();
        assert_eq!(lines[0], "claude failed: work:2.0, since 12:02");
        assert_eq!((lines.len(), lines[10]), (11, "and 2 more"));
        assert_eq!(digest.agents.len(), 12);
    }
}
