//! The configuration. All default values are in `defaults.toml` and nowhere else. agtmux parses that file, and
//! `agtmux config show --defaults` prints it with its comments.

mod agent_actions;
mod interface;
mod notify;
mod web;
mod yaml;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_core::named_enum;
use serde::{Deserialize, Serialize};

pub use agent_actions::{AgentAction, AgentActions};
pub use interface::{InterfaceCommand, InterfaceConfig, InterfaceTheme, KeyNames};
pub use notify::{NotifyConfig, NotifyRuleConfig, QuietSpan};
pub use web::{ListenAddress, ProxyUser, PublicUrl, WebConfig};

pub const DEFAULTS: &str = include_str!("defaults.toml");

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub daemon: DaemonConfig,
    pub tmux: TmuxConfig,
    pub ssh: SshConfig,
    pub state: StateConfig,
    pub observe: ObserveConfig,
    pub tmux_bridge: TmuxBridgeConfig,
    pub actions: ActionsConfig,
    pub events: EventsConfig,
    pub audit: AuditConfig,
    pub notify: NotifyConfig,
    pub web: WebConfig,
    pub tasks: TasksConfig,
    pub worktrees: WorktreesConfig,
    pub interface: InterfaceConfig,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonConfig {
    pub log_level: LogLevel,
}

named_enum!(
    LogLevel {
        Error => "error",
        Warn => "warn",
        Info => "info",
        Debug => "debug",
        Trace => "trace",
    }
);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TmuxConfig {
    pub program: PathBuf,
    pub sockets: Vec<PathBuf>,
    pub command_timeout: ConfigDuration,
    pub hooks: bool,
    pub pty_events: bool,
}

/// Settings for connections to other hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SshConfig {
    pub program: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateConfig {
    pub completed_to_idle: ConfigDuration,
    pub running_ttl: ConfigDuration,
    pub bind_ttl: ConfigDuration,
    pub dialog_hold: ConfigDuration,
    pub payload_retention: ConfigDuration,
    pub metadata_retention: ConfigDuration,
    pub store_mib: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObserveConfig {
    pub reconcile_active: ConfigDuration,
    pub reconcile_idle: ConfigDuration,
    pub osc_tap: bool,
}

/// Settings for typing text into a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TmuxBridgeConfig {
    pub health_check_interval: ConfigDuration,
    pub subprocess_timeout: ConfigDuration,
    pub text_enter_delay_ms: u64,
    pub sequential_send_delay_ms: u64,
    pub clear_delay_ms: u64,
    pub max_enter_retries: u32,
    pub verify_enter: bool,
    pub detect_ghost_text: bool,
    pub leave_copy_mode: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionsConfig {
    pub allow_from_agents: AgentActions,
    pub allow_from_unknown: bool,
    pub allow_new_from_agents: bool,
    pub snapshot_lifetime: ConfigDuration,
}

/// Settings for the events that agents, scripts and other programs send to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsConfig {
    pub allow_from_other_agents: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditConfig {
    pub store_text: bool,
}

/// Settings for managed tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TasksConfig {
    pub on_event: String,
    pub on_event_timeout: ConfigDuration,
    pub log_kib: u64,
}

/// Settings for the git worktrees of new agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorktreesConfig {
    pub dir: String,
    pub copy: Vec<String>,
    pub setup: String,
}

/// A duration as written in the configuration: `1500ms`, `2s`, `1m 30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigDuration(pub Duration);

impl std::str::FromStr for ConfigDuration {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let duration: jiff::SignedDuration =
            s.parse().map_err(|_| format!("'{s}' is not a duration; write it like 1500ms, 2s, 1m 30s or 168h"))?;
        Duration::try_from(duration)
            .map(Self)
            .map_err(|_| format!("'{s}' is negative; write it like 1500ms, 2s, 1m 30s or 168h"))
    }
}

impl fmt::Display for ConfigDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::SignedDuration::try_from(self.0) {
            Ok(duration) => write!(f, "{duration:#}"),
            Err(_) => write!(f, "{}s", self.0.as_secs()),
        }
    }
}

