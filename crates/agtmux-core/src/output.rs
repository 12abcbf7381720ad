//! Parses raw terminal output without a terminal: counts bells and extracts text lines.

/// The parser's position in a control sequence.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    Escape,
    Intermediate,
    Csi,
    /// An OSC string. BEL ends the string and does not count as a bell.
    Osc,
    /// A DCS, SOS, PM, APC or tmux title string. BEL does not end the string and does not count as a bell.
    String,
}

/// The meaning of one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParsedByte {
    Printed(u8),
    Control(u8),
    /// The final byte of a CSI sequence.
    Csi(u8),
    Nothing,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct EscapeParser(EscapeState);

impl EscapeParser {
    /// Parses one byte as tmux does: CAN and SUB end any sequence, and ESC starts a new sequence, even inside another
    /// sequence.
    fn advance(&mut self, byte: u8) -> ParsedByte {
        let (next, piece) = match (self.0, byte) {
            (_, 0x1b) => (EscapeState::Escape, ParsedByte::Nothing),
            (_, 0x18 | 0x1a) => (EscapeState::Text, ParsedByte::Nothing),
            (EscapeState::Osc, 0x07) => (EscapeState::Text, ParsedByte::Nothing),
            (EscapeState::Osc | EscapeState::String, _) => (self.0, ParsedByte::Nothing),
            (within, 0x00..=0x1f) => (within, ParsedByte::Control(byte)),
            (EscapeState::Text, _) => (EscapeState::Text, ParsedByte::Printed(byte)),
            (EscapeState::Escape, b'[') => (EscapeState::Csi, ParsedByte::Nothing),
            (EscapeState::Escape, b']') => (EscapeState::Osc, ParsedByte::Nothing),
            (EscapeState::Escape, b'P' | b'X' | b'^' | b'_' | b'k') => (EscapeState::String, ParsedByte::Nothing),
            (EscapeState::Escape | EscapeState::Intermediate, 0x20..=0x2f) => {
                (EscapeState::Intermediate, ParsedByte::Nothing)
            }
            (EscapeState::Escape | EscapeState::Intermediate, _) => (EscapeState::Text, ParsedByte::Nothing),
            (EscapeState::Csi, 0x40..=0x7e) => (EscapeState::Text, ParsedByte::Csi(byte)),
            (EscapeState::Csi, _) => (EscapeState::Csi, ParsedByte::Nothing),
        };
        self.0 = next;
        piece
    }
}

/// Counts bells in output that is read piece by piece. A control sequence may begin in one piece and end in the next.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct BellCounter(EscapeParser);

impl BellCounter {
    /// Returns the number of bells in these bytes.
    pub fn count(&mut self, bytes: &[u8]) -> u64 {
        bytes.iter().filter(|byte| self.0.advance(**byte) == ParsedByte::Control(0x07)).count() as u64
    }
}

/// The length of the longest suffix of `bytes` that is a proper prefix of `pattern`. Readers that search for a pattern
/// hold these bytes back until more arrive.
pub fn partial_end(bytes: &[u8], pattern: &[u8]) -> usize {
    (1..pattern.len().min(bytes.len() + 1)).rev().find(|length| bytes.ends_with(&pattern[..*length])).unwrap_or(0)
}

/// A line with more characters than this is cut.
const MAX_LINE_CHARS: usize = 64 << 10;

/// Returns the visible text line by line, without escapes. Text overwritten after a carriage return or a backspace is
/// dropped.
pub fn lines(bytes: &[u8]) -> Vec<String> {
    let mut page = LineBuffer::default();
    let mut reader = EscapeParser::default();
    for byte in bytes {
        match reader.advance(*byte) {
            ParsedByte::Printed(byte) => page.pending.push(byte),
            ParsedByte::Control(byte) => page.control(byte),
            ParsedByte::Csi(b'K') => page.erase(),
            ParsedByte::Csi(_) | ParsedByte::Nothing => {}
        }
    }
    page.write();
    if !page.line.is_empty() {
        page.end_line();
    }
    page.lines
}

/// Final bytes of CSI sequences that keep the cursor on its line.
const CSI_WITHIN_LINE: &[u8] = b"mKhlncqt";

/// Returns the last visible line, with a trailing line feed if the line is complete. Returns `None` if a sequence in
/// the line may have moved the cursor, because only a full terminal emulator can then tell where the cursor is.
pub fn last_line(bytes: &[u8]) -> Option<String> {
    let open = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let start = open.iter().rposition(|byte| *byte == b'\n').map_or(0, |before| before + 1);
    if has_csi(&bytes[start..], |last| !CSI_WITHIN_LINE.contains(&last)) {
        return None;
    }
    let mut line = lines(&open[start..]).pop().unwrap_or_default();
    if open.len() < bytes.len() {
        line.push('\n');
    }
    Some(line)
}

/// Whether the cursor stays on its line when a terminal prints these bytes. The echo of typed input keeps the cursor on
/// its line. A program that draws its output again moves the cursor to another line before it does so.
pub fn stays_in_line(bytes: &[u8]) -> bool {
    !bytes.contains(&b'\n')
        && !has_csi(bytes, |last| !CSI_WITHIN_LINE.contains(&last) && !CSI_LINE_EDITING.contains(&last))
}

