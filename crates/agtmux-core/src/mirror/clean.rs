//! Turns the bytes between the marks of a command into the output of the command.

use super::MirrorShell;
use crate::output;

/// If an unfinished line is longer than this, its bytes are returned unchanged.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Undoes the changes that the terminal makes to the output of a command, and removes the bytes that the shell adds.
/// The output may arrive in pieces. The result does not depend on how it is split, except for lines longer than 64 KiB.
#[derive(Debug, Clone)]
pub struct OutputCleaner {
    /// Whether to keep overwritten text and the screens of full-screen programs.
    raw: bool,
    shell: MirrorShell,
    /// The first bytes, as long as they may be bytes that fish writes before the output. `None` after that, and for
    /// other shells.
    prelude: Option<Vec<u8>>,
    /// The line that is not complete yet.
    line: Vec<u8>,
    screen: FullScreenFilter,
}

impl OutputCleaner {
    pub fn new(shell: MirrorShell, raw: bool) -> Self {
        let prelude = (shell == MirrorShell::Fish).then(Vec::new);
        Self { raw, shell, prelude, line: Vec::new(), screen: FullScreenFilter::default() }
    }

    /// Creates a cleaner that resumes in the middle of an output.
    pub fn resumed(shell: MirrorShell, raw: bool) -> Self {
        Self { prelude: None, ..Self::new(shell, raw) }
    }

    /// Whether a program has used the alternate screen, as full-screen programs do.
    pub fn saw_full_screen(&self) -> bool {
        self.screen.was_used
    }

    /// Whether all output so far has been returned. If so, a later cleaner can resume at this position.
    pub fn is_at_line_start(&self) -> bool {
        self.line.is_empty() && self.screen.held.is_empty() && !self.screen.is_inside && self.prelude.is_none()
    }

    /// Adds bytes to the output. Returns the cleaned output up to the last complete line.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let Some(mut start) = self.prelude.take() else {
            self.push_output(bytes, &mut out);
            return out;
        };
        start.extend_from_slice(bytes);
        match fish_prelude(&start) {
            Some(length) => self.push_output(&start[length..], &mut out),
            None => self.prelude = Some(start),
        }
        out
    }

    /// Returns the rest of the output. Called when the command has ended.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(start) = self.prelude.take() {
            let length = known_prelude(&start);
            self.push_output(&start[length..], &mut out);
        }
        let held = std::mem::take(&mut self.screen.held);
        self.line.extend(held);
        let line = std::mem::take(&mut self.line);
        let line = match self.shell {
            MirrorShell::Fish => without_own_end_mark(&line),
            _ => &line,
        };
        if !line.is_empty() {
            self.write_line(line, &mut out);
        }
        out
    }

    fn push_output(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let visible = self.screen.push(bytes, self.raw);
        for part in visible.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            let line = std::mem::take(&mut self.line);
            match line.strip_suffix(b"\n") {
                Some(whole) => {
                    // The terminal has replaced each line feed by CR LF.
                    self.write_line(whole.strip_suffix(b"\r").unwrap_or(whole), out);
                    out.push(b'\n');
                }
                None if line.len() > MAX_LINE_BYTES => out.extend(line),
                None => self.line = line,
            }
        }
    }

    fn write_line(&self, line: &[u8], out: &mut Vec<u8>) {
        let text = &line[..line.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1)];
        if self.raw || !text.contains(&b'\r') {
            return out.extend_from_slice(line);
        }
        // A carriage return overwrites the line, as in a progress bar. Only the last state of the line is output.
        out.extend(output::lines(text).join("").into_bytes());
    }
}

const ENTER_SCREEN: &[u8] = b"\x1b[?1049h";
const LEAVE_SCREEN: &[u8] = b"\x1b[?1049l";

/// Removes what a program draws on the alternate screen.
#[derive(Debug, Clone, Default)]
struct FullScreenFilter {
    is_inside: bool,
    was_used: bool,
    /// Bytes that may be the beginning of a sequence that switches to or from the alternate screen.
    held: Vec<u8>,
}

impl FullScreenFilter {
    fn push(&mut self, bytes: &[u8], raw: bool) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        rest.extend_from_slice(bytes);
        let mut visible = Vec::with_capacity(rest.len());
        let mut from = 0;
        loop {
            let switch = if self.is_inside { LEAVE_SCREEN } else { ENTER_SCREEN };
            let found = find_switch(&rest[from..], switch).map(|at| from + at);
            let end = found.unwrap_or_else(|| rest.len() - output::partial_end(&rest[from..], switch));
            if raw || !self.is_inside {
                visible.extend_from_slice(&rest[from..end]);
            }
            let Some(at) = found else {
                self.held = rest.split_off(end);
                return visible;
            };
            if raw {
                visible.extend_from_slice(switch);
            }
            (self.is_inside, self.was_used) = (!self.is_inside, true);
            from = at + switch.len();
        }
    }
}

fn find_switch(bytes: &[u8], switch: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == 0x1b).map(|at| from + at) {
        if bytes[at..].starts_with(switch) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// The length of the sequences that fish writes between the start mark and the output. They switch terminal modes off
/// and set the title. `None` if more bytes are needed to know the length.
fn fish_prelude(bytes: &[u8]) -> Option<usize> {
    let length = known_prelude(bytes);
    // A sequence may be incomplete: an ESC near the end, or an open title.
    let rest = &bytes[length..];
    let is_open = rest.is_empty() || rest[0] == 0x1b && rest.len() < 16 || starts_title(rest);
    (!is_open || rest.len() > MAX_LINE_BYTES).then_some(length)
}

fn known_prelude(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    for switch in [&b"\x1b[?2004l"[..], b"\x1b[?1004l", b"\x1b[>4;0m", b"\x1b[=0u"] {
        rest = rest.strip_prefix(switch).unwrap_or(rest);
    }
    let mut has_title = false;
    while let Some(after) = title_end(rest) {
        (rest, has_title) = (after, true);
    }
    for reset in [&b"\x1b[30m"[..], b"\x1b(B", b"\x1b[m", b"\x1b(B", b"\x0f"] {
        rest = rest.strip_prefix(reset).unwrap_or(rest);
    }
    if has_title {
        rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    }
    bytes.len() - rest.len()
}

fn starts_title(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x1b]0;") || bytes.starts_with(b"\x1b]133;")
}

/// The bytes after the sequence at the start of `bytes`, if this sequence sets a title or is one of fish's own marks.
fn title_end(bytes: &[u8]) -> Option<&[u8]> {
    let content = bytes.strip_prefix(b"\x1b]").filter(|_| starts_title(bytes))?;
    let end = content.iter().position(|byte| matches!(byte, 0x07 | 0x1b))?;
    match content[end] {
        0x07 => Some(&content[end + 1..]),
        _ => content[end + 1..].strip_prefix(b"\\"),
    }
}

/// Asks the terminal to report focus changes.
const REPORT_FOCUS: &[u8] = b"\x1b[?1004h";

/// Removes what fish itself writes before the mark of agtmux: the end mark of fish 4, and in a shell that was adopted, the
/// request for reports of the focus.
fn without_own_end_mark(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(REPORT_FOCUS).unwrap_or(line);
    let Some(at) = line.iter().rposition(|byte| *byte == b']').filter(|at| *at > 0) else { return line };
    let mark = &line[at - 1..];
    let is_mark = mark.starts_with(b"\x1b]133;D") && (mark.ends_with(b"\x07") || mark.ends_with(b"\x1b\\"));
    if is_mark { &line[..at - 1] } else { line }
}
