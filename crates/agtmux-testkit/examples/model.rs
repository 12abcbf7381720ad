//! Runs the mock model alone, to drive a real agent by hand. Prints the URL of the model and serves until standard
//! input ends.
//!
//!     cargo run --package agtmux-testkit --example model

use std::io::{Read, Write};

use agtmux_testkit::model::MockModel;

fn main() -> std::io::Result<()> {
    let model = MockModel::new();
    let mut output = std::io::stdout();
    writeln!(output, "{}", model.url())?;
    output.flush()?;
    // The parent process holds the other end of the pipe: when the parent ends, this program ends.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
