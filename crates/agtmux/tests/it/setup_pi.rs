//! `agtmux setup --agent pi`: installs the Pi package and adds it to the settings of Pi.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use agtmux_testkit::TestWorld;
use agtmux_testkit::agtmux::world;
use serde_json::{Value, json};

use crate::settings::{file, put, read, setup, setup_ok};

const SETTINGS: &str = ".pi/agent/settings.json";

fn package(world: &TestWorld) -> PathBuf {
    world.dir().join("data/agtmux/pi-agtmux")
}

#[test]
fn the_package_is_installed_and_registered_by_its_path() {
    let world = world();
    let settings = put(&world, SETTINGS, "{\n  \"packages\": [\n    \"npm:mine\"\n  ]\n}\n");
    setup_ok(&world, &["--agent", "pi", "--yes"]);
    let listed: Value = serde_json::from_str(&read(&settings)).expect("JSON");
    assert_eq!(listed["packages"], json!(["npm:mine", package(&world)]));
    let program = read(&package(&world).join("extensions/agtmux/program.ts"));
    assert!(program.contains(&format!("const PROGRAM = \"{}\";", env!("CARGO_BIN_EXE_agtmux"))), "{program}");
    let helper = package(&world).join("skills/tmux-task-manager/tmux-task-run.sh");
    assert_eq!(fs::metadata(helper).expect("installed").permissions().mode() & 0o111, 0o111);
    let again = setup_ok(&world, &["--agent", "pi", "--yes"]).text();
    assert!(again.contains("up to date") && !again.contains("create"), "{again}");
}

#[test]
fn uninstall_leaves_no_trace() {
    for text in ["{\"model\": \"x\"}", "{ }", "", "{\r\n  \"packages\": [ ], // mine\r\n}"] {
        let world = world();
        let settings = put(&world, SETTINGS, text);
        setup_ok(&world, &["--agent", "pi", "--yes"]);
        assert!(read(&settings).contains("pi-agtmux"));
        setup_ok(&world, &["--uninstall", "--yes"]);
        assert_eq!(read(&settings), text);
        assert!(!world.dir().join("data/agtmux").exists(), "the package is gone with its directories");
        assert!(!world.state_dir().join("setup.json").exists());
    }
}

#[test]
fn uninstall_removes_the_package_without_the_record() {
    let world = world();
    let settings = put(&world, SETTINGS, "{\"packages\": [\"npm:mine\"]}");
    setup_ok(&world, &["--agent", "pi", "--yes"]);
    fs::remove_file(world.state_dir().join("setup.json")).expect("removed");
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&settings), "{\"packages\": [\"npm:mine\"]}");
    assert!(!package(&world).join("package.json").exists());
}

#[test]
fn the_extension_of_an_earlier_version_is_removed() {
    // The first line that setup wrote, with the digest of the rest.
    let mark = "// Written by `agtmux setup`, removed by `agtmux setup --uninstall`. Changes of yours stop both. ";
    let body = "const PROGRAM = \"/opt/agtmux\";\n";
    let digest = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, body.as_bytes()).simple().to_string();
    let world = world();
    let old = put(&world, ".pi/agent/extensions/agtmux.ts", &format!("{mark}{digest}\n{body}"));
    setup_ok(&world, &["--agent", "pi", "--yes"]);
    assert!(!old.exists() && package(&world).is_dir());
    let theirs = put(&world, ".pi/agent/extensions/agtmux.ts", "export default () => {};\n");
    setup_ok(&world, &["--agent", "pi", "--yes"]);
    setup_ok(&world, &["--uninstall", "--yes"]);
    assert_eq!(read(&theirs), "export default () => {};\n");
}

#[test]
fn a_changed_file_of_the_package_is_refused() {
    let world = world();
    put(&world, SETTINGS, "{}");
    setup_ok(&world, &["--agent", "pi", "--yes"]);
    let skill = package(&world).join("skills/tmux-task-manager/SKILL.md");
    fs::write(&skill, "mine\n").expect("written");
    let refused = setup(&world, &["--agent", "pi", "--yes"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.text().contains("changed after agtmux wrote it; move or delete it"), "{}", refused.text());
    let kept = setup(&world, &["--uninstall", "--yes"]);
    assert_eq!((kept.code, read(&skill)), (Some(1), "mine\n".to_owned()));
    assert_eq!(read(&file(&world, SETTINGS)), "{}", "Pi does not load the rest");
}
