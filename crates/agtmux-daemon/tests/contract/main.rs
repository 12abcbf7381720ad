//! The committed OpenAPI document is the one the daemon serves, and the clients in `examples/` are made from it.
//! `make contract` writes them anew.

mod operations;
mod python;
mod typescript;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use operations::operations;

#[track_caller]
fn assert_committed(path: &str, made: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("AGTMUX_WRITE_CONTRACT").is_some() {
        fs::write(&path, made).expect("it can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "{} is out of date: run `make contract` and commit it", path.display());
}

#[test]
fn committed_openapi_is_what_is_served() {
    let made = agtmux_daemon::openapi().to_pretty_json().expect("the document serialises") + "\n";
    assert_committed("crates/agtmux-api/schema/openapi.json", &made);
}

#[test]
fn committed_clients_are_made_from_it() {
    let operations = operations(&agtmux_daemon::openapi());
    let names: BTreeSet<&str> = operations.iter().map(|operation| operation.name.as_str()).collect();
    assert_eq!(names.len(), operations.len(), "two operations have one name");
    assert_committed("examples/python/agtmux_client.py", &python::client(&operations));
    assert_committed("examples/typescript/agtmux-client.ts", &typescript::client(&operations));
}

#[test]
fn every_reference_leads_somewhere() {
    let document = serde_json::to_value(agtmux_daemon::openapi()).expect("the document serialises");
    let text = document.to_string();
    let names = text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next());
    let names: BTreeSet<&str> = names.collect();
    let missing: Vec<_> = names.iter().filter(|name| document["components"]["schemas"][**name].is_null()).collect();
    assert!(names.len() > 50 && missing.is_empty(), "nothing is known of {missing:?}");
}

#[test]
fn words_are_described_as_they_are_sent() {
    let document = serde_json::to_value(agtmux_daemon::openapi()).expect("the document serialises");
    let described = |name: &str| document["components"]["schemas"][name]["enum"].clone();
    assert_eq!(described("State"), serde_json::to_value(agtmux_core::state::State::ALL).expect("words"));
    assert_eq!(described("ReasonCode"), serde_json::to_value(agtmux_core::state::ReasonCode::ALL).expect("words"));
}
