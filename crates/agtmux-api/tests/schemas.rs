//! The committed JSON schemas are those of the wire types. `make contract` writes them anew.

use std::fs;
use std::path::PathBuf;

use agtmux_api::error::ApiError;
use agtmux_api::wire::{
    DaemonHealth, ListResponse, PaneItem, SessionItem, TaskEvents, TaskList, TaskStarted, WatchEvent, WindowItem,
};
use schemars::{JsonSchema, schema_for};

fn check<T: JsonSchema>(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schema").join(format!("{name}.schema.json"));
    let mut made = serde_json::to_string_pretty(&schema_for!(T)).expect("a schema serialises");
    made.push('\n');
    if std::env::var_os("AGTMUX_WRITE_CONTRACT").is_some() {
        fs::write(&path, &made).expect("the schema can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "{} is out of date: run `make contract` and commit it", path.display());
}

#[test]
fn committed_schemas_are_those_of_the_wire_types() {
    check::<ListResponse<PaneItem>>("panes");
    check::<ListResponse<WindowItem>>("windows");
    check::<ListResponse<SessionItem>>("sessions");
    check::<WatchEvent>("event");
    check::<DaemonHealth>("health");
    check::<TaskList>("tasks");
    check::<TaskStarted>("task-started");
    check::<TaskEvents>("task-events");
    check::<ApiError>("error");
}
