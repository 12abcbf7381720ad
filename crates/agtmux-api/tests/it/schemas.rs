//! Checks that the committed JSON schemas match the wire types. `make contract` regenerates them.

use std::fs;
use std::path::PathBuf;

use agtmux_api::error::ApiError;
use agtmux_api::host_protocol::{HostLine, HubLine};
use agtmux_api::wire::{
    DaemonHealth, ListResponse, Notice, PaneItem, SessionItem, TaskEvents, TaskList, TaskStarted, WatchEvent,
    WindowItem,
};
use schemars::{JsonSchema, schema_for};

fn check<T: JsonSchema>(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schema").join(format!("{name}.schema.json"));
    let mut generated = serde_json::to_string_pretty(&schema_for!(T)).expect("a schema serialises");
    generated.push('\n');
    if std::env::var_os("AGTMUX_WRITE_CONTRACT").is_some() {
        fs::write(&path, &generated).expect("the schema can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "{} is out of date: run `make contract` and commit it", path.display());
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
    check::<Notice>("notice");
    check::<ApiError>("error");
    check::<HostLine>("host-line");
    check::<HubLine>("hub-line");
}