impl Serialize for ConfigDuration {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ConfigDuration {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match DurationValue::deserialize(d)? {
            DurationValue::Text(text) => text.parse().map_err(serde::de::Error::custom),
            DurationValue::Seconds(seconds) => Ok(Self(Duration::from_secs(seconds))),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a duration such as 1500ms, 2s, 1m 30s or 168h; a bare number means seconds")]
enum DurationValue {
    Text(String),
    Seconds(u64),
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read '{}': {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("'{}' is not valid:\n{message}", path.display())]
    Syntax { path: PathBuf, message: String },
    #[error("'{}': {message}", path.display())]
    Value { path: PathBuf, message: String },
    #[error("both '{}' and '{}' exist; remove one of them", one.display(), other.display())]
    BothExist { one: PathBuf, other: PathBuf },
}

impl Default for Config {
    fn default() -> Self {
        // A test checks that the built-in defaults parse.
        toml::from_str(DEFAULTS).unwrap_or_else(|error| unreachable!("defaults.toml: {error}"))
    }
}

impl Config {
    /// Loads the user's configuration file and fills in the defaults. A missing file is not an error; an invalid file
    /// is.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let path = &Self::resolve_file(path)?;
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(ConfigError::Read { path: path.to_owned(), source }),
        };
        Self::parse(&text, path)
    }

    /// Returns the configuration file to read: `path`, or the YAML file of the same name if the TOML file does not
    /// exist. Fails if more than one of these files exists.
    pub fn resolve_file(path: &Path) -> Result<PathBuf, ConfigError> {
        if path.extension().is_none_or(|extension| extension != "toml") {
            return Ok(path.to_owned());
        }
        let names = ["toml", "yaml", "yml"].map(|extension| path.with_extension(extension));
        let mut existing = names.into_iter().filter(|file| file.exists());
        match (existing.next(), existing.next()) {
            (Some(one), Some(other)) => Err(ConfigError::BothExist { one, other }),
            (Some(one), None) => Ok(one),
            (None, _) => Ok(path.to_owned()),
        }
    }

