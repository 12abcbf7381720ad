//! Settings of notifications.

use std::path::PathBuf;

use agtmux_core::notify::{Escalation, NamePattern, NotifyChannel, NotifyRule, QuietHours};
use agtmux_core::state::State;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::ConfigDuration;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotifyConfig {
    pub rules: Vec<NotifyRuleConfig>,
    pub dwell: ConfigDuration,
    pub cooldown: ConfigDuration,
    pub in_view: ConfigDuration,
    pub quiet_hours: QuietSpan,
    pub timeout: ConfigDuration,
    pub tmux_message_time: ConfigDuration,
    pub osc_code: u32,
    pub command: String,
    pub webhook_url: String,
    pub webhook_token_file: String,
    pub ntfy_url: String,
    pub ntfy_topic: String,
    pub ntfy_token_file: String,
}

/// One `[[notify.rules]]`. An empty list of names means all, and a missing time is the one in `[notify]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotifyRuleConfig {
    pub states: Vec<State>,
    pub channels: Vec<NotifyChannel>,
    #[serde(default)]
    pub agents: Vec<String>,
    #[serde(default)]
    pub targets: Vec<String>,
    #[serde(default)]
    pub sessions: Vec<String>,
    #[serde(default)]
    pub dwell: Option<ConfigDuration>,
    #[serde(default)]
    pub cooldown: Option<ConfigDuration>,
    #[serde(default)]
    pub quiet_hours: Option<QuietSpan>,
    #[serde(default)]
    pub escalate_after: Option<ConfigDuration>,
    #[serde(default)]
    pub escalate_to: Vec<NotifyChannel>,
}

/// Quiet hours as written in the configuration. Empty: none.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct QuietSpan(pub Option<QuietHours>);

impl Serialize for QuietSpan {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0.map(|hours| hours.to_string()).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for QuietSpan {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match String::deserialize(d)?.as_str() {
            "" => Ok(Self(None)),
            text => text.parse().map(|hours| Self(Some(hours))).map_err(serde::de::Error::custom),
        }
    }
}

impl NotifyConfig {
    /// The rules, with the values of `[notify]` where a rule has none of its own.
    pub fn rules(&self) -> Vec<NotifyRule> {
        self.rules.iter().map(|rule| self.rule(rule)).collect()
    }

    fn rule(&self, rule: &NotifyRuleConfig) -> NotifyRule {
        let patterns = |names: &[String]| names.iter().map(|name| NamePattern::new(name.as_str())).collect();
        let escalation = rule.escalate_after.map(|after| {
            let channels = rule.escalate_to.clone();
            Escalation { after: signed(after), channels }
        });
        NotifyRule {
            states: rule.states.clone(),
            agents: patterns(&rule.agents),
            targets: patterns(&rule.targets),
            sessions: patterns(&rule.sessions),
            channels: rule.channels.clone(),
            dwell: signed(rule.dwell.unwrap_or(self.dwell)),
            cooldown: signed(rule.cooldown.unwrap_or(self.cooldown)),
            quiet_hours: rule.quiet_hours.unwrap_or(self.quiet_hours).0,
            escalation,
        }
    }

    /// The channels that rules name, each once.
    pub fn used_channels(&self) -> Vec<NotifyChannel> {
        let is_used =
            |channel: &NotifyChannel| self.rules.iter().any(|rule| rule.named_channels().any(|named| named == channel));
        NotifyChannel::ALL.iter().copied().filter(is_used).collect()
    }

