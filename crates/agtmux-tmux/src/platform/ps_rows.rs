//! Parses the output of `ps`. The last column contains the name or the arguments of a process, which can be any bytes.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::ProcessInfo;

/// The `ps` columns that [`parse_row`] needs. They exist on Linux, BSD and macOS. `ps` must run with `TZ=UTC0` and
/// `LC_ALL=C`, so that its times can be parsed.
pub(crate) const COLUMNS: &str = "pid=,ppid=,pgid=,tpgid=,stat=,lstart=,comm=";
/// The `ps` columns that [`parse_args`] needs.
pub(crate) const ARGS_COLUMNS: &str = "pid=,lstart=,args=";

/// Parses one line that `ps -o` prints for [`COLUMNS`]. `None` if the line is not a process. It may be a warning, or
/// the rest of a process name that contains a newline.
pub(super) fn parse_row(line: &[u8]) -> Option<ProcessInfo> {
    let mut fields = PsFields(line);
    let pid = fields.number()?;
    let ppid = fields.number()?;
    let pgrp = fields.number()?;
    let tpgid = fields.number::<i64>()?;
    let state = *fields.word()?.first()?;
    let start = fields.start()?;
    let tpgid = u32::try_from(tpgid).ok().filter(|&pgrp| pgrp > 0);
    let (stopped, zombie) = (matches!(state, b'T' | b't'), matches!(state, b'Z' | b'X'));
    let name = fields.rest();
    Some(ProcessInfo { pid, ppid, pgrp, tpgid, start, stopped, zombie, name, argv: Vec::new(), exe: None })
}

/// Parses one line that `ps -o` prints for [`ARGS_COLUMNS`]. Returns the pid, the start time and the arguments.
pub(super) fn parse_args(line: &[u8]) -> Option<(u32, u64, Vec<Vec<u8>>)> {
    let mut fields = PsFields(line);
    let (pid, start) = (fields.number()?, fields.start()?);
    Some((pid, start, split_arguments(&fields.rest())))
}

/// Splits the arguments at blanks, because `ps` prints no other separator between them.
pub(super) fn split_arguments(args: &[u8]) -> Vec<Vec<u8>> {
    args.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Parses the output of a `ps` that prints no start times. Without a header line, the columns are the pid and the
/// arguments. With a header line, which busybox always prints, the first column is the pid and the last column contains
/// the arguments.
pub(super) fn parse_commands(printed: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut rows = lines(printed).peekable();
    let is_word = |word: &&[u8]| !word.is_empty();
    let header = rows.next_if(|line| line.trim_ascii().starts_with(b"PID"));
    let before = header.map_or(1, |line| line.split(u8::is_ascii_whitespace).filter(is_word).count().saturating_sub(1));
    let row = |line: &[u8]| {
        let mut fields = PsFields(line);
        let pid = fields.number()?;
        (1..before).try_for_each(|_| fields.word().map(|_| ()))?;
        Some((pid, fields.rest()))
    };
    rows.filter_map(row).collect()
}

pub(super) fn lines(printed: &[u8]) -> impl Iterator<Item = &[u8]> {
    printed.split(|&byte| byte == b'\n')
}

/// Formats a start time as `ps -o lstart=` prints it, but without the day of the week. `start` is in seconds since
/// 1970.
pub(crate) fn format_start(start: u64) -> Option<String> {
    let start = Timestamp::from_second(i64::try_from(start).ok()?).ok()?;
    Some(start.strftime("%b %-d %H:%M:%S %Y").to_string())
}

struct PsFields<'a>(&'a [u8]);

