//! The unit tests of the package, in node.

use std::path::Path;

use agtmux_testkit::agtmux::{run, world};
use agtmux_testkit::runnable_typescript;

#[test]
fn the_unit_tests_of_the_package_pass() {
    let world = world();
    let tests = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../extensions/pi/test/all.ts"));
    let Some(program) = runnable_typescript(&world, tests) else { return };
    let done = run(world.command("node").arg("--test").arg(program));
    assert_eq!(done.code, Some(0), "{}{}", done.text(), done.stderr);
    assert!(done.text().contains("pass "), "{}", done.text());
}
