//! Sidebars: narrow panes that agtmux opens at the left edge of windows and removes again.

use std::collections::BTreeSet;
use std::ffi::OsString;

use crate::command::{Framing, TmuxCommand};
use crate::listing::{parse_id, parse_number};
use crate::{TmuxError, TmuxServer};

/// The pane option that marks a sidebar. Its value is the layout of the window before and after the sidebar was opened.
const SIDEBAR: &str = "@agtmux_sidebar";
const ROW: char = 'p';
const FIELDS: &str = "session_id window_id pane_id pane_width window_layout @agtmux_sidebar";

/// A pane, as far as sidebars need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowPane {
    pub session: u32,
    pub window: u32,
    pub pane: u32,
    pub width: u32,
    layout: String,
    /// The layouts in the mark; none if the pane is no sidebar.
    mark: Option<String>,
}

impl WindowPane {
    pub fn is_sidebar(&self) -> bool {
        self.mark.is_some()
    }
}

impl TmuxServer {
    /// The panes of all windows. A window that several sessions show is listed once per session.
    pub async fn window_panes(&self) -> Result<Vec<WindowPane>, TmuxError> {
        self.panes_of(&["-a"]).await
    }

    /// The panes in the window of this pane.
    pub async fn panes_beside(&self, pane: u32) -> Result<Vec<WindowPane>, TmuxError> {
        self.panes_of(&["-t", &format!("%{pane}")]).await
    }

    async fn panes_of(&self, which: &[&str]) -> Result<Vec<WindowPane>, TmuxError> {
        let framing = Framing::fresh();
        let list = which.iter().fold(TmuxCommand::new("list-panes"), TmuxCommand::arg);
        let answer = self.run(&[list.arg("-F").arg(framing.variables(ROW, FIELDS))]).await?;
        Ok(framing.records(ROW, &answer).iter().filter_map(|fields| parse_pane(fields)).collect())
    }

    /// Opens a sidebar with this many columns at the left edge of the window. The active pane stays active.
    pub async fn open_sidebar(&self, beside: &WindowPane, columns: u32, argv: &[OsString]) -> Result<(), TmuxError> {
        let framing = Framing::fresh();
        let format = framing.variables(ROW, "pane_id window_layout");
        let split = TmuxCommand::new("split-window").arg("-d").arg("-h").arg("-b").arg("-f");
        let split = split.arg("-l").arg(columns.to_string()).arg("-t").arg(format!("%{}", beside.pane));
        let split = split.arg("-P").arg("-F").arg(format).arg("--");
        let answer = self.run(&[argv.iter().fold(split, TmuxCommand::arg)]).await?;
        let records = framing.records(ROW, &answer);
        let Some([pane, after]) = records.first().map(Vec::as_slice) else {
            return Err(TmuxError::Unreadable("split-window printed no pane".into()));
        };
        let pane = parse_id(b'%', pane).ok_or_else(|| TmuxError::Unreadable("split-window printed no id".into()))?;
        let mark = format!("{} {}", beside.layout, String::from_utf8_lossy(after));
        let set = |option: &str, value: &str| {
            TmuxCommand::new("set-option").arg("-p").arg("-t").arg(format!("%{pane}")).arg(option).arg(value)
        };
        // With `remain-on-exit`, the pane would stay after its program has ended.
        self.run(&[set(SIDEBAR, &mark), set("remain-on-exit", "off")]).await.map(drop)
    }

    /// Removes a sidebar. If the layout did not change while the sidebar was open, the window gets its layout back.
    pub async fn close_sidebar(&self, sidebar: &WindowPane) -> Result<(), TmuxError> {
        let panes = self.panes_beside(sidebar.pane).await?;
        let kill = TmuxCommand::new("kill-pane").arg("-t").arg(format!("%{}", sidebar.pane));
        self.run(&[kill]).await?;
        if let Some(before) = layout_to_restore(sidebar, &panes) {
            let target = format!("@{}", sidebar.window);
            let select = TmuxCommand::new("select-layout").arg("-t").arg(target).arg(before);
            // The window may have ended or changed its size in between. Then it keeps the layout that tmux chose.
            let _ = self.run(&[select]).await;
        }
        Ok(())
    }

