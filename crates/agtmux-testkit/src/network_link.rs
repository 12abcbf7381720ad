//! Network links that a test can cut. Each link connects this machine to a network namespace.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::TestHostOptions;

/// A link to a network namespace. Dropping it removes the link and the namespace.
#[derive(Debug)]
pub struct NetworkLink {
    name: String,
    address: String,
}

fn ip(args: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(args).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

impl NetworkLink {
    /// Creates a link. Fails if the tests may not create network namespaces.
    pub fn new() -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = (std::process::id() * 4 + COUNT.fetch_add(1, Ordering::SeqCst)) % 16_000;
        let (name, outer, inner) = (format!("agt{n}"), format!("agto{n}"), format!("agti{n}"));
        // 198.18.0.0/15 is reserved for tests.
        let net = format!("198.18.{}", n / 64);
        let (ours, theirs) = (n % 64 * 4 + 1, n % 64 * 4 + 2);
        ip(&["netns", "add", &name])?;
        let link = Self { name: name.clone(), address: format!("{net}.{theirs}") };
        ip(&["link", "add", &outer, "type", "veth", "peer", "name", &inner, "netns", &name])?;
        ip(&["addr", "add", &format!("{net}.{ours}/30"), "dev", &outer])?;
        ip(&["link", "set", &outer, "up"])?;
        ip(&["-n", &name, "addr", "add", &format!("{}/30", link.address), "dev", &inner])?;
        ip(&["-n", &name, "link", "set", &inner, "up"])?;
        ip(&["-n", &name, "link", "set", "lo", "up"])?;
        Ok(link)
    }

    /// Changes the options of a host so that the host runs at the other end of the link.
    pub fn place_behind(&self, options: TestHostOptions) -> TestHostOptions {
        let within = ["ip", "netns", "exec", &self.name].map(str::to_owned).to_vec();
        TestHostOptions { address: Some(self.address.clone()), command_prefix: within, ..options }
    }

    fn outer_interface(&self) -> String {
        self.name.replacen("agt", "agto", 1)
    }

    /// Cuts the link: all packets are lost, and neither side gets an error.
    #[track_caller]
    pub fn cut(&self) {
        ip(&["link", "set", &self.outer_interface(), "down"]).expect("the interface belongs to this test");
    }

    #[track_caller]
    pub fn restore(&self) {
        ip(&["link", "set", &self.outer_interface(), "up"]).expect("the interface belongs to this test");
    }
}

impl Drop for NetworkLink {
    fn drop(&mut self) {
        let _ = ip(&["link", "del", &self.outer_interface()]);
        let _ = ip(&["netns", "del", &self.name]);
    }
}