    /// The setting that this channel needs and that is empty.
    pub fn missing_setting(&self, channel: NotifyChannel) -> Option<&'static str> {
        let (name, value) = match channel {
            NotifyChannel::Command => ("notify.command", &self.command),
            NotifyChannel::Webhook => ("notify.webhook_url", &self.webhook_url),
            NotifyChannel::Ntfy => ("notify.ntfy_topic", &self.ntfy_topic),
            NotifyChannel::Desktop | NotifyChannel::Tmux | NotifyChannel::Bell | NotifyChannel::Osc => return None,
        };
        value.trim().is_empty().then_some(name)
    }

    /// Why these settings cannot work. `None` if they can.
    pub(super) fn error(&self) -> Option<String> {
        let urls = [("webhook_url", &self.webhook_url), ("ntfy_url", &self.ntfy_url)];
        let is_url = |url: &str| {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            rest.is_some_and(|rest| !rest.is_empty()) && url.chars().all(|c| c.is_ascii_graphic())
        };
        if let Some((name, url)) = urls.into_iter().find(|(_, url)| !url.is_empty() && !is_url(url)) {
            return Some(format!("notify.{name}: '{url}' is not a URL; it must begin with http:// or https://"));
        }
        let is_topic = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !self.ntfy_topic.chars().all(is_topic) || self.ntfy_topic.len() > 64 {
            let rule = "a topic has at most 64 letters, digits, '-' and '_'";
            return Some(format!("notify.ntfy_topic: '{}' is not a topic; {rule}", self.ntfy_topic));
        }
        if ![9, 99, 777].contains(&self.osc_code) {
            return Some(format!("notify.osc_code: {} is unknown; use 9, 99 or 777", self.osc_code));
        }
        let tokens = [("webhook_token_file", &self.webhook_token_file), ("ntfy_token_file", &self.ntfy_token_file)];
        let is_relative = |path: &str| !path.is_empty() && !PathBuf::from(path).is_absolute();
        if let Some((name, path)) = tokens.into_iter().find(|(_, path)| is_relative(path)) {
            return Some(format!("notify.{name}: '{path}' must be an absolute path"));
        }
        (1..).zip(&self.rules).find_map(|(n, rule)| {
            let error = self.rule_error(rule)?;
            Some(format!("notify.rules: rule {n}: {error}"))
        })
    }

    fn rule_error(&self, rule: &NotifyRuleConfig) -> Option<String> {
        if rule.states.is_empty() || rule.channels.is_empty() {
            return Some("states and channels must not be empty".into());
        }
        if rule.states.contains(&State::Unknown) {
            return Some("the state 'unknown' causes no notice".into());
        }
        if rule.escalate_after.is_some() == rule.escalate_to.is_empty() {
            return Some("escalate_after and escalate_to need each other".into());
        }
        let missing = rule.named_channels().find_map(|channel| Some((channel, self.missing_setting(*channel)?)));
        missing.map(|(channel, setting)| format!("the channel '{channel}' needs {setting}"))
    }
}

impl NotifyRuleConfig {
    fn named_channels(&self) -> impl Iterator<Item = &NotifyChannel> {
        self.channels.iter().chain(&self.escalate_to)
    }
}

fn signed(duration: ConfigDuration) -> SignedDuration {
    SignedDuration::try_from(duration.0).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Config;
    use super::*;

    fn parse(text: &str) -> Result<NotifyConfig, String> {
        Config::parse(text, Path::new("/c.toml")).map(|config| config.notify).map_err(|error| error.to_string())
    }

    const RULE: &str = "[[notify.rules]]\nstates = ['waiting_approval']\nchannels = ['desktop']\n";

    #[test]
    fn nothing_is_sent_by_default() {
        assert_eq!(parse("").expect("valid").rules(), []);
    }

    #[test]
    fn a_rule_uses_the_values_of_its_table() {
        let more = "quiet_hours = ''\nescalate_after = '10m'\nescalate_to = ['bell']\nagents = ['claude', 'co*']\n";
        let text = format!("[notify]\nquiet_hours = '22:00-07:00'\ndwell = '3s'\n{RULE}{RULE}cooldown = '1m'\n{more}");
        let config = parse(&text).expect("valid");
        let [first, second] = &config.rules()[..] else { panic!("two rules: {config:?}") };
        assert_eq!((first.dwell.as_secs(), second.dwell.as_secs()), (3, 3));
        assert_eq!(second.cooldown.as_secs(), 60);
        assert!(first.quiet_hours.is_some() && second.quiet_hours.is_none());
        assert_eq!(second.escalation.as_ref().map(|escalation| escalation.after.as_secs()), Some(600));
        assert_eq!(config.used_channels(), [NotifyChannel::Desktop, NotifyChannel::Bell]);
    }

    #[test]
    fn settings_that_cannot_work_are_rejected_with_the_remedy() {
        let with_channel = |channel: &str| RULE.replace("desktop", channel);
        for (text, word) in [
            (with_channel("ntfy"), "notify.ntfy_topic"),
            (with_channel("webhook"), "notify.webhook_url"),
            (with_channel("command"), "notify.command"),
            (with_channel("pager"), "desktop"),
            (RULE.replace("waiting_approval", "unknown"), "causes no notice"),
            (RULE.replace("'desktop'", ""), "must not be empty"),
            (format!("{RULE}escalate_after = '1m'"), "escalate_to"),
            (format!("{RULE}escalate_to = ['bell']"), "escalate_after"),
            (format!("{RULE}quiet_hours = 'at night'"), "22:00-07:30"),
            (format!("{RULE}speed = 1"), "speed"),
            ("[notify]\nwebhook_url = 'ftp://x'".into(), "http://"),
            ("[notify]\nwebhook_url = 'http://x/ y'".into(), "not a URL"),
            ("[notify]\nntfy_topic = 'a/b'".into(), "not a topic"),
            ("[notify]\nosc_code = 52".into(), "9, 99 or 777"),
            ("[notify]\nntfy_token_file = 'token'".into(), "absolute"),
            ("[notify]\ndwell = '3h'".into(), "from 0ms to 1h"),
        ] {
            let error = parse(&text).expect_err(&text);
            assert!(error.contains(word), "{text} gave {error}");
        }
    }
}
