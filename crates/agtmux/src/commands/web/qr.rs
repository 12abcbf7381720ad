//! Draws a QR code with block characters.

use qrcode::{Color, EcLevel, QrCode};

/// The width of the light border that scanners need, in modules. The standard asks for four, but scanners accept two.
const BORDER: i32 = 2;

/// The lines of the code. Two modules share one character. `None` if the text is too long for a code.
pub(super) fn lines(text: &str) -> Option<Vec<String>> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let width = i32::try_from(code.width()).ok()?;
    let is_dark = |column: i32, row: i32| {
        let at = usize::try_from(column).ok().zip(usize::try_from(row).ok());
        at.is_some_and(|at| column < width && row < width && code[at] == Color::Dark)
    };
    // Terminals are usually dark, so light modules are drawn and dark ones are left out.
    let block = |column: i32, row: i32| match (is_dark(column, row), is_dark(column, row + 1)) {
        (false, false) => '█',
        (false, true) => '▀',
        (true, false) => '▄',
        (true, true) => ' ',
    };
    let rows = (-BORDER..width + BORDER).step_by(2);
    Some(rows.map(|row| (-BORDER..width + BORDER).map(|column| block(column, row)).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_becomes_a_code_with_a_light_border() {
        let lines = lines("https://agents.example/#code=0123456789abcdef").expect("short enough");
        assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()));
        assert!(lines[0].chars().all(|block| block == '█'), "{lines:?}");
        // The finder pattern: seven dark modules, a light ring inside.
        assert!(lines[1].starts_with("██ ▄▄▄▄▄ █"), "{lines:?}");
        assert_eq!(super::lines(&"x".repeat(5000)), None);
    }
}
