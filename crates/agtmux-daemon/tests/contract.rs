//! The committed OpenAPI document is the one the daemon serves. `make contract` writes it anew.

use std::fs;
use std::path::PathBuf;

#[test]
fn committed_openapi_is_what_is_served() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../agtmux-api/schema/openapi.json");
    let made = agtmux_daemon::openapi().to_pretty_json().expect("the document serialises") + "\n";
    if std::env::var_os("AGTMUX_WRITE_CONTRACT").is_some() {
        fs::write(&path, &made).expect("the document can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "{} is out of date: run `make contract` and commit it", path.display());
}
