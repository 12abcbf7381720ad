//! What goes over the wire, field by field. Absent facts are null, never left out.

mod event;
mod health;
mod items;
mod listing;

pub use event::{EventKind, Item, WatchEvent};
pub use health::{Health, ServerHealth, StoreHealth};
pub use items::{
    DeadPane, PaneIdentity, PaneItem, SessionIdentity, SessionItem, StateTally, TargetCounts, WindowIdentity,
    WindowItem,
};
pub use listing::{Filters, GroupBy, ListQuery, Listing, Scope, Summary, TargetError};
