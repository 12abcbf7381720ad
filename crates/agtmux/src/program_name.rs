//! Other names under which this executable can be installed. Each name stands for one command of agtmux.

use std::ffi::OsString;
use std::path::Path;

/// The command line to parse. If the executable was called by another name, adds the command that this name stands for.
pub(crate) fn arguments(mut arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let program = arguments.next().unwrap_or_else(|| "agtmux".into());
    let arguments: Vec<OsString> = arguments.collect();
    let asks_version = matches!(arguments.as_slice(), [only] if only == "--version" || only == "-V");
    let command: &[&str] = match Path::new(&program).file_name().and_then(|name| name.to_str()) {
        Some("agtmuxd") if asks_version => &[],
        Some("agtmuxd") => &["daemon", "run"],
        Some("pi-tmux-task-run") => &["task", "run", "--replace"],
        Some("pi-tmux-session-name") => &["task", "session-name"],
        _ => &[],
    };
    let program = if command.is_empty() { program } else { "agtmux".into() };
    std::iter::once(program).chain(command.iter().map(OsString::from)).chain(arguments).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_other_name_stands_for_one_command() {
        let of = |line: &str| arguments(line.split(' ').map(OsString::from));
        assert_eq!(of("/bin/agtmuxd --listen 127.0.0.1:1"), ["agtmux", "daemon", "run", "--listen", "127.0.0.1:1"]);
        assert_eq!(of("agtmuxd --version"), ["agtmuxd", "--version"]);
        assert_eq!(
            of("/bin/pi-tmux-task-run build -- make"),
            ["agtmux", "task", "run", "--replace", "build", "--", "make"]
        );
        assert_eq!(of("pi-tmux-session-name /p id"), ["agtmux", "task", "session-name", "/p", "id"]);
        assert_eq!(of("/x/agtmux list"), ["/x/agtmux", "list"]);
    }
}
