//! Text of other programs in menus. The formats have no escapes for their own characters, so these are replaced.

use agtmux_core::sanitize;

/// One line of text for a menu. `|` would begin parameters, which can run commands.
pub(super) fn for_menu(foreign: &str, columns: usize) -> String {
    let words = foreign.split_whitespace().collect::<Vec<_>>().join(" ");
    sanitize::for_column(&words, columns).replace('|', "¦")
}

/// The lines of a text, without a line that is wider than the menu. `None` if the text does not fit: a person must not
/// approve what the menu does not show.
pub(super) fn whole(foreign: &str, lines: usize, columns: usize) -> Option<Vec<String>> {
    let rows: Vec<&str> = foreign.lines().map(str::trim_end).filter(|row| !row.is_empty()).collect();
    let fits = |row: &str| {
        let shown = sanitize::for_terminal(row);
        (unicode_width::UnicodeWidthStr::width(shown.as_str()) <= columns).then(|| shown.replace('|', "¦"))
    };
    let rows: Option<Vec<String>> = rows.into_iter().map(fits).collect();
    rows.filter(|rows| rows.len() <= lines)
}

/// Text for Pango markup.
pub(super) fn for_pango(foreign: &str, columns: usize) -> String {
    let words = foreign.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut escaped = String::new();
    for c in sanitize::for_column(&words, columns).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
