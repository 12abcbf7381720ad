//! How a cell looks, as far as it tells what a text is.

/// A colour, as coarse as judgements need it: themes differ in the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ink {
    #[default]
    Default,
    Black,
    /// The greys in which hints and placeholders are written.
    Grey,
    White,
    Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    pub bold: bool,
    pub dim: bool,
    pub reverse: bool,
    pub underline: bool,
    pub fg: Ink,
    pub bg: Ink,
}

impl Style {
    /// Written so that it recedes, as ghost text is.
    pub fn is_faint(self) -> bool {
        self.dim || self.fg == Ink::Grey
    }

    /// Applies the parameters of one `CSI … m`, each with its sub-parameters.
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
                n @ (30..=37 | 90..=97) => self.fg = basic(n),
                n @ (40..=47 | 100..=107) => self.bg = basic(n - 10),
                38 => self.fg = extended(&param[1..], &mut params).unwrap_or(self.fg),
                48 => self.bg = extended(&param[1..], &mut params).unwrap_or(self.bg),
                39 => self.fg = Ink::Default,
                49 => self.bg = Ink::Default,
                _ => {}
            }
        }
    }
}

fn basic(n: u16) -> Ink {
    match n {
        30 => Ink::Black,
        37 | 97 => Ink::White,
        90 => Ink::Grey,
        _ => Ink::Colour,
    }
}

/// `38:5:n` brings its values along, `38;5;n` takes them from the parameters that follow.
fn extended<'a>(subs: &[u16], rest: &mut impl Iterator<Item = &'a [u16]>) -> Option<Ink> {
    let mut next = || rest.next().and_then(|param| param.first().copied());
    match subs {
        [5, n, ..] => Some(indexed(*n)),
        [2, r, g, b] | [2, _, r, g, b, ..] => Some(rgb(*r, *g, *b)),
        _ => match next()? {
            5 => next().map(indexed),
            2 => Some(rgb(next()?, next()?, next()?)),
            _ => None,
        },
    }
}

fn indexed(n: u16) -> Ink {
    match n {
        0 | 16 | 232..=234 => Ink::Black,
        7 | 15 | 188 | 231 | 251..=255 => Ink::White,
        8 | 59 | 102 | 145 | 235..=250 => Ink::Grey,
        _ => Ink::Colour,
    }
}

fn rgb(r: u16, g: u16, b: u16) -> Ink {
    let (lowest, highest) = (r.min(g).min(b), r.max(g).max(b));
    match (highest, highest - lowest) {
        // Themes tint their greys.
        (40..190, 0..=28) => Ink::Grey,
        (_, 25..) => Ink::Colour,
        (0..40, _) => Ink::Black,
        _ => Ink::White,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(params: &[&[u16]]) -> Style {
        let mut style = Style::default();
        style.apply(params.iter().copied());
        style
    }

    #[test]
    fn both_spellings_of_colours_are_read() {
        for params in [&[&[38u16][..], &[5], &[246]][..], &[&[38, 5, 246][..]], &[&[38, 2, 0, 120, 120, 120][..]]] {
            assert_eq!(after(params).fg, Ink::Grey, "{params:?}");
        }
        assert_eq!(after(&[&[38], &[2], &[205], &[20], &[20], &[2]]), {
            Style { fg: Ink::Colour, dim: true, ..Style::default() }
        });
    }

    #[test]
    fn a_tinted_grey_is_grey() {
        assert_eq!(rgb(108, 112, 134), Ink::Grey);
        assert_eq!(rgb(137, 180, 250), Ink::Colour);
        assert_eq!((rgb(20, 20, 20), rgb(240, 240, 240)), (Ink::Black, Ink::White));
    }

    #[test]
    fn what_is_cut_off_or_unheard_of_changes_nothing() {
        for params in [&[&[38u16][..]][..], &[&[38, 5][..]], &[&[38][..], &[9]], &[&[77][..]], &[&[][..]]] {
            assert_eq!(after(params), Style::default(), "{params:?}");
        }
    }

    #[test]
    fn a_reset_takes_everything_back() {
        assert_eq!(after(&[&[1], &[2], &[7], &[31], &[44], &[0]]), Style::default());
        assert_eq!(after(&[&[1], &[2], &[22]]), Style::default());
    }
}
