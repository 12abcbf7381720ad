//! How wide each column may be.

/// Between two columns.
pub(super) const GAP: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnWidth {
    /// What the widest field needs.
    pub(super) natural: usize,
    /// Narrower than this it says nothing.
    pub(super) min: usize,
    /// May be left out where there is no room.
    pub(super) optional: bool,
}

/// The width of each column, 0 for one that is left out. The last ones give way first: optional columns shrink, then go
/// one by one; only then do the others shrink.
pub(super) fn fit_columns(wants: &[ColumnWidth], limit: Option<usize>) -> Vec<usize> {
    let mut widths: Vec<usize> = wants.iter().map(|want| want.natural).collect();
    let Some(limit) = limit else { return widths };
    let mut present: Vec<bool> = vec![true; wants.len()];
    loop {
        for (i, want) in wants.iter().enumerate() {
            widths[i] = if present[i] { want.natural } else { 0 };
        }
        shrink(&mut widths, limit, |i| wants[i].optional.then_some(wants[i].min));
        if total(&widths) <= limit {
            return widths;
        }
        match (0..wants.len()).rev().find(|&i| present[i] && wants[i].optional) {
            Some(last) => present[last] = false,
            None => break,
        }
    }
    shrink(&mut widths, limit, |i| Some(wants[i].min));
    shrink(&mut widths, limit, |_| Some(1));
    while total(&widths) > limit
        && let Some(last) = widths.iter().rposition(|width| *width > 0)
    {
        widths[last] = 0;
    }
    widths
}

/// Takes what is too much from the last columns on, each down to what it says it needs.
fn shrink(widths: &mut [usize], limit: usize, least: impl Fn(usize) -> Option<usize>) {
    for i in (0..widths.len()).rev() {
        let excess = total(widths).saturating_sub(limit);
        if let Some(least) = least(i) {
            widths[i] -= excess.min(widths[i].saturating_sub(least));
        }
    }
}

fn total(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|width| **width > 0).count();
    widths.iter().sum::<usize>() + GAP * shown.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTS: [ColumnWidth; 4] = [
        ColumnWidth { natural: 16, min: 8, optional: false },
        ColumnWidth { natural: 20, min: 10, optional: false },
        ColumnWidth { natural: 30, min: 10, optional: true },
        ColumnWidth { natural: 40, min: 10, optional: true },
    ];

    #[test]
    fn without_a_limit_all_get_what_they_want() {
        assert_eq!(fit_columns(&WANTS, None), [16, 20, 30, 40]);
        assert_eq!(fit_columns(&WANTS, Some(112)), [16, 20, 30, 40]);
    }

    #[test]
    fn optional_columns_shrink_then_go_then_the_others_shrink() {
        assert_eq!(fit_columns(&WANTS, Some(90)), [16, 20, 30, 18]);
        assert_eq!(fit_columns(&WANTS, Some(70)), [16, 20, 18, 10]);
        assert_eq!(fit_columns(&WANTS, Some(55)), [16, 20, 15, 0]);
        assert_eq!(fit_columns(&WANTS, Some(40)), [16, 20, 0, 0]);
        assert_eq!(fit_columns(&WANTS, Some(30)), [16, 12, 0, 0]);
        assert_eq!(fit_columns(&WANTS, Some(20)), [8, 10, 0, 0]);
    }

    #[test]
    fn nothing_is_ever_too_wide() {
        for limit in 0..120 {
            assert!(total(&fit_columns(&WANTS, Some(limit))) <= limit);
        }
    }
}
