//! Copies texts to the clipboard of the terminal.

use super::TuiEffect;
use crate::model::{MenuChoice, MenuItem, TuiMenu, TuiModel, TuiNotice, TuiOverlay};
use crate::sgr;

/// Asks what to copy. Only texts that are there are offered.
pub(super) fn menu(model: &mut TuiModel) {
    let Some(row) = model.list.selected() else { return };
    let dialog = row.dialog();
    let screen = model.preview.content.as_ref().filter(|_| model.preview.key.as_ref() == Some(&row.key));
    let screen = screen.and_then(|content| content.as_ref().ok()).map(|lines| {
        let plain: Vec<String> = lines.iter().map(|line| sgr::without_colours(line).trim_end().to_owned()).collect();
        plain.join("\n").trim_end().to_owned()
    });
    let offers = [
        ('c', "the command", dialog.and_then(|dialog| dialog.subject.clone())),
        ('q', "the question", dialog.map(|dialog| dialog.question.clone())),
        ('s', "the screen", screen),
        ('d', "the directory", row.item.cwd.clone()),
        ('t', "the title", row.item.title.clone()),
        ('r', "the reference, for agtmux commands", Some(row.reference())),
    ];
    let offer = |(key, what, text): (char, &'static str, Option<String>)| {
        let text = text.filter(|text| !text.trim().is_empty())?;
        Some(MenuItem { key, label: what.to_owned(), choice: MenuChoice::Copy { what, text } })
    };
    let items = offers.into_iter().filter_map(offer).collect();
    let menu = TuiMenu { title: "copy".to_owned(), body: Vec::new(), items, dismissed: "nothing was copied" };
    model.overlay = Some(TuiOverlay::Menu(menu));
}

pub(super) fn copy(model: &mut TuiModel, what: &str, text: String) -> Vec<TuiEffect> {
    let count = text.chars().count();
    let hint = model.look.in_tmux.then(|| "tmux passes it on with: set -s set-clipboard on".to_owned());
    model.notice = Some(TuiNotice { hint, ..TuiNotice::info(format!("copied {what} ({count} characters)")) });
    vec![TuiEffect::Copy(text)]
}