    /// Parses the text of the user's file as a table: as YAML if the path ends in `.yaml` or `.yml`, otherwise as TOML.
    pub fn parse_table(text: &str, path: &Path) -> Result<toml::Table, ConfigError> {
        let read = match path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            true => yaml::parse_table(text),
            false => toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned()),
        };
        read.map_err(|message| ConfigError::Syntax { path: path.to_owned(), message })
    }

    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        // Every table and key is optional: missing ones come from the defaults. The user's text is parsed on its own
        // first, so that a syntax error names its line.
        let partial = Self::parse_table(text, path)?;
        let mut merged = Self::parse_table(DEFAULTS, Path::new("defaults.toml"))?;
        for (name, value) in partial {
            match (merged.get_mut(&name), value) {
                (Some(toml::Value::Table(into)), toml::Value::Table(from)) => into.extend(from),
                (_, value) => {
                    merged.insert(name, value);
                }
            }
        }
        let config: Self = merged.try_into().map_err(|error: toml::de::Error| ConfigError::Syntax {
            path: path.to_owned(),
            message: locate(text, &error),
        })?;
        config.check(path)?;
        Ok(config)
    }

    fn check(&self, path: &Path) -> Result<(), ConfigError> {
        let fail = |message: String| Err(ConfigError::Value { path: path.to_owned(), message });
        if let Some(socket) = self.tmux.sockets.iter().find(|s| !s.is_absolute()) {
            return fail(format!("tmux.sockets: '{}' must be an absolute path", socket.display()));
        }
        let StateConfig {
            completed_to_idle,
            running_ttl,
            bind_ttl,
            dialog_hold,
            payload_retention,
            metadata_retention,
            store_mib,
        } = self.state;
        for (name, duration, min, max) in [
            ("tmux.command_timeout", self.tmux.command_timeout, "100ms", "1h"),
            ("observe.reconcile_active", self.observe.reconcile_active, "100ms", "1h"),
            ("observe.reconcile_idle", self.observe.reconcile_idle, "100ms", "1h"),
            ("tmux_bridge.health_check_interval", self.tmux_bridge.health_check_interval, "1s", "1h"),
            ("tmux_bridge.subprocess_timeout", self.tmux_bridge.subprocess_timeout, "100ms", "1m"),
            ("tasks.on_event_timeout", self.tasks.on_event_timeout, "100ms", "1h"),
            ("actions.snapshot_lifetime", self.actions.snapshot_lifetime, "1ms", "10m"),
            ("notify.dwell", self.notify.dwell, "0ms", "1h"),
            ("notify.timeout", self.notify.timeout, "100ms", "1m"),
            ("notify.tmux_message_time", self.notify.tmux_message_time, "100ms", "1m"),
            ("state.completed_to_idle", completed_to_idle, "100ms", "168h"),
            ("state.running_ttl", running_ttl, "1s", "168h"),
            ("state.bind_ttl", bind_ttl, "100ms", "10m"),
            ("state.dialog_hold", dialog_hold, "1ms", "1m"),
            ("state.payload_retention", payload_retention, "1h", "87600h"),
            ("state.metadata_retention", metadata_retention, "1h", "87600h"),
        ] {
            let within = |bound: &str, fits: fn(&ConfigDuration, &ConfigDuration) -> bool| {
                bound.parse().is_ok_and(|bound| fits(&duration, &bound))
            };
            if !within(min, ConfigDuration::ge) || !within(max, ConfigDuration::le) {
                return fail(format!("{name}: {duration} is out of range; use a value from {min} to {max}"));
            }
        }
        let TmuxBridgeConfig {
            text_enter_delay_ms, sequential_send_delay_ms, clear_delay_ms, max_enter_retries, ..
        } = self.tmux_bridge;
        for (name, value, max) in [
            ("text_enter_delay_ms", text_enter_delay_ms, 10_000),
            ("sequential_send_delay_ms", sequential_send_delay_ms, 10_000),
            ("clear_delay_ms", clear_delay_ms, 10_000),
            ("max_enter_retries", u64::from(max_enter_retries), 10),
        ] {
            if value > max {
                return fail(format!("tmux_bridge.{name}: {value} is out of range; use a value from 0 to {max}"));
            }
        }
        for (name, value, min) in [("tasks.log_kib", self.tasks.log_kib, 64), ("state.store_mib", store_mib, 16)] {
            let max = 1 << 20;
            if !(min..=max).contains(&value) {
                return fail(format!("{name}: {value} is out of range; use a value from {min} to {max}"));
            }
        }
        if let Some(message) = self.web.exposure_error().or_else(|| self.notify.error()) {
            return fail(message);
        }
        if payload_retention > metadata_retention {
            return fail(format!(
                "state.payload_retention: {payload_retention} is longer than state.metadata_retention, and a payload \
                 is deleted with its event; use at most {metadata_retention}"
            ));
        }
        Ok(())
    }
}

