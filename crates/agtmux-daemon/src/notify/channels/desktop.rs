//! Notifications of the desktop: over D-Bus (`org.freedesktop.Notifications`), and with `osascript` on macOS.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agtmux_api::wire::Notice;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::DeliveryResult;
use super::dbus::{BusArguments, BusCall, SessionBus};

/// The most notifications of which the daemon remembers how to withdraw them.
const MAX_IDS: usize = 1000;

/// How to withdraw the notifications that the desktop shows.
#[derive(Debug, Default)]
pub(in crate::notify) struct DesktopIds {
    ids: Mutex<BTreeMap<String, DesktopId>>,
    changed: Notify,
}

/// One notification of the desktop. Ids start again when the program that shows them is started again, so an id is
/// valid only together with the bus name of that program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::notify) struct DesktopId {
    owner: String,
    id: u32,
}

impl DesktopIds {
    pub(in crate::notify) fn new(ids: BTreeMap<String, DesktopId>) -> Self {
        Self { ids: Mutex::new(ids), changed: Notify::new() }
    }

    pub(in crate::notify) fn all(&self) -> BTreeMap<String, DesktopId> {
        self.ids().clone()
    }

    /// Waits until there is a new notification.
    pub(in crate::notify) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn ids(&self) -> MutexGuard<'_, BTreeMap<String, DesktopId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call of `org.freedesktop.Notifications`.
fn call<'a>(destination: &'a str, member: &'a str, arguments: BusArguments) -> BusCall<'a> {
    BusCall {
        destination,
        path: "/org/freedesktop/Notifications",
        interface: "org.freedesktop.Notifications",
        member,
        arguments,
    }
}

const SERVICE: &str = "org.freedesktop.Notifications";

#[cfg(target_os = "macos")]
pub(super) async fn show(_: &DesktopIds, notice: &Notice) -> DeliveryResult {
    // The texts are arguments of the script and not part of it.
    let script = ["on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run"];
    let mut command = tokio::process::Command::new("osascript");
    command.args(script.iter().flat_map(|line| ["-e", line])).arg("--").arg(&notice.title).arg(&notice.text);
    super::program::run_with_input(&mut command, b"").await
}

#[cfg(not(target_os = "macos"))]
pub(super) async fn show(ids: &DesktopIds, notice: &Notice) -> DeliveryResult {
    let mut bus = SessionBus::connect().await?;
    let capabilities = bus.call(call(SERVICE, "GetCapabilities", BusArguments::default())).await?.strings()?;
    // Where the body is markup, the text must not act as markup.
    let body = match capabilities.iter().any(|capability| capability == "body-markup") {
        true => notice.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
        false => notice.text.clone(),
    };
    let replaced = ids.ids().get(&notice.notice_id).map_or(0, |known| known.id);
    let arguments = BusArguments::default()
        .string("agtmux")
        .u32(replaced)
        .string("")
        .string(&notice.title)
        .string(&body)
        .no_strings()
        .no_hints()
        .i32(-1);
    let reply = bus.call(call(SERVICE, "Notify", arguments)).await?;
    let id = DesktopId { owner: reply.sender.clone(), id: reply.first_u32()? };
    let mut known = ids.ids();
    if known.len() >= MAX_IDS {
        known.clear();
    }
    known.insert(notice.notice_id.clone(), id);
    drop(known);
    ids.changed.notify_one();
    Ok(())
}

/// Closes the notification, if the program that shows it still runs.
pub(super) async fn withdraw(ids: &DesktopIds, notice_id: &str) -> DeliveryResult {
    let Some(DesktopId { owner, id }) = ids.ids().remove(notice_id) else {
        return Err("the desktop cannot withdraw it".into());
    };
    let arguments = BusArguments::default().u32(id);
    SessionBus::connect().await?.call(call(&owner, "CloseNotification", arguments)).await.map(drop)
}
