//! Parses `/proc/<pid>/stat`.

use super::ProcessInfo;

#[cfg(target_os = "linux")]
pub(super) fn read(pid: u32) -> Option<ProcessInfo> {
    try_read(pid).ok().flatten()
}

/// Reads the stat file of a process. `None` if the process is gone. Fails if agtmux lacks file descriptors or memory to
/// read the file.
#[cfg(target_os = "linux")]
pub(super) fn try_read(pid: u32) -> std::io::Result<Option<ProcessInfo>> {
    use super::resources::none_unless_exhausted;
    use std::io::Read as _;

    // Enough for about fifty numbers and a name of at most 64 bytes.
    const MAX_STAT_BYTES: usize = 2048;
    let mut line = [0; MAX_STAT_BYTES];
    let length = std::fs::File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut line));
    Ok(none_unless_exhausted(length)?.and_then(|length| parse(&line[..length])))
}

/// Parses `pid (name) state ppid pgrp session tty tpgid … start …`. The name can contain any bytes. Only numbers and
/// one letter follow the name, so the name ends at the last `)` in the line. The stat file contains neither the
/// arguments nor the executable.
pub(super) fn parse(line: &[u8]) -> Option<ProcessInfo> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let name = line.get(open + 1..close)?.to_vec();
    let pid = number(line[..open].trim_ascii())?;
    let mut rest = line[close + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let state = *rest.next()?.first()?;
    let ppid = number(rest.next()?)?;
    let pgrp = number(rest.next()?)?;
    let tpgid = number(rest.nth(2)?).filter(|&pgrp| pgrp > 0);
    let start = number(rest.nth(13)?)?;
    let (stopped, zombie) = (matches!(state, b'T' | b't'), matches!(state, b'Z' | b'X' | b'x'));
    Some(ProcessInfo { pid, ppid, pgrp, tpgid, start, stopped, zombie, name, argv: Vec::new(), exe: None })
}

pub(super) fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(name: &[u8], tpgid: i32) -> Vec<u8> {
        let mut line = b"4242 (".to_vec();
        line.extend_from_slice(name);
        let rest = format!(") S 17 4241 4240 34816 {tpgid} 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654321 10 11 12\n");
        line.extend_from_slice(rest.as_bytes());
        line
    }

    fn expected(name: &[u8]) -> ProcessInfo {
        ProcessInfo {
            pid: 4242,
            ppid: 17,
            pgrp: 4241,
            tpgid: Some(4300),
            start: 987_654_321,
            stopped: false,
            zombie: false,
            name: name.to_vec(),
            argv: Vec::new(),
            exe: None,
        }
    }

    #[test]
    fn hostile_names_do_not_move_the_fields() {
        for name in ["bash", "a) R 1 (b\n", ")", "((", ") ) )", "", "tmux: server", "4242 (x) S 1 1"] {
            assert_eq!(parse(&line(name.as_bytes(), 4300)), Some(expected(name.as_bytes())), "{name:?}");
        }
    }

    #[test]
    fn no_terminal_means_no_foreground_group() {
        assert_eq!(parse(&line(b"init", -1)).map(|stat| stat.tpgid), Some(None));
        assert_eq!(parse(&line(b"init", 0)).map(|stat| stat.tpgid), Some(None));
    }

    #[test]
    fn reads_its_own_process() {
        let own = read(std::process::id()).expect("a running process can read its own stat");
        assert_eq!(own.pid, std::process::id());
        assert_eq!(own.ppid, std::os::unix::process::parent_id());
        assert!(!own.zombie && !own.stopped && own.start > 0);
    }

    proptest! {
        #[test]
        fn any_name_is_preserved(name in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(parse(&line(&name, 4300)), Some(expected(&name)));
        }

        #[test]
        fn any_bytes_are_tolerated(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn a_truncated_line_is_ignored_or_parsed_correctly(cut in 0..100_usize) {
            let whole = line(b"a) R 1 (b\n", 4300);
            if let Some(stat) = parse(&whole[..cut.min(whole.len())]) {
                prop_assert_eq!(stat.ppid, 17);
            }
        }
    }
}
