//! The mock model by itself, to lead a real agent by hand: prints where it listens, then serves until its input ends.
//!
//!     cargo run --package agtmux-testkit --example model

use std::io::{Read, Write};

use agtmux_testkit::model::MockModel;

fn main() -> std::io::Result<()> {
    let model = MockModel::new();
    let mut output = std::io::stdout();
    writeln!(output, "{}", model.url())?;
    output.flush()?;
    // Whoever started it holds the other end: when they go, so does it.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
