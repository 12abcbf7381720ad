//! Rebuilds the daemon when the files of the dashboard change. It builds nothing itself: `make web` does that.

use std::path::Path;

fn main() {
    let files = "../../web/dist";
    // A package from a registry has no dashboard. Without a file to watch, cargo would run this program at every build.
    println!("cargo::rerun-if-changed={}", if Path::new(files).exists() { files } else { "build.rs" });
}
