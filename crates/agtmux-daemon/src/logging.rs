//! Writes the log to stderr or to a file. Names, paths and errors in the log come from other programs, so every value
//! is sanitized.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use agtmux_api::config::LogLevel;
use agtmux_core::sanitize;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{self, Writer};

use crate::file_identity::FileIdentity;

/// If the log file is larger than this when the daemon starts, the daemon renames it to `*.log.old` and begins a new
/// one. An earlier `*.log.old` is overwritten.
const MAX_LOG_BYTES: u64 = 4 << 20;

pub(crate) fn to_stderr(level: LogLevel) {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let builder = tracing_subscriber::fmt().with_env_filter(filter(level)).fmt_fields(sanitized_fields());
    let builder = builder.with_writer(io::stderr);
    // Fails only if a subscriber is already set, as in tests that start several daemons.
    let _ = builder.with_ansi(io::stderr().is_terminal() && !plain).try_init();
}

pub(crate) fn to_file(level: LogLevel, path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|meta| meta.len() > MAX_LOG_BYTES) {
        fs::rename(path, path.with_extension("log.old"))?;
    }
    let log = LOG.get_or_init(|| Mutex::new(None));
    *log.lock().unwrap_or_else(PoisonError::into_inner) = Some((path.to_owned(), open(path)?));
    let builder = tracing_subscriber::fmt().with_env_filter(filter(level)).fmt_fields(sanitized_fields());
    let _ = builder.with_ansi(false).with_writer(|| LogFile).try_init();
    Ok(())
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// The open log file and its path.
static LOG: OnceLock<Mutex<Option<(PathBuf, File)>>> = OnceLock::new();

/// A writer that appends to the log file.
struct LogFile;

impl LogFile {
    fn with<T: Default>(&self, write: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
        let Some(log) = LOG.get() else { return Ok(T::default()) };
        match &mut *log.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((_, file)) => write(file),
            None => Ok(T::default()),
        }
    }
}

impl io::Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(|file| file.flush())
    }
}

/// Creates the log file again if another program removed it.
pub(crate) fn reopen_if_removed() {
    let Some(log) = LOG.get() else { return };
    if let Some((path, file)) = &mut *log.lock().unwrap_or_else(PoisonError::into_inner)
        && FileIdentity::at(path) != FileIdentity::of(file).ok()
        && let Ok(new) = open(path)
    {
        *file = new;
    }
}

/// Writes each field as `name=value`, and the message without a name. Escapes control characters in a value, so the
/// value stays on one line and cannot control a terminal. Only the name is styled with escape sequences.
fn sanitized_fields() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    format::debug_fn(|writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug| {
        let value = sanitize::for_terminal(&format!("{value:?}"));
        match field.name() {
            "message" => write!(writer, "{value}"),
            name if writer.has_ansi_escapes() => write!(writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}"),
            name => write!(writer, "{name}={value}"),
        }
    })
    .delimited(" ")
}

fn filter(level: LogLevel) -> EnvFilter {
    EnvFilter::try_from_env("AGTMUX_LOG").unwrap_or_else(|_| EnvFilter::new(level.as_str()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(ansi: bool, log: impl FnOnce()) -> String {
        let buffer = LogBuffer::default();
        let writer = buffer.clone();
        let subscriber = tracing_subscriber::fmt().fmt_fields(sanitized_fields()).with_ansi(ansi);
        tracing::subscriber::with_default(subscriber.with_writer(move || writer.clone()).finish(), log);
        let bytes = buffer.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn no_value_in_the_log_starts_a_line_or_acts_on_a_terminal() {
        let hostile = "a\x1b[31m\u{9b}2J\n2026 ERROR fake\u{202e}\x7f";
        let error = io::Error::other(hostile);
        let log = || tracing::warn!(path = %hostile, text = hostile, %error, "could not read {hostile}");
        let plain = logged(false, log);
        let escaped = "a\\x1b[31m\\x9b2J\\n2026 ERROR fake\\u{202e}\\x7f";
        assert!(plain.ends_with(&format!("error={escaped}\n")), "{plain}");
        assert!(plain.contains(&format!("could not read {escaped} path={escaped} text=\"a")), "{plain}");
        assert_eq!(plain.lines().count(), 1, "{plain}");
        assert!(!plain.trim_end().chars().any(char::is_control), "{plain:?}");
        let coloured = logged(true, log);
        let values = coloured.split("\x1b[").skip(1).map(|rest| rest.split_once('m').expect("only colours").0);
        assert!(
            values.clone().count() > 4 && values.clone().all(|code| matches!(code, "0" | "2" | "3" | "33")),
            "{coloured:?}"
        );
        assert!(!coloured.contains('\u{9b}') && coloured.lines().count() == 1, "{coloured:?}");
    }
}
