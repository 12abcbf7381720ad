//! Templates of `agtmux status --format`.

use agtmux_api::wire::PaneItem;
use agtmux_core::sanitize;
use agtmux_core::state::State;
use jiff::Timestamp;

use super::fleet_status::FleetStatus;
use crate::render;

/// A value in a status line is cut at this width.
const MAX_VALUE_COLUMNS: usize = 60;

type StatusValue = fn(&FleetStatus, Timestamp) -> String;

const VALUES: [(&str, StatusValue); 17] = [
    ("waiting", |status, _| (status.count(State::WaitingApproval) + status.count(State::WaitingInput)).to_string()),
    ("error", |status, _| status.count(State::Error).to_string()),
    ("unseen", |status, _| status.unseen.to_string()),
    ("running", |status, _| status.count(State::Running).to_string()),
    ("completed", |status, _| status.count(State::Completed).to_string()),
    ("idle", |status, _| status.count(State::Idle).to_string()),
    ("unknown", |status, _| status.count(State::Unknown).to_string()),
    ("agents", |status, _| State::ALL.iter().map(|state| status.count(*state)).sum::<u32>().to_string()),
    ("summary", |status, _| status.one_line(false)),
    ("next_agent", |status, _| next(status, |item| item.agent_type.as_ref().map(ToString::to_string))),
    ("next_name", |status, _| next(status, |item| item.name.clone())),
    ("next_place", |status, _| {
        next(status, |item| Some(format!("{}:{}.{}", item.identity.session_name, item.window_index, item.pane_index)))
    }),
    ("next_session", |status, _| next(status, |item| Some(item.identity.session_name.clone()))),
    ("next_target", |status, _| next(status, |item| Some(item.identity.target.clone()))),
    ("next_asks", |status, _| next(status, render::asks)),
    (AGE, |status, now| next(status, |item| Some(render::age(item.since?, now)))),
    ("daemon", |status, _| if status.summary.is_some() { "on".into() } else { "off".into() }),
];

const AGE: &str = "next_age";

fn next(status: &FleetStatus, value: impl Fn(&PaneItem) -> Option<String>) -> String {
    status.next.as_ref().and_then(value).unwrap_or_default()
}

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusTemplate(Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    /// The index of a value in `VALUES`.
    Value(usize),
    /// A text that is shown if the value is neither 0 nor empty.
    IfAny(usize, StatusTemplate),
}

impl StatusTemplate {
    pub(super) fn parse(template: &str) -> Result<Self, String> {
        let mut rest = template;
        let parsed = Self::parse_until_end(&mut rest, 0)?;
        if rest.is_empty() { Ok(parsed) } else { Err("'}' without '{'; write }} for a brace".into()) }
    }

    /// Parses up to a `}` that closes the text of a condition, or to the end of the template.
    fn parse_until_end(rest: &mut &str, depth: usize) -> Result<Self, String> {
        const MAX_DEPTH: usize = 8;
        if depth > MAX_DEPTH {
            return Err(format!("conditions are nested more than {MAX_DEPTH} times"));
        }
        let (mut parts, mut text) = (Vec::new(), String::new());
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            *rest = &rest[at + 1..];
            // In the text of a condition, the first `}` closes it.
            let is_doubled = rest.starts_with(brace) && (brace == "{" || depth == 0);
            if is_doubled {
                text.push_str(brace);
                *rest = &rest[1..];
            } else if brace == "{" {
                parts.push(TemplatePart::Text(std::mem::take(&mut text)));
                parts.push(Self::parse_value(rest, depth)?);
            } else {
                *rest = if depth == 0 { "}" } else { rest };
                parts.push(TemplatePart::Text(text));
                return Ok(Self(parts));
            }
        }
        if depth > 0 {
            return Err("'{' without '}'".into());
        }
        text.push_str(rest);
        *rest = "";
        parts.push(TemplatePart::Text(text));
        Ok(Self(parts))
    }

    /// Parses `NAME}` or `NAME?TEXT}`.
    fn parse_value(rest: &mut &str, depth: usize) -> Result<TemplatePart, String> {
        let end = rest.find(['}', '?']).ok_or("'{' without '}'")?;
        let name = &rest[..end];
        let at = VALUES.iter().position(|(known, _)| *known == name).ok_or_else(|| unknown(name))?;
        let is_condition = rest[end..].starts_with('?');
        *rest = &rest[end + 1..];
        match is_condition {
            true => Ok(TemplatePart::IfAny(at, Self::parse_until_end(rest, depth + 1)?)),
            false => Ok(TemplatePart::Value(at)),
        }
    }

    /// The line for this status. In values, every `#` is doubled, because tmux expands the line as a format.
    pub(super) fn line(&self, status: &FleetStatus, now: Timestamp) -> String {
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => sanitize::for_terminal(text),
            TemplatePart::Value(at) => {
                sanitize::for_column(&VALUES[*at].1(status, now), MAX_VALUE_COLUMNS).replace('#', "##")
            }
            TemplatePart::IfAny(at, text) => match VALUES[*at].1(status, now).as_str() {
                "" | "0" => String::new(),
                _ => text.line(status, now),
            },
        };
        self.0.iter().map(part).collect()
    }

    pub(super) fn has_age(&self) -> bool {
        self.0.iter().any(|part| match part {
            TemplatePart::Text(_) => false,
            TemplatePart::Value(at) => VALUES[*at].0 == AGE,
            TemplatePart::IfAny(_, text) => text.has_age(),
        })
    }
}

fn unknown(name: &str) -> String {
    let known: Vec<&str> = VALUES.iter().map(|(known, _)| *known).collect();
    format!("unknown value '{name}'; known values: {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_items::{at, pane};

    fn status(session: &str) -> FleetStatus {
        let item = pane(session, 1, 2, Some("claude"), Some(State::WaitingApproval));
        FleetStatus { next: Some(item), unseen: 2, ..FleetStatus::off() }
    }

    fn line(template: &str, status: &FleetStatus) -> String {
        StatusTemplate::parse(template).expect("a valid template").line(status, at(70))
    }

    #[test]
    fn values_and_conditions_are_filled_in() {
        let status = status("work");
        assert_eq!(line("{unseen} new", &status), "2 new");
        assert_eq!(line("{unseen?{unseen} new}{error?, {error} failed}.", &status), "2 new.");
        assert_eq!(line("{next_agent} at {next_place} for {next_age}", &status), "claude at work:1.2 for 1m");
        assert_eq!(line("{{x}} #[fg=red] {summary}", &status), "{x} #[fg=red] off");
        assert_eq!(line("{next_agent?a{running?b}c}d", &FleetStatus::off()), "d");
        assert_eq!(line("{next_agent?a{running?b}c}d", &status), "acd");
    }

    #[test]
    fn values_cannot_contain_formats_or_lines() {
        let shown = line("#[fg=red]{next_session}", &status("#(touch x)#[bg=red]\n#{q}\u{1b}[2J"));
        assert_eq!(shown, "#[fg=red]##(touch x)##[bg=red]\\n##{q}\\x1b[2J");
    }

    #[test]
    fn a_wrong_template_is_rejected_with_a_reason() {
        for (template, reason) in [
            ("{colour}", "unknown value 'colour'"),
            ("{waiting", "without '}'"),
            ("{waiting?x", "without '}'"),
            ("a } b", "without '{'"),
            ("{}", "unknown value ''"),
        ] {
            let error = StatusTemplate::parse(template).expect_err("wrong");
            assert!(error.contains(reason), "{template}: {error}");
        }
        assert!(StatusTemplate::parse(&"{waiting?".repeat(2000)).is_err());
    }
}
