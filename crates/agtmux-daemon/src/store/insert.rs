//! How rows are inserted.

/// Inserts a row. The arguments are the start of the statement, each column with its value, and optionally the clause
/// for a row that already exists.
macro_rules! insert {
    (@next $column:ident) => { ", ?" };
    ($tx:expr, $into:literal, { $first:ident: $value:expr, $($column:ident: $next:expr,)* } $($on_conflict:literal)?) => {
        $tx.prepare_cached(concat!(
            $into, " (", stringify!($first), $(", ", stringify!($column),)*
            ") VALUES (?", $(insert!(@next $column),)* ") ", $($on_conflict)?
        ))?
        .execute(rusqlite::params![$value, $($next,)*])
        .map(drop)
    };
}

pub(super) use insert;
