//! The table, whose name is the application's choice, and the statements on it.

use acta_core::{Error, Result};

/// A name that may stand in a statement as it is: letters, digits and underscores, perhaps behind a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName(String);

impl TableName {
    /// What the table is called unless the application says otherwise.
    pub const USUAL: &'static str = "acta_outbox";

    /// Refuses anything that is not such a name.
    pub fn new(text: &str) -> Result<Self> {
        let is_word = |part: &str| {
            let mut letters = part.bytes();
            letters.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
                && letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'_')
                && part.len() <= 48
        };
        let parts: Vec<&str> = text.split('.').collect();
        if parts.len() <= 2 && parts.iter().all(|part| is_word(part)) {
            return Ok(Self(text.to_owned()));
        }
        let why = "is not 1 to 48 lower-case letters, digits and underscores, the first no digit, perhaps behind a schema of such \
                   a name and a dot";
        Err(Error::invalid("table", text, why))
    }

    /// As it is written in a statement.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Without its schema.
    fn bare(&self) -> &str {
        self.0.rsplit('.').next().unwrap_or(&self.0)
    }

    /// A text about the table, with its name put in.
    fn fill(&self, text: &str) -> String {
        text.replace("{table}", &self.0).replace("{name}", self.bare())
    }
}

impl Default for TableName {
    fn default() -> Self {
        Self(Self::USUAL.into())
    }
}

/// A database that an application may have its outbox in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL and MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    /// The migration that makes the table, and what names the outbox.
    pub fn ddl(self, table: &TableName) -> String {
        table.fill(match self {
            Self::Mysql => include_str!("ddl/mysql.sql"),
            Self::Postgres => include_str!("ddl/postgres.sql"),
            Self::Sqlite => include_str!("ddl/sqlite.sql"),
        })
    }

    /// The statement that stages a row: namespace, name, payload, lane, deduplication key, options.
    pub fn stage(self, table: &TableName) -> String {
        let statement = self.statement(table, include_str!("sql/stage.sql"));
        if self == Self::Mysql { statement.replace("$1, $2, $3, $4, $5, $6", "?, ?, ?, ?, ?, ?") } else { statement }
    }

    /// The instant of the database, in milliseconds.
    fn now(self) -> &'static str {
        match self {
            // As it would be read in no time zone at all.
            Self::Mysql => "(timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000)",
            Self::Postgres => "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        }
    }

    /// A statement in this database's words. `{in 1}` is one of a list of numbers; `{free 1}` says so of a row which is to be changed,
    /// and in PostgreSQL leaves alone what somebody else has locked.
    fn statement(self, table: &TableName, text: &str) -> String {
        let mut filled = text.replace("{now}", self.now());
        filled = filled.replace("{by id}", self.by_id()).replace("{delete}", self.delete());
        for number in 1..=9 {
            let given = match self {
                // As many question marks as there are numbers, when there are.
                Self::Mysql => format!("IN (${number})"),
                Self::Postgres => format!("= ANY (${number}::bigint[])"),
                Self::Sqlite => format!("IN (SELECT value FROM json_each(${number}))"),
            };
            filled = filled.replace(&format!("{{in {number}}}"), &given);
            let free = match self {
                Self::Postgres => format!(
                    "id = ANY (ARRAY(SELECT f.id FROM {{table}} f WHERE f.id {given} ORDER BY f.id FOR UPDATE SKIP LOCKED))"
                ),
                Self::Mysql | Self::Sqlite => format!("id {given}"),
            };
            filled = filled.replace(&format!("{{free {number}}}"), &free);
        }
        match self {
            Self::Mysql | Self::Postgres => table.fill(&filled),
            Self::Sqlite => table.fill(&filled).replace('$', "?"),
        }
    }

    /// What stands behind the table of a change that names rows by their numbers: MySQL locks whatever it looks at, and is not to
    /// look at any other row.
    fn by_id(self) -> &'static str {
        match self {
            Self::Mysql => "FORCE INDEX (PRIMARY)",
            Self::Postgres | Self::Sqlite => "",
        }
    }

    /// The beginning of a deletion that names rows by their numbers, likewise.
    fn delete(self) -> &'static str {
        match self {
            Self::Mysql => "DELETE {table} FROM {table} FORCE INDEX (PRIMARY)",
            Self::Postgres | Self::Sqlite => "DELETE FROM {table}",
        }
    }
}

macro_rules! statements {
    ($(#[$about:meta])* $type:ident in $folder:literal: $($name:ident),* $(,)?) => {
        $(#[$about])*
        #[derive(Debug)]
        #[allow(dead_code, reason = "one database needs other words than another for some")]
        pub(super) struct $type {
            $(pub(super) $name: String,)*
        }

        impl $type {
            pub(super) fn new(dialect: Dialect, table: &TableName) -> Self {
                Self {
                    $($name: dialect.statement(table, include_str!(concat!($folder, stringify!($name), ".sql"))),)*
                }
            }
        }
    };
}

statements! {
    /// The statements on one table.
    Statements in "sql/":
    source_id, hold, let_go, holder, release, park, unpark, park_behind, defer, quarantine, standing, quarantined, requeue, keep,
    discard, discarded, sweep,
}

#[cfg(feature = "postgres")]
statements! {
    /// Those that PostgreSQL needs its own words for.
    Postgres in "sql/postgres/": due, look, parked, remove,
}

#[cfg(feature = "sqlite")]
statements! {
    /// Those that SQLite needs its own words for.
    Sqlite in "sql/sqlite/": due, look, parked, remove,
}

#[cfg(feature = "mysql")]
statements! {
    /// Those that MySQL needs other words for.
    Mysql in "sql/mysql/":
    choose, pending, park, due, release, is_parked, parked, unpark, heads, sweep, remove,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_stand_in_a_statement() {
        for good in ["acta_outbox", "shop.acta_outbox", "_x1"] {
            assert_eq!(TableName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a;drop table x", "\"a\"", "a.b.c", "1a", "A", "a.", "é", "a--", &"a".repeat(49)] {
            assert!(TableName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_placeholder_is_left_over() {
        let table = TableName::default();
        for dialect in [Dialect::Mysql, Dialect::Postgres, Dialect::Sqlite] {
            let all = format!("{:?}{}", Statements::new(dialect, &table), dialect.ddl(&table));
            #[cfg(feature = "mysql")]
            let all = format!("{all}{:?}", Mysql::new(dialect, &table));
            #[cfg(feature = "postgres")]
            let all = format!("{all}{:?}", Postgres::new(dialect, &table));
            #[cfg(feature = "sqlite")]
            let all = format!("{all}{:?}", Sqlite::new(dialect, &table));
            for placeholder in ["{in ", "{free ", "{table}", "{now}", "{name}", "{by id}", "{delete}"] {
                assert!(!all.contains(placeholder), "{placeholder}: {all}");
            }
        }
    }
}
