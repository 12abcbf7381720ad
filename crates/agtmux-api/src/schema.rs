//! The committed JSON schemas of documents, for programs that explain the fields.

pub const PANES: &str = include_str!("../schema/panes.schema.json");
pub const SESSIONS: &str = include_str!("../schema/sessions.schema.json");
pub const TASKS: &str = include_str!("../schema/tasks.schema.json");
pub const NOTICE: &str = include_str!("../schema/notice.schema.json");
