//! Finds the prompt of a shell on its screen, and the output of a command between two prompts.

use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthStr;

use super::MirrorShell;

/// The last characters of usual prompts. The last one is the arrow of Powerline fonts.
const SYMBOLS: &str = "$#%❯➜λ»\u{e0b0}";

/// The screen of a pane. Columns and rows count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenText<'a> {
    pub rows: &'a [String],
    pub cursor_column: usize,
    pub cursor_row: usize,
}

/// The prompt of a shell as the screen shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenPrompt {
    /// The rows above the last one, if the prompt has several.
    above: Vec<String>,
    /// The last row, up to the place where typed text begins.
    text: String,
}

/// The row of the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptLine {
    pub prompt: ScreenPrompt,
    /// What is typed after the prompt, but not submitted.
    pub typed: String,
}

impl ScreenText<'_> {
    fn before_cursor(&self) -> Option<String> {
        Some(self.split_at_cursor().0).filter(|text| !text.trim().is_empty())
    }
}

impl ScreenPrompt {
    /// Finds the prompt in the row of the cursor. `known` is the prompt as it was before, which may have changed, for
    /// example because it contains the directory. `height` is its number of rows.
    pub fn find(known: Option<&Self>, height: usize, screen: ScreenText<'_>) -> Option<PromptLine> {
        let before = screen.before_cursor()?;
        let length = match known {
            Some(known) if before.starts_with(&known.text) => known.text.len(),
            Some(known) => known.changed_length(&before)?,
            None => is_usual_prompt(&before).then_some(before.len())?,
        };
        let first = (screen.cursor_row + 1).checked_sub(height.max(1))?;
        let above = screen.rows.get(first..screen.cursor_row)?.to_vec();
        let (text, typed) = before.split_at(length);
        Some(PromptLine { prompt: Self { above, text: text.to_owned() }, typed: typed.to_owned() })
    }

    /// The prompt of a shell that has just started, whatever its last character is.
    pub fn first(height: usize, screen: ScreenText<'_>) -> Option<Self> {
        let whole = Self { above: Vec::new(), text: screen.before_cursor()? };
        Self::find(Some(&whole), height, screen).map(|line| line.prompt)
    }

    /// The length of another prompt of the same shell at the start of this text. A prompt may change, for example because
    /// it contains the directory, but it must not look like the text with which a shell asks for the rest of a command.
    fn changed_length(&self, before: &str) -> Option<usize> {
        let end = self.end();
        let length = before.find(end)? + end.len();
        let changed = &before[..length];
        let is_prompt = is_usual_prompt(changed) || !is_usual_prompt(&self.text) && !asks_for_more(changed);
        is_prompt.then_some(length)
    }

    /// The last row of the prompt.
    pub(super) fn last_row(&self) -> &str {
        &self.text
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.above.len() + 1
    }

    /// The last character of the prompt and the blanks after it.
    fn end(&self) -> &str {
        let last = self.text.trim_end().char_indices().next_back();
        last.map_or("", |(at, _)| &self.text[at..])
    }

    /// The output of the command that was typed as `typed`. `lines` begin at the prompt before the command, or above it,
    /// and end at the prompt after it, at the cursor. If the command has cleared the screen, its prompt is missing.
    /// Without the prompt after the command, the output ends where this prompt is shown again.
    pub fn output(&self, lines: &[String], typed: &str, next: Option<&Self>) -> String {
        let typed_at = |line: &String| line.find(typed).is_some_and(|at| line[..at].ends_with(self.end()));
        let from = lines.iter().position(typed_at).map_or(0, |at| at + 1);
        let Some(next) = next else { return self.output_to_next_prompt(&lines[from..]) };
        let to = lines.len().saturating_sub(self.height()).max(from);
        let mut output: String = lines[from..to].iter().flat_map(|line| [line, "\n"]).collect();
        // Output without a newline at its end stands in front of the prompt.
        let (known, shown) = match (self.above.first(), lines.get(to)) {
            // tmux 3.2 may add blanks at the end of a row.
            (Some(known), Some(shown)) if !known.trim_end().is_empty() => (known.trim_end(), shown.trim_end()),
            (None, Some(_)) => (self.text.as_str(), next.text.as_str()),
            _ => return output,
        };
        output.push_str(shown.strip_suffix(known).unwrap_or_default());
        output
    }