/// Final bytes of the CSI sequences that line editors write in addition to [`CSI_WITHIN_LINE`]: to move the cursor in
/// the line, to insert or delete characters, and to erase the text after the cursor.
const CSI_LINE_EDITING: &[u8] = b"CDGJPX@";

fn has_csi(bytes: &[u8], matches_final: impl Fn(u8) -> bool) -> bool {
    let mut reader = EscapeParser::default();
    bytes.iter().any(|byte| matches!(reader.advance(*byte), ParsedByte::Csi(last) if matches_final(last)))
}

#[derive(Default)]
struct LineBuffer {
    lines: Vec<String>,
    line: Vec<char>,
    column: usize,
    /// Bytes that are not decoded yet, because they may end in the middle of a character.
    pending: Vec<u8>,
}

impl LineBuffer {
    fn write(&mut self) {
        let raw = std::mem::take(&mut self.pending);
        for character in String::from_utf8_lossy(&raw).chars() {
            if self.column >= MAX_LINE_CHARS {
                return;
            }
            match self.line.get_mut(self.column) {
                Some(cell) => *cell = character,
                None => self.line.push(character),
            }
            self.column += 1;
        }
    }

    fn control(&mut self, byte: u8) {
        self.write();
        match byte {
            b'\n' => self.end_line(),
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            b'\t' => {
                self.pending = b" ".repeat(8 - self.column % 8);
                self.write();
            }
            _ => {}
        }
    }

    fn erase(&mut self) {
        self.write();
        self.line.truncate(self.column);
    }

    fn end_line(&mut self) {
        let text: String = self.line.drain(..).collect();
        self.lines.push(text.trim_end().to_owned());
        self.column = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bells(bytes: &[u8]) -> u64 {
        BellCounter::default().count(bytes)
    }

    #[test]
    fn typed_text_stays_on_its_line_and_redrawing_leaves_it() {
        for typed in [&b""[..], b"yes", b"n\x08 \x08y\r", b"\x1b[C\x1b[2Dx\x1b[K\x1b[?2004l\r", b"\x1b[1@a\x1b[J"] {
            assert!(stays_in_line(typed), "{typed:?}");
        }
        for drawn in [&b"\n"[..], b"\x1b[Hmenu", b"\x1b[2A\r", b"yes\x1b[5;1H"] {
            assert!(!stays_in_line(drawn), "{drawn:?}");
        }
    }

    #[test]
    fn every_bell_counts_except_one_that_ends_a_title() {
        assert_eq!(bells(b"\x07a\x07\x07"), 3);
        assert_eq!(bells(b"\x1b]0;title\x07"), 0);
        assert_eq!(bells(b"\x1b]0;title\x1b\\\x07"), 1);
        assert_eq!(bells(b"\x1b[3\x071m"), 1, "a bell inside a color sequence counts");
        assert_eq!(bells(b"\x1bPq\x07\x07\x1b\\\x07"), 1);
        assert_eq!(bells(b"\x1b_x\x18\x07"), 1, "CAN ends an unfinished sequence");
    }

    #[test]
    fn a_sequence_split_across_reads_is_parsed_once() {
        let bytes = b"\x07\x1b]2;a\x07b\x07\x07\x1b[1m\x07";
        for cut in 0..=bytes.len() {
            let mut counter = BellCounter::default();
            assert_eq!(counter.count(&bytes[..cut]) + counter.count(&bytes[cut..]), 4, "cut at {cut}");
        }
    }

    #[test]
    fn lines_match_what_a_screen_would_show() {
        assert_eq!(lines(b"a\r\n\x1b[31mred\x1b[0m\r\nlast"), ["a", "red", "last"]);
        assert_eq!(lines(b"10%\r50%\r100%\r\n"), ["100%"]);
        assert_eq!(lines(b"a long line\rok\x1b[K\n"), ["ok"]);
        assert_eq!(lines(b"ab\x08c\tx\n\n"), ["ac      x", ""]);
        assert_eq!(lines("grün \u{1f600}\n".as_bytes()), ["grün \u{1f600}"]);
        assert_eq!(lines(b"\x1b]0;t\x07x\x1bPjunk\x1b\\y\n"), ["xy"]);
        assert_eq!(lines(b""), Vec::<String>::new());
    }

    #[test]
    fn last_line_is_none_after_the_cursor_moved() {
        let line = |bytes: &[u8]| last_line(bytes);
        assert_eq!(line(b"a\r\n\x1b[1mGo on? [y/N]\x1b[0m ").as_deref(), Some("Go on? [y/N]"));
        assert_eq!(line(b"a\r\nPress Enter\r\n").as_deref(), Some("Press Enter\n"));
        assert_eq!(line(b"Press Enter\r\n\r\n").as_deref(), Some("\n"));
        assert_eq!(line(b"10 %\rName:\x1b[K\x1b[?2004h").as_deref(), Some("Name:"));
        assert_eq!(line(b"\x1b[2J\x1b[H? Name\r\n  one\r\n  two\x1b[2A"), None);
        assert_eq!(line(b"\x1b[H\r\nName:").as_deref(), Some("Name:"), "movement before the last line is ignored");
        assert_eq!(line(b"").as_deref(), Some(""));
    }

    #[test]
    fn invalid_bytes_become_replacement_characters() {
        assert_eq!(lines(b"a\xffb\n"), ["a\u{fffd}b"]);
    }
}