/// Adds the line number to an error in the merged settings. Merged settings have no line numbers, so this function
/// searches the user's text for the key that the error names.
fn locate(text: &str, error: &toml::de::Error) -> String {
    let message = error.to_string();
    let message = message.trim();
    let quoted = message.split('`').nth(1).unwrap_or_default();
    let path = message.lines().find_map(|l| l.strip_prefix("in `")?.strip_suffix('`')).unwrap_or_default();
    let key = if message.starts_with("unknown field") { quoted } else { path.rsplit('.').next().unwrap_or_default() };
    let line = text.lines().position(|l| {
        let l = l.trim_start().trim_start_matches('[');
        !key.is_empty() && l.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(['=', ']', ':']))
    });
    match line {
        Some(line) => format!("line {}: {message}", line + 1),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("/c.toml"))
    }

    #[test]
    fn an_empty_file_gives_the_defaults() {
        assert_eq!(parse("").expect("valid"), Config::default());
    }

    #[test]
    fn one_key_changes_one_value() {
        let config = parse("[tmux]\ncommand_timeout = '3s'\n").expect("valid");
        assert_eq!(config.tmux.command_timeout.0, Duration::from_secs(3));
        assert_eq!(config.tmux.program, Config::default().tmux.program);
    }

    #[test]
    fn errors_name_their_line() {
        for (text, line, word) in [
            ("[tmux]\n\nprogramm = 'x'\n", "line 3", "programm"),
            ("[tmux]\ncommand_timeout = 'soon'\n", "line 2", "1500ms"),
            ("\n[nonsense]\nx = 1\n", "line 2", "nonsense"),
            ("[daemon]\nlog_level = 'loud'\n", "line 2", "loud"),
            ("[tmux\n", "line 1", ""),
        ] {
            let message = parse(text).expect_err("an error").to_string();
            assert!(message.contains(line) && message.contains(word), "{text:?} gave {message}");
        }
    }

    #[test]
    fn values_out_of_range_are_rejected() {
        assert!(parse("[tmux]\ncommand_timeout = '1ms'").is_err());
        assert!(parse("[tmux]\nsockets = ['rel']").is_err());
        for (text, range) in [("[state]\nstore_mib = 8", "from 16 to"), ("[tasks]\nlog_kib = 1", "from 64 to 1048576")]
        {
            let message = parse(text).expect_err(text).to_string();
            assert!(message.contains(range), "{text} gave {message}");
        }
        assert_eq!(parse("[state]\nstore_mib = 16").expect("valid").state.store_mib, 16);
    }

    #[test]
    fn state_durations_out_of_range_are_rejected_with_the_valid_range() {
        for (key, value, expected) in [
            ("completed_to_idle", "0s", "from 100ms to 168h"),
            ("completed_to_idle", "-5s", "write it like"),
            ("completed_to_idle", "99999999h", "from 100ms to 168h"),
            ("running_ttl", "0ms", "from 1s to 168h"),
            ("running_ttl", "99999999999999999999h", "write it like"),
            ("bind_ttl", "0s", "from 100ms to 10m"),
            ("bind_ttl", "1h", "from 100ms to 10m"),
            ("bind_ttl", "thirty", "write it like"),
            ("payload_retention", "0s", "from 1h to 87600h"),
            ("payload_retention", "7d", "168h"),
            ("payload_retention", "400h", "use at most"),
            ("metadata_retention", "876000h", "from 1h to 87600h"),
            ("metadata_retention", "100h", "state.metadata_retention"),
        ] {
            let message = parse(&format!("[state]\n{key} = '{value}'\n")).expect_err(value).to_string();
            assert!(message.contains(expected) && message.contains(key), "{key} = {value} gave {message}");
        }
        let shorter = parse("[state]\npayload_retention = '1h'\nbind_ttl = '5s'\nrunning_ttl = '20m'\n");
        assert_eq!(shorter.expect("valid").state.bind_ttl.0, Duration::from_secs(5));
    }

    /// Generates text that is often almost a duration.
    fn almost_a_duration() -> impl Strategy<Value = String> {
        let words =
            ["1", "30", "9999999999999", "ms", "s", "m", "h", "d", "µs", "-", "+", ".", "5", " ", "PT1H", "ago"];
        let piece =
            prop_oneof![4 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => any::<String>()];
        proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_duration_round_trips_or_is_rejected(text in almost_a_duration()) {
            match text.parse::<ConfigDuration>() {
                Ok(duration) => prop_assert_eq!(duration.to_string().parse(), Ok(duration)),
                Err(message) => prop_assert!(message.contains("write it like")),
            }
        }

        #[test]
        fn parsing_a_configuration_never_panics(text in any::<String>(), duration in almost_a_duration()) {
            let _ = parse(&text);
            let quoted = toml::Value::from(duration).to_string();
            let _ = parse(&format!("[state]\nbind_ttl = {quoted}\n[tmux]\ncommand_timeout = {quoted}\n"));
        }
    }
}
