//! A question in the middle of the screen, with a key for each answer.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{overlay, theme};
use crate::model::{DrawnScreen, TuiMenu};
use crate::text;

/// The borders and the blanks beside a line.
const FRAME: usize = 4;
/// The key and the blanks around it.
const KEY: usize = 5;

pub(super) fn draw(frame: &mut Frame, body: Rect, menu: &TuiMenu, unicode: bool, drawn: &mut DrawnScreen) {
    let rows = menu.body.len() + usize::from(!menu.body.is_empty()) + menu.items.len() + 1;
    let widest =
        menu.body.iter().map(|line| line.width()).chain(menu.items.iter().map(|item| item.label.width() + KEY));
    let wanted = widest.chain([menu.title.width() + 2]).max().unwrap_or(0) + FRAME;
    let width = u16::try_from(wanted).unwrap_or(u16::MAX).clamp(40.min(body.width), body.width);
    let height = u16::try_from(rows + 2).unwrap_or(u16::MAX).min(body.height);
    let (x, y) = (body.x + (body.width - width) / 2, body.y + (body.height - height) / 2);
    let title = format!(" {} ", menu.title);
    let inner = overlay::boxed(frame, Rect { x, y, width, height }, &title, "", unicode);
    // If there is too little room, the answers are shown.
    let room = usize::from(inner.height).saturating_sub(menu.items.len() + 1);
    let mut y = inner.y;
    for line in menu.body.iter().take(room.saturating_sub(1)) {
        frame.render_widget(Line::raw(text::fit(line, usize::from(inner.width))), Rect { y, height: 1, ..inner });
        y += 1;
    }
    if !menu.body.is_empty() && room > 0 {
        y += 1;
    }
    let answers = menu.items.iter().map(|item| (item.key.to_string(), item.label.clone(), Some(item.key)));
    for (key, label, hit) in answers.chain([("Esc".to_owned(), "do nothing".to_owned(), None)]) {
        if y >= inner.bottom() {
            return;
        }
        let row = Rect { y, height: 1, ..inner };
        let label = text::fit(&label, usize::from(inner.width).saturating_sub(KEY));
        frame.render_widget(Line::from(vec![Span::styled(format!("{key:>3}  "), theme::KEY), Span::raw(label)]), row);
        drawn.menu.extend(hit.map(|key| (row, key)));
        y += 1;
    }
}
