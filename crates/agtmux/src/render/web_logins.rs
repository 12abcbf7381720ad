//! The table of browsers that are logged in.

use agtmux_api::wire::WebLoginList;
use jiff::Timestamp;

use super::age::age;
use super::cell::TableCell;
use super::table::{TableColumn, TextTable};

pub(crate) fn web_logins(logins: &WebLoginList, now: Timestamp) -> TextTable {
    let items = &logins.items;
    TextTable::new(vec![
        TableColumn::required("ID", 8, items, |item| TableCell::new(&item.id)),
        TableColumn::required("ACCESS", 9, items, |item| {
            TableCell::new(if item.read_only { "read-only" } else { "full" })
        }),
        TableColumn::required("SEEN", 4, items, |item| TableCell::new(&age(item.last_seen_at, now))),
        TableColumn::optional("SINCE", 5, items, |item| TableCell::new(&age(item.created_at, now))),
        TableColumn::required("BROWSER", 12, items, |item| TableCell::new(&item.browser)),
    ])
}