impl<'a> PsFields<'a> {
    fn word(&mut self) -> Option<&'a [u8]> {
        let line = self.0.trim_ascii_start();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (word, rest) = line.split_at(end);
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        std::str::from_utf8(self.word()?).ok()?.parse().ok()
    }

    /// Parses a time such as `Mon Jul 14 09:10:25 2025` into seconds since 1970. Also accepts `14 Jul` instead of `Jul
    /// 14`, because some systems print it this way.
    fn start(&mut self) -> Option<u64> {
        self.word()?;
        let words = [self.word()?, self.word()?, self.word()?, self.word()?].join(&b' ');
        let parse = |format| DateTime::strptime(format, &words).ok();
        let start = parse("%b %d %H:%M:%S %Y").or_else(|| parse("%d %b %H:%M:%S %Y"))?;
        u64::try_from(TimeZone::UTC.to_timestamp(start).ok()?.as_second()).ok()
    }

    fn rest(self) -> Vec<u8> {
        self.0.trim_ascii().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_a_row() {
        let row = parse_row(b"  812   1  812    -1 Ss   Mon Jul 14 09:10:25 2025 my shell\n").expect("a whole row");
        assert_eq!((row.pid, row.ppid, row.pgrp, row.tpgid), (812, 1, 812, None));
        assert_eq!((row.stopped, row.zombie, row.start), (false, false, 1_752_484_225));
        assert_eq!(row.name, b"my shell");
    }

    #[test]
    fn detects_stopped_processes_zombies_and_the_foreground() {
        let state = |state: &str| {
            let line = format!("5 4 5 77 {state} Tue Feb 29 23:59:59 2000 x");
            parse_row(line.as_bytes()).map(|row| (row.stopped, row.zombie, row.tpgid, row.start))
        };
        assert_eq!(state("T+"), Some((true, false, Some(77), 951_868_799)));
        assert_eq!(state("Z"), Some((false, true, Some(77), 951_868_799)));
    }

    #[test]
    fn accepts_the_day_before_the_month() {
        let args = parse_args(b"7 Thu  1 Jan 00:00:01 1970 sh -c  'a b'").expect("a whole row");
        assert_eq!(args, (7, 1, vec![b"sh".to_vec(), b"-c".to_vec(), b"'a".to_vec(), b"b'".to_vec()]));
    }

    #[test]
    fn commands_are_parsed_with_and_without_a_header() {
        let words = |text: &str| text.as_bytes().to_vec();
        let plain = parse_commands(b"   12 sh -c x\n  999 node  /bin/claude\n");
        assert_eq!(plain, [(12, words("sh -c x")), (999, words("node  /bin/claude"))]);
        let busybox = parse_commands(b"PID   COMMAND\n    1 init\n   12 sh -c x\n");
        assert_eq!(busybox, [(1, words("init")), (12, words("sh -c x"))]);
        let small = parse_commands(b"  PID USER       VSZ STAT COMMAND\n   12 root      1600 S    sh -c x\n");
        assert_eq!(small, [(12, words("sh -c x"))]);
        assert_eq!(parse_commands(b"ps: bad usage\n"), []);
    }

    #[test]
    fn format_start_matches_ps() {
        assert_eq!(format_start(1_752_484_225).as_deref(), Some("Jul 14 09:10:25 2025"));
        assert_eq!(format_start(951_868_799).as_deref(), Some("Feb 29 23:59:59 2000"));
    }

    #[test]
    fn invalid_rows_are_ignored() {
        for line in
            ["", "ps: warning", "1 2 3", "1 2 3 4 S Mon Jul 99 09:10:25 2025 x", "-1 2 3 4 S Mon Jul 1 1:1:1 2025 x"]
        {
            assert_eq!(parse_row(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_tolerated(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (parse_row(&bytes), parse_args(&bytes), parse_commands(&bytes));
        }

        #[test]
        fn format_start_round_trips(start in 0_u64..250_000_000_000) {
            let line = format!("5 Tue {} x", format_start(start).expect("a date"));
            prop_assert_eq!(parse_args(line.as_bytes()).map(|(_, read, _)| read), Some(start));
        }

        #[test]
        fn any_name_is_preserved(name in "[^ \t\n\x0b\x0c\r]([^\n\r]*[^ \t\n\x0b\x0c\r])?") {
            let line = format!("5 4 5 77 S Tue Feb 29 23:59:59 2000 {name}");
            prop_assert_eq!(parse_row(line.as_bytes()).map(|row| row.name), Some(name.into_bytes()));
        }
    }
}