    pub async fn resize_pane_width(&self, pane: u32, columns: u32) -> Result<(), TmuxError> {
        let resize = TmuxCommand::new("resize-pane").arg("-t").arg(format!("%{pane}"));
        self.run(&[resize.arg("-x").arg(columns.to_string())]).await.map(drop)
    }
}

/// The layout before the sidebar was opened, if the window otherwise still has the same panes and the same layout.
fn layout_to_restore<'a>(sidebar: &'a WindowPane, panes: &[WindowPane]) -> Option<&'a str> {
    let (before, after) = sidebar.mark.as_deref()?.split_once(' ')?;
    let is_unchanged = panes.iter().all(|pane| pane.layout == after);
    let others: BTreeSet<u32> = panes.iter().map(|pane| pane.pane).filter(|pane| *pane != sidebar.pane).collect();
    (is_unchanged && !others.is_empty() && panes_in(before) == others).then_some(before)
}

/// The ids of the panes in a layout, such as `b25d,80x24,0,0{40x24,0,0,1,39x24,41,0,2}`: a pane has a number after its size
/// and place.
fn panes_in(layout: &str) -> BTreeSet<u32> {
    let words: Vec<&str> = layout.split([',', '{', '}', '[', ']']).collect();
    let is_size = |word: &&str| word.contains('x');
    let cells = words.iter().enumerate().filter(|(_, word)| is_size(word));
    cells.filter_map(|(n, _)| words.get(n + 3)?.parse().ok()).collect()
}

fn parse_pane(fields: &[&[u8]]) -> Option<WindowPane> {
    let &[session, window, pane, width, layout, mark] = fields else { return None };
    Some(WindowPane {
        session: parse_id(b'$', session)?,
        window: parse_id(b'@', window)?,
        pane: parse_id(b'%', pane)?,
        width: parse_number(width)?,
        layout: String::from_utf8_lossy(layout).into_owned(),
        mark: Some(String::from_utf8_lossy(mark).into_owned()).filter(|mark| !mark.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "b25d,80x24,0,0[80x12,0,0,1,80x11,0,13{40x11,0,13,2,39x11,41,13,12}]";

    fn pane(pane: u32, layout: &str, mark: Option<&str>) -> WindowPane {
        let (layout, mark) = (layout.to_owned(), mark.map(str::to_owned));
        WindowPane { session: 0, window: 0, pane, width: 30, layout, mark }
    }

    #[test]
    fn the_panes_of_a_layout_are_read() {
        assert_eq!(panes_in(BEFORE), BTreeSet::from([1, 2, 12]));
        assert_eq!(panes_in("bb62,80x24,0,0,7"), BTreeSet::from([7]));
        assert_eq!(panes_in(""), BTreeSet::new());
    }

    #[test]
    fn the_layout_is_restored_only_if_nothing_else_changed() {
        let mark = format!("{BEFORE} after");
        let sidebar = pane(9, "after", Some(&mark));
        let window = |ids: &[u32], layout: &str| -> Vec<WindowPane> {
            let others = ids.iter().map(|id| pane(*id, layout, None));
            others.chain([WindowPane { layout: layout.into(), ..sidebar.clone() }]).collect()
        };
        assert_eq!(layout_to_restore(&sidebar, &window(&[1, 2, 12], "after")), Some(BEFORE));
        assert_eq!(layout_to_restore(&sidebar, &window(&[1, 2, 12], "moved")), None, "the person changed the layout");
        assert_eq!(layout_to_restore(&sidebar, &window(&[1, 2], "after")), None, "a pane has ended");
        assert_eq!(layout_to_restore(&sidebar, &window(&[], "after")), None);
    }
}
