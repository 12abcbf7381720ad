//! The committed OpenAPI document must match the daemon, and the clients in `examples/` must match the document. `make
//! contract` regenerates them.

mod operations;
mod python;
mod typescript;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use operations::operations;

#[track_caller]
fn assert_committed(path: &str, generated: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("AGTMUX_WRITE_CONTRACT").is_some() {
        fs::write(&path, generated).expect("the file is written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "{} is out of date: run `make contract` and commit it", path.display());
}

#[test]
fn committed_openapi_document_matches_the_daemon() {
    let generated = agtmux_daemon::openapi().to_pretty_json().expect("the document serializes") + "\n";
    assert_committed("crates/agtmux-api/schema/openapi.json", &generated);
}

#[test]
fn committed_clients_match_the_openapi_document() {
    let operations = operations(&agtmux_daemon::openapi());
    let names: BTreeSet<&str> = operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(names.len(), operations.len(), "two operations have the same name");
    assert_committed("examples/python/agtmux_client.py", &python::client(&operations));
    assert_committed("examples/typescript/agtmux-client.ts", &typescript::client(&operations));
}

#[test]
fn every_schema_reference_exists() {
    let document = serde_json::to_value(agtmux_daemon::openapi()).expect("the document serializes");
    let text = document.to_string();
    let names = text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next());
    let names: BTreeSet<&str> = names.collect();
    let missing: Vec<_> = names.iter().filter(|name| document["components"]["schemas"][**name].is_null()).collect();
    assert!(names.len() > 50 && missing.is_empty(), "missing schemas: {missing:?}");
}

#[test]
fn enums_are_described_as_they_are_serialized() {
    let document = serde_json::to_value(agtmux_daemon::openapi()).expect("the document serializes");
    let enum_of = |name: &str| document["components"]["schemas"][name]["enum"].clone();
    assert_eq!(enum_of("State"), serde_json::to_value(agtmux_core::state::State::ALL).expect("words"));
    assert_eq!(enum_of("ReasonCode"), serde_json::to_value(agtmux_core::state::ReasonCode::ALL).expect("words"));
}