    fn output_to_next_prompt(&self, lines: &[String]) -> String {
        let shown = lines.iter().position(|line| line.starts_with(self.text.trim_end()));
        // Without a prompt, the last row is the one of the cursor, which is empty after a complete line.
        let is_empty = lines.last().is_some_and(|line| line.trim().is_empty());
        let to = shown.map_or(lines.len() - usize::from(is_empty), |at| at.saturating_sub(self.above.len()));
        lines[..to].iter().flat_map(|line| [line, "\n"]).collect()
    }
}

/// The words of zsh before the `>` with which it asks for another line.
const UNFINISHED: [&str; 30] = [
    "quote",
    "dquote",
    "bquote",
    "cmdsubst",
    "heredoc",
    "heredocd",
    "for",
    "foreach",
    "while",
    "until",
    "repeat",
    "if",
    "then",
    "else",
    "elif",
    "elif-then",
    "do",
    "case",
    "select",
    "function",
    "cmdand",
    "cmdor",
    "pipe",
    "errpipe",
    "array",
    "subsh",
    "cursh",
    "braceparam",
    "math",
    "cond",
];

/// Whether this text is how a shell asks for the rest of a command.
fn asks_for_more(text: &str) -> bool {
    let words = text.trim().strip_suffix('>');
    words.is_some_and(|words| words.split_whitespace().all(|word| UNFINISHED.contains(&word)))
}

/// Whether this text ends as most prompts do: with a symbol and a blank. A `>` needs more, such as a directory, because
/// shells ask for another line with `>` or `quote>`.
fn is_usual_prompt(text: &str) -> bool {
    let word = text.trim_end();
    let is_prompt =
        word.ends_with(|c| SYMBOLS.contains(c)) || word.ends_with('>') && word.contains([' ', '@', '/', '~']);
    is_prompt && text.len() > word.len() && !asks_for_more(text)
}

