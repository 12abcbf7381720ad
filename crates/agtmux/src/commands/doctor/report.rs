//! The report of `agtmux doctor --report`, as Markdown. It contains nothing secret: values of settings are left out, and
//! the rest is redacted.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use agtmux_api::config::Config;
use agtmux_api::paths::Paths;
use agtmux_core::redact;

use super::check::DoctorCheck;
use crate::error::CliResult;

/// The most lines of the log, and the part of the file that is searched for them.
const MAX_LOG_LINES: usize = 20;
const LOG_BYTES: u64 = 256 << 10;

pub(super) fn lines(checks: &[DoctorCheck]) -> CliResult<Vec<String>> {
    let paths = Paths::from_env()?;
    let uname = rustix::system::uname();
    let system = [uname.sysname(), uname.release(), uname.machine()].map(|part| part.to_string_lossy().into_owned());
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| "not set".into());
    let mut lines = vec![
        format!("agtmux {} on {}", agtmux_api::VERSION, system.join(" ")),
        format!("TERM {}, LANG {}, inside tmux: {}", variable("TERM"), variable("LANG"), is_in_tmux()),
        String::new(),
    ];
    lines.push("## Checks".into());
    lines.extend(checks.iter().map(|check| format!("- {} {}: {}", check.status.as_str(), check.name, check.found)));
    lines.extend(["".into(), "## Changed settings (without values)".into()]);
    lines.extend(changed_settings(&paths.config).into_iter().map(|name| format!("- {name}")));
    lines.extend(["".into(), "## Last warnings of the daemon".into()]);
    lines.extend(last_warnings(&paths.log()).into_iter().map(|line| format!("    {line}")));
    Ok(lines.into_iter().map(|line| redact::text(&line).into_owned()).collect())
}

fn is_in_tmux() -> &'static str {
    if std::env::var_os("TMUX").is_some() { "yes" } else { "no" }
}

fn changed_settings(path: &Path) -> Vec<String> {
    let Ok(path) = Config::resolve_file(path) else { return Vec::new() };
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let Ok(table) = Config::parse_table(&text, &path) else { return vec!["the file is not valid".into()] };
    let names = table.iter().flat_map(|(name, values)| match values.as_table() {
        Some(values) => values.keys().map(|key| format!("{name}.{key}")).collect::<Vec<_>>(),
        None => vec![name.clone()],
    });
    names.collect()
}

fn last_warnings(path: &Path) -> Vec<String> {
    let Ok(mut file) = std::fs::File::open(path) else { return Vec::new() };
    let length = file.metadata().map_or(0, |meta| meta.len());
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES))).and_then(|_| file.read_to_end(&mut bytes));
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let warnings = text.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR "));
    let mut last: Vec<String> = warnings.rev().take(MAX_LOG_LINES).map(str::to_owned).collect();
    last.reverse();
    last
}
