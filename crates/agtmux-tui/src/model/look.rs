//! What the terminal can show, and the colours of the interface.

use jiff::tz::TimeZone;
use ratatui::style::Color;

/// What the terminal can show, and what of the environment the view needs.
#[derive(Debug, Clone)]
pub struct TerminalLook {
    pub colours: TerminalColours,
    pub roles: ColourRoles,
    pub unicode: bool,
    pub home: Option<String>,
    pub zone: TimeZone,
    /// Whether the terminal is a pane of tmux.
    pub in_tmux: bool,
}

impl Default for TerminalLook {
    /// A terminal that shows ASCII without colours.
    fn default() -> Self {
        Self {
            colours: TerminalColours::None,
            roles: ColourRoles::TERMINAL,
            unicode: false,
            home: None,
            zone: TimeZone::UTC,
            in_tmux: false,
        }
    }
}

/// How many colours the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TerminalColours {
    None,
    Sixteen,
    Indexed,
    All,
}

/// The colours of the interface. The view draws with the named colours; the last check of a frame replaces them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColourRoles {
    /// Waiting agents. Drawn as yellow.
    pub waiting: Color,
    /// Errors. Drawn as red.
    pub error: Color,
    /// Running agents. Drawn as green.
    pub running: Color,
    /// Completed and unseen agents. Drawn as blue.
    pub done: Color,
    /// Keys. Drawn as cyan.
    pub key: Color,
}

impl ColourRoles {
    /// The terminal's own colours.
    pub const TERMINAL: Self =
        Self { waiting: Color::Yellow, error: Color::Red, running: Color::Green, done: Color::Blue, key: Color::Cyan };
    /// For a dark background: the bright ones of the 16 colours.
    pub const DARK: Self = Self {
        waiting: Color::LightYellow,
        error: Color::LightRed,
        running: Color::LightGreen,
        done: Color::LightBlue,
        key: Color::LightCyan,
    };
    /// For a light background, on which yellow and cyan cannot be read.
    pub const LIGHT: Self =
        Self { waiting: Color::Magenta, error: Color::Red, running: Color::Green, done: Color::Blue, key: Color::Blue };

    /// The colour to show for a colour that the view has drawn.
    pub fn shown(&self, drawn: Color) -> Color {
        match drawn {
            Color::Yellow => self.waiting,
            Color::Red => self.error,
            Color::Green => self.running,
            Color::Blue => self.done,
            Color::Cyan => self.key,
            other => other,
        }
    }
}

impl TerminalColours {
    /// The nearest colour that the terminal has.
    pub fn nearest(self, colour: Color) -> Color {
        match (self, colour) {
            (Self::None, _) => Color::Reset,
            (Self::Sixteen, Color::Rgb(r, g, b)) => nearest_of_sixteen(r, g, b),
            (Self::Sixteen, Color::Indexed(n @ 16..)) => {
                let (r, g, b) = rgb_of(n);
                nearest_of_sixteen(r, g, b)
            }
            (Self::Indexed, Color::Rgb(r, g, b)) => Color::Indexed(nearest_index(r, g, b)),
            (_, colour) => colour,
        }
    }
}

/// The levels of red, green and blue in the cube of the 256 colours.
const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn rgb_of(index: u8) -> (u8, u8, u8) {
    if index >= 232 {
        let grey = 8 + (index - 232) * 10;
        return (grey, grey, grey);
    }
    let n = usize::from(index.saturating_sub(16));
    (LEVELS[n / 36 % 6], LEVELS[n / 6 % 6], LEVELS[n % 6])
}

fn nearest_index(r: u8, g: u8, b: u8) -> u8 {
    let distance = |index: &u8| {
        let (red, green, blue) = rgb_of(*index);
        [(r, red), (g, green), (b, blue)].map(|(one, other)| u32::from(one.abs_diff(other)).pow(2)).iter().sum::<u32>()
    };
    (16..=255).min_by_key(distance).unwrap_or(16)
}

/// Bright if the colour is, and each of red, green and blue if it has at least two thirds of the strongest one.
fn nearest_of_sixteen(r: u8, g: u8, b: u8) -> Color {
    let most = r.max(g).max(b);
    let has = |part: u8| u16::from(part) * 3 >= u16::from(most) * 2;
    let bits = u8::from(has(r)) | u8::from(has(g)) << 1 | u8::from(has(b)) << 2;
    match (most, bits) {
        (0..=47, _) => Color::Indexed(0),
        (48..=127, 7) => Color::Indexed(8),
        (48..=191, bits) => Color::Indexed(bits),
        (_, 7) => Color::Indexed(15),
        (_, bits) => Color::Indexed(bits + 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_that_the_terminal_lacks_is_replaced_by_the_nearest() {
        let sixteen = |colour| TerminalColours::Sixteen.nearest(colour);
        assert_eq!(sixteen(Color::Rgb(200, 30, 30)), Color::Indexed(9));
        assert_eq!(sixteen(Color::Rgb(20, 20, 30)), Color::Indexed(0));
        assert_eq!(sixteen(Color::Rgb(120, 120, 120)), Color::Indexed(8));
        assert_eq!(sixteen(Color::Indexed(231)), Color::Indexed(15));
        assert_eq!(sixteen(Color::Indexed(3)), Color::Indexed(3));
        assert_eq!(TerminalColours::Indexed.nearest(Color::Rgb(255, 135, 0)), Color::Indexed(208));
        assert_eq!(TerminalColours::All.nearest(Color::Rgb(1, 2, 3)), Color::Rgb(1, 2, 3));
        assert_eq!(TerminalColours::None.nearest(Color::Red), Color::Reset);
    }
}
