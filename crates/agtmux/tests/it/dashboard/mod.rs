//! The web dashboard in a real browser.

mod pages;
mod tabs;

use std::fs;
use std::path::{Path, PathBuf};

use agtmux_testkit::agtmux::{configure, start};
use agtmux_testkit::web::{WebAccess, login_link, start_with_web};
use agtmux_testkit::{TestWorld, skip};
use serde_json::Value;

use crate::browser::Browser;

/// Whether the page at this address is the dashboard and not the plain page.
pub(crate) fn is_built(link: &str) -> bool {
    let address = link.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("an address");
    let web =
        WebAccess { address: address.parse().expect("an address"), token: String::new(), read_only: String::new() };
    let page = web.request("GET /", &[], "");
    String::from_utf8_lossy(&page.body).contains("/dashboard.js")
}

/// Opens the dashboard in a browser of this size. Returns None and skips the test if something is missing.
fn open(world: &TestWorld, args: &[&str]) -> Option<(WebAccess, Browser)> {
    let web = start_with_web(world);
    let link = login_link(world, args);
    if !is_built(&link) {
        skip("web/dist is empty; make web builds it");
        return None;
    }
    let browser = Browser::start(world)?;
    browser.open(&link);
    browser.wait_until("the dashboard", "return document.querySelector('.frame') !== null");
    Some((web, browser))
}

/// Stores a screenshot in the documentation if AGTMUX_WRITE_SCREENSHOTS is set.
pub(crate) fn save_screenshot(browser: &Browser, name: &str) {
    let image = browser.screenshot();
    assert!(image.starts_with(b"\x89PNG"), "not an image");
    if std::env::var_os("AGTMUX_WRITE_SCREENSHOTS").is_some() {
        let dir = repository_root().join("docs/screens");
        fs::create_dir_all(&dir).expect("the documentation is writable");
        fs::write(dir.join(format!("web-{name}.png")), image).expect("the documentation is writable");
    }
}

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Restarts the daemon with the same port.
fn restart_with(world: &TestWorld, web: &WebAccess) {
    configure(world, &format!("actions.allow_from_agents = true\nweb.listen = '{}'\n", web.address));
    start(world);
}

/// Runs axe in the page. Returns the findings that are serious or critical. None if axe is not installed.
fn accessibility_findings(browser: &Browser) -> Option<Vec<Value>> {
    let Ok(axe) = fs::read_to_string(repository_root().join("web/node_modules/axe-core/axe.min.js")) else {
        skip("axe-core is not installed; scripts/web --provide installs it");
        return None;
    };
    browser.run(&axe);
    let result = browser.run(
        "return axe.run(document, {resultTypes: ['violations']}).then((result) => result.violations\
         .filter((finding) => ['serious', 'critical'].includes(finding.impact))\
         .map((finding) => [finding.id, finding.nodes.map((node) => node.html + node.failureSummary).slice(0, 3)]))",
    );
    Some(result.as_array().cloned().unwrap_or_else(|| panic!("axe failed: {result}")))
}

/// Goes to a page of the dashboard by its address.
fn go(browser: &Browser, page: &str) {
    browser.run(&format!("location.hash = {page:?}"));
    browser.wait_until(page, &format!("return location.hash === {page:?} && document.querySelector('h1') !== null"));
}
