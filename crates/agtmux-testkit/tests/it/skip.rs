//! Skipped tests are printed and recorded.

use std::fs;

use agtmux_testkit::{TestWorld, skip};

#[test]
fn a_skipped_test_is_printed_and_recorded() {
    let world = TestWorld::new();
    let file = world.dir().join("skipped");
    let mut helper = world.command(std::env::current_exe().expect("the path of the test program is known"));
    helper.args(["--exact", "skip::helper_that_is_skipped", "--ignored"]).env("AGTMUX_SKIPPED_TESTS", &file);
    let output = helper.output().expect("the helper runs");
    let line = "skipped skip::helper_that_is_skipped: no browser is installed\n";
    assert!(output.status.success() && String::from_utf8_lossy(&output.stderr).contains(line), "{output:?}");
    assert_eq!(fs::read_to_string(file).expect("the file exists"), line);
}

#[test]
#[ignore = "helper process of another test"]
fn helper_that_is_skipped() {
    skip("no browser\nis installed\n");
}
