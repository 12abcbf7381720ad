//! The style of a cell, reduced to the properties that rules use.

/// A class of colours. Rules need no exact colours, because these differ between themes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CellColour {
    #[default]
    Default,
    Black,
    /// The shades of grey in which agents write hints and placeholders.
    Grey,
    White,
    Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CellStyle {
    pub bold: bool,
    pub dim: bool,
    pub reverse: bool,
    pub underline: bool,
    pub fg: CellColour,
    pub bg: CellColour,
}

impl CellStyle {
    /// Whether the text is dim or grey, like ghost text.
    pub fn is_faint(self) -> bool {
        self.dim || self.fg == CellColour::Grey
    }

    /// Applies one escape sequence `CSI … m`. Each item of `params` is one parameter with its sub-parameters.
    pub(super) fn apply<'a>(&mut self, params: impl Iterator<Item = &'a [u16]>) {
        let mut params = params;
        while let Some(param) = params.next() {
            match param.first().copied().unwrap_or(0) {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                4 => self.underline = param.get(1) != Some(&0),
                7 => self.reverse = true,
                22 => (self.bold, self.dim) = (false, false),
                24 => self.underline = false,
                27 => self.reverse = false,
                n @ (30..=37 | 90..=97) => self.fg = basic_colour(n),
                n @ (40..=47 | 100..=107) => self.bg = basic_colour(n - 10),
                38 => self.fg = extended_colour(&param[1..], &mut params).unwrap_or(self.fg),
                48 => self.bg = extended_colour(&param[1..], &mut params).unwrap_or(self.bg),
                39 => self.fg = CellColour::Default,
                49 => self.bg = CellColour::Default,
                _ => {}
            }
        }
    }
}

fn basic_colour(n: u16) -> CellColour {
    match n {
        30 => CellColour::Black,
        37 | 97 => CellColour::White,
        90 => CellColour::Grey,
        _ => CellColour::Colour,
    }
}

/// Reads an extended colour. In `38:5:n`, the values are sub-parameters (`subs`). In `38;5;n`, the values are the next
/// parameters (`rest`).
fn extended_colour<'a>(subs: &[u16], rest: &mut impl Iterator<Item = &'a [u16]>) -> Option<CellColour> {
    let mut next = || rest.next().and_then(|param| param.first().copied());
    match subs {
        [5, n, ..] => Some(indexed_colour(*n)),
        [2, r, g, b] | [2, _, r, g, b, ..] => Some(rgb_colour(*r, *g, *b)),
        _ => match next()? {
            5 => next().map(indexed_colour),
            2 => Some(rgb_colour(next()?, next()?, next()?)),
            _ => None,
        },
    }
}

fn indexed_colour(n: u16) -> CellColour {
    match n {
        0 | 16 | 232..=234 => CellColour::Black,
        7 | 15 | 188 | 231 | 251..=255 => CellColour::White,
        8 | 59 | 102 | 145 | 235..=250 => CellColour::Grey,
        _ => CellColour::Colour,
    }
}

fn rgb_colour(r: u16, g: u16, b: u16) -> CellColour {
    let (lowest, highest) = (r.min(g).min(b), r.max(g).max(b));
    match highest {
        // Themes use slightly tinted greys.
        _ if highest - lowest > 28 => CellColour::Colour,
        0..40 => CellColour::Black,
        40..190 => CellColour::Grey,
        _ => CellColour::White,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(params: &[&[u16]]) -> CellStyle {
        let mut style = CellStyle::default();
        style.apply(params.iter().copied());
        style
    }

    #[test]
    fn both_notations_of_extended_colours_are_read() {
        for params in [&[&[38u16][..], &[5], &[246]][..], &[&[38, 5, 246][..]], &[&[38, 2, 0, 120, 120, 120][..]]] {
            assert_eq!(after(params).fg, CellColour::Grey, "{params:?}");
        }
        assert_eq!(after(&[&[38], &[2], &[205], &[20], &[20], &[2]]), {
            CellStyle { fg: CellColour::Colour, dim: true, ..CellStyle::default() }
        });
    }

    #[test]
    fn a_tinted_grey_is_grey() {
        assert_eq!(rgb_colour(108, 112, 134), CellColour::Grey);
        assert_eq!(rgb_colour(137, 180, 250), CellColour::Colour);
        assert_eq!((rgb_colour(20, 20, 20), rgb_colour(240, 240, 240)), (CellColour::Black, CellColour::White));
    }

    #[test]
    fn incomplete_and_unknown_parameters_are_ignored() {
        for params in [&[&[38u16][..]][..], &[&[38, 5][..]], &[&[38][..], &[9]], &[&[77][..]], &[&[][..]]] {
            assert_eq!(after(params), CellStyle::default(), "{params:?}");
        }
    }

    #[test]
    fn a_reset_clears_all_styles() {
        assert_eq!(after(&[&[1], &[2], &[7], &[31], &[44], &[0]]), CellStyle::default());
        assert_eq!(after(&[&[1], &[2], &[22]]), CellStyle::default());
    }
}