/// Removes what zsh and fish draw after output without a newline at its end: a mark, and blanks up to the width of the
/// screen.
pub fn without_line_end_mark(shell: MirrorShell, width: usize, output: &str) -> &str {
    let marks: &[char] = match shell {
        MirrorShell::Zsh => &['%', '#'],
        MirrorShell::Fish => &['⏎', '¶'],
        MirrorShell::Bash | MirrorShell::Posix => return output,
    };
    let Some(lines) = output.strip_suffix('\n') else { return output };
    let last = lines.rsplit('\n').next().unwrap_or_default();
    let is_filled = last.width() + 1 >= width && last.ends_with(' ');
    match lines.trim_end_matches(' ').strip_suffix(marks) {
        Some(text) if is_filled => text,
        _ => output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    /// The row of the cursor, which is in the last row, in this column.
    fn find(known: Option<&ScreenPrompt>, height: usize, text: &str, column: usize) -> Option<PromptLine> {
        let rows = rows(text);
        let screen = ScreenText { rows: &rows, cursor_column: column, cursor_row: rows.len().saturating_sub(1) };
        ScreenPrompt::find(known, height, screen)
    }

    fn prompt(text: &str) -> ScreenPrompt {
        let rows = rows(text);
        let screen = ScreenText { rows: &rows, cursor_column: 99, cursor_row: rows.len() - 1 };
        let whole = ScreenPrompt::first(rows.len(), screen).expect("a prompt");
        ScreenPrompt { text: format!("{} ", whole.text.trim_end()), ..whole }
    }

    #[test]
    fn a_prompt_is_found_with_the_text_that_is_typed_after_it() {
        let known = prompt("$ ");
        let typed = |text: &str, column| find(Some(&known), 1, text, column).map(|line| line.typed);
        assert_eq!(typed("$", 2).as_deref(), Some(""));
        assert_eq!(typed("out\n$ echo half", 11).as_deref(), Some("echo half"));
        assert_eq!(typed("~/dir $ echo half", 17).as_deref(), Some("echo half"), "the prompt has changed");
        assert_eq!(typed("$             12:00", 2).as_deref(), Some(""), "a clock at the right");
        assert_eq!(typed("> ", 2), None, "the shell wants another line");
        assert_eq!(typed("working...", 10), None);
        assert_eq!(typed("", 0), None);
        assert_eq!(find(None, 1, "日本 $", 7).map(|line| line.typed).as_deref(), Some(""));
        for prompt in ["me@host ~> ", "/home » ", "$ "] {
            assert!(find(None, 1, prompt, prompt.chars().count()).is_some(), "{prompt}");
        }
        for other in ["Go on? [y/N] ", "> ", "dquote> ", "$ echo $"] {
            assert_eq!(find(None, 1, other, other.len()), None, "{other}");
        }
        assert_eq!(find(Some(&known), 3, "$", 2), None, "the screen has fewer rows");
    }

    #[test]
    fn the_output_is_between_the_prompts() {
        let known = prompt("$ ");
        let output = |text: &str, typed: &str| known.output(&rows(text), typed, Some(&prompt(text)));
        assert_eq!(output("$ true\n$ ", "true"), "");
        assert_eq!(output("$ ls\na\n\nb  \n$ ", "ls"), "a\n\nb  \n");
        assert_eq!(output("$ printf x\nx$ ", "printf x"), "x");
        assert_eq!(output("$ ls      12:00\na\n$ ", "ls"), "a\n", "a clock at the right");
        assert_eq!(output("a\n$ ", "clear; echo a"), "a\n", "the screen was cleared");
        assert_eq!(output("$ echo '$ ls'\n$ ls\n$ ", "echo '$ ls'"), "$ ls\n", "output that looks like a prompt");
        let before = prompt("~ $ ");
        assert_eq!(before.output(&rows("~ $ cd /\n/ $ "), "cd /", Some(&prompt("/ $ "))), "", "the prompt has changed");
        let unseen = |text: &str, typed: &str| known.output(&rows(text), typed, None);
        assert_eq!(unseen("$ ls\na\nb\n$ cat\nc\n", "ls"), "a\nb\n", "the person has started a program");
        assert_eq!(unseen("$ ls\na\nb", "ls"), "a\nb\n", "no prompt at all");
        assert_eq!(unseen("$ ls\na\n ", "ls"), "a\n", "the cursor is in a new row");
    }

    #[test]
    fn a_prompt_for_more_input_is_no_prompt() {
        let known = prompt("~/dir> ");
        let found = |text: &str| find(Some(&known), 1, text, text.len()).map(|line| (line.prompt.text, line.typed));
        for more in ["> ", "quote> ", "cmdsubst dquote> ", "if then> ", "r> "] {
            assert_eq!(found(more), None, "{more}");
        }
        assert_eq!(found("/usr> make"), Some(("/usr> ".into(), "make".into())), "another directory");
        assert_eq!(found("~/dir> cat > file"), Some(("~/dir> ".into(), "cat > file".into())));
        let short = |known: &str, text: &str| find(Some(&prompt(known)), 1, text, text.len()).map(|line| line.typed);
        assert_eq!(short("~/dir $ ", "$ ls").as_deref(), Some("ls"), "a shorter prompt");
        assert_eq!(short("nonl~/dir> ", "~/dir> ls").as_deref(), Some("ls"), "output stood before the last prompt");
        for more in ["> ", "quote> "] {
            assert_eq!(short("dir> ", more), None, "{more}");
        }
        // A prompt without a usual end may change, too.
        let clock = prompt("[12:00] ");
        let other = find(Some(&clock), 1, "[12:01] ls", 10).map(|line| line.typed);
        assert_eq!(other.as_deref(), Some("ls"));
    }

    #[test]
    fn marks_after_unfinished_lines_are_removed() {
        let unmarked = |shell, output| without_line_end_mark(shell, 8, output);
        assert_eq!(unmarked(MirrorShell::Zsh, "a\nnonl%   \n"), "a\nnonl");
        assert_eq!(unmarked(MirrorShell::Fish, "nonl⏎   \n"), "nonl");
        assert_eq!(unmarked(MirrorShell::Zsh, "50%\n"), "50%\n", "output of a program");
        assert_eq!(unmarked(MirrorShell::Bash, "nonl%   \n"), "nonl%   \n");
        assert_eq!(unmarked(MirrorShell::Zsh, ""), "");
    }

    #[test]
    fn prompts_of_two_rows_are_no_output() {
        let known = prompt("me@host ~\n$ ");
        let output = |text: &str, typed: &str| known.output(&rows(text), typed, Some(&prompt("me@host ~\n$ ")));
        assert_eq!(output("me@host ~\n$ ls\na\nme@host ~\n$ ", "ls"), "a\n");
        assert_eq!(output("me@host ~\n$ printf x\nxme@host ~\n$ ", "printf x"), "x");
        assert_eq!(output("me@host ~\n$ printf x\nxme@host ~   \n$ ", "printf x"), "x", "with blanks of tmux 3.2");
        assert_eq!(output("$ ls\na\nme@host /\n$ ", "ls"), "a\n", "the prompt shrinks after Enter");
    }
}
