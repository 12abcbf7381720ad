//! How rows are inserted.

/// Inserts a row. The arguments are: the start of the statement, the columns with their values, and optionally an `ON
/// CONFLICT` clause, which applies if the row already exists.
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
