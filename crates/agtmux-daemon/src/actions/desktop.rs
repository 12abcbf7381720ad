//! Recognises callers that the user's desktop or service manager started, although their parent is not known.
//!
//! A window manager such as i3 starts programs as orphans, exactly as an agent can. Two facts tell them apart: systemd
//! runs services, applications and logins in control groups of their own, and an agent does not normally start a
//! terminal emulator or a browser.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use agtmux_tmux::platform::{ProcessInfo, ProcessTable};

/// Terminal emulators, editors and browsers: programs that a person operates.
const DESKTOP_PROGRAMS: [&str; 34] = [
    "alacritty",
    "brave",
    "chrome",
    "chromium",
    "code",
    "codium",
    "contour",
    "cool-retro-term",
    "emacs",
    "epiphany",
    "firefox",
    "firefox-bin",
    "foot",
    "ghostty",
    "gnome-terminal-server",
    "guake",
    "kgx",
    "kitty",
    "konsole",
    "lxterminal",
    "mate-terminal",
    "msedge",
    "ptyxis",
    "qterminal",
    "rxvt",
    "sakura",
    "st",
    "terminology",
    "tilix",
    "urxvt",
    "vivaldi-bin",
    "wezterm-gui",
    "xfce4-terminal",
    "xterm",
];

/// The start of the name of the control group that tmux makes for each pane, if tmux was built with systemd support.
const PANE_GROUP: &str = "tmux-spawn-";

/// Whether systemd started this process in a control group in which neither an agent nor a tmux server runs. Processes
/// cannot leave their group without the help of systemd.
pub(super) fn has_own_group(processes: &dyn ProcessTable, top: &ProcessInfo, others: &[u32]) -> bool {
    let Some(group) = processes.control_group(top.pid).filter(|group| is_unit(group)) else { return false };
    !others.iter().any(|pid| processes.control_group(*pid).as_ref() == Some(&group))
}

fn is_unit(group: &str) -> bool {
    let unit = group.rsplit('/').next().unwrap_or_default();
    (unit.ends_with(".service") || unit.ends_with(".scope")) && !unit.starts_with(PANE_GROUP)
}

/// Whether this is a terminal emulator, an editor or a browser that is installed on the system. A program that belongs
/// to the user does not count, because an agent can write a program with any name.
pub(super) fn is_desktop_program(top: &ProcessInfo, own_uid: u32) -> bool {
    let Some(program) = top.exe.as_deref() else { return false };
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    DESKTOP_PROGRAMS.contains(&name) && is_installed(program, own_uid)
}

fn is_installed(program: &Path, own_uid: u32) -> bool {
    let writable_by_others = 0o022;
    let is_safe = |data: std::fs::Metadata| data.uid() != own_uid && data.mode() & writable_by_others == 0;
    std::fs::metadata(program).is_ok_and(is_safe)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::actions::ancestry::{TestTable, test_process};

    #[test]
    fn a_unit_of_its_own_is_recognized_and_the_group_of_an_agent_is_not() {
        let login = "/user.slice/user-1000.slice/session-2.scope";
        let timer = "/user.slice/user-1000.slice/user@1000.service/app.slice/report.service";
        let pane = "/user.slice/user-1000.slice/user@1000.service/tmux-spawn-7f.scope";
        let groups = HashMap::from([(1, login), (2, timer), (3, login), (4, pane), (5, "/")]);
        let groups = TestTable { groups, ..TestTable::default() };
        let has_own = |pid: u32| has_own_group(&groups, &test_process(pid, 1, 9, "x"), &[1]);
        assert!(has_own(2), "a unit of systemd");
        for (pid, why) in [(3, "the agent's login"), (4, "a pane"), (5, "no unit"), (6, "no group")] {
            assert!(!has_own(pid), "{why}");
        }
    }

    #[test]
    fn a_terminal_counts_only_if_the_user_cannot_have_written_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = dir.path().join("xterm");
        std::fs::write(&program, "").expect("written");
        let own_uid = std::fs::metadata(&program).expect("exists").uid();
        let terminal = ProcessInfo { exe: Some(program), ..test_process(7, 1, 9, "xterm") };
        assert!(!is_desktop_program(&terminal, own_uid));
        assert!(is_desktop_program(&terminal, own_uid + 1));
        let shell = ProcessInfo { exe: Some("/bin/sh".into()), ..test_process(7, 1, 9, "xterm") };
        assert!(!is_desktop_program(&shell, own_uid + 1), "the name of the process does not count");
    }
}
