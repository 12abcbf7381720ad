//! Distributes the width of the terminal over the columns.

/// The number of spaces between two columns.
pub(super) const GAP: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnWidth {
    /// The width of the column's widest cell.
    pub(super) natural: usize,
    /// The smallest useful width of the column.
    pub(super) min: usize,
    /// Whether the column may be hidden if there is no room.
    pub(super) optional: bool,
}

/// Returns the width of each column. A hidden column has the width 0. If the columns are too wide, the optional columns
/// shrink first. Then optional columns are hidden one by one. Then the required columns shrink. Each of these steps
/// starts with the last column.
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

/// Shrinks columns until all of them fit into the limit. Starts with the last column, and shrinks each column at most
/// to its minimum. `least` returns this minimum, or `None` if the column must not shrink.
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
    fn without_a_limit_columns_have_their_natural_width() {
        assert_eq!(fit_columns(&WANTS, None), [16, 20, 30, 40]);
        assert_eq!(fit_columns(&WANTS, Some(112)), [16, 20, 30, 40]);
    }

    #[test]
    fn optional_columns_shrink_and_disappear_before_required_ones_shrink() {
        assert_eq!(fit_columns(&WANTS, Some(90)), [16, 20, 30, 18]);
        assert_eq!(fit_columns(&WANTS, Some(70)), [16, 20, 18, 10]);
        assert_eq!(fit_columns(&WANTS, Some(55)), [16, 20, 15, 0]);
        assert_eq!(fit_columns(&WANTS, Some(40)), [16, 20, 0, 0]);
        assert_eq!(fit_columns(&WANTS, Some(30)), [16, 12, 0, 0]);
        assert_eq!(fit_columns(&WANTS, Some(20)), [8, 10, 0, 0]);
    }

    #[test]
    fn the_total_width_never_exceeds_the_limit() {
        for limit in 0..120 {
            assert!(total(&fit_columns(&WANTS, Some(limit))) <= limit);
        }
    }
}
