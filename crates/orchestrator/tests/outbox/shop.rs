//! The shop's own database, with its orders and its outbox.

use std::path::PathBuf;
use std::time::Duration;

use acta_testkit::{mariadb, postgres};

use crate::common::Desk;

/// Every database that an outbox may be in.
pub(crate) const KINDS: [&str; 3] = ["sqlite", "postgres", "mysql"];

pub(crate) enum Shop {
    Sqlite(PathBuf),
    Postgres(postgres::Database),
    Mysql(mariadb::Database),
}

const ORDERS: &str = "CREATE TABLE orders (number bigint PRIMARY KEY, lane varchar(100) NOT NULL)";

impl Shop {
    /// On the servers that the tests share.
    pub(crate) fn new(desk: &Desk, kind: &str) -> Self {
        let shop = match kind {
            "sqlite" => Self::Sqlite(desk.path().join("shop.db")),
            "postgres" => Self::Postgres(postgres::Database::new(postgres::Server::shared_url(), None)),
            _ => Self::Mysql(mariadb::Database::new(mariadb::Server::shared_url())),
        };
        shop.open(desk)
    }

    /// Makes its tables.
    pub(crate) fn open(self, desk: &Desk) -> Self {
        let ddl = desk.run(&["outbox", "ddl", "--for", self.kind()]);
        assert_eq!(ddl.code, Some(0), "{ddl:?}");
        let journal = if matches!(self, Self::Sqlite(_)) { "PRAGMA journal_mode = wal;" } else { "" };
        self.run(&format!("{journal} {ORDERS};\n{}", ddl.out));
        self
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
            Self::Mysql(_) => "mysql",
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
            Self::Postgres(database) => database.url(),
            Self::Mysql(database) => database.url(),
        }
    }

    /// Runs statements in one session; the first column of what they answer.
    pub(crate) fn run(&self, script: &str) -> Vec<String> {
        self.try_run(script).unwrap_or_else(|fault| panic!("{fault}: {script}"))
    }

    fn try_run(&self, script: &str) -> Result<Vec<String>, String> {
        match self {
            Self::Sqlite(path) => by_rusqlite(path, script).map_err(|fault| fault.to_string()),
            Self::Postgres(database) => postgres::sql(&database.url(), script),
            Self::Mysql(database) => mariadb::sql(&database.url(), script),
        }
    }

    /// Saves an order with its job, in one transaction that takes its time; or thinks better of it. Where the server went away, the
    /// orders tell what became of it.
    pub(crate) fn order(&self, number: usize, lane: &str, commits: bool) {
        let end = if commits { "COMMIT" } else { "ROLLBACK" };
        let begin = if matches!(self, Self::Sqlite(_)) { "BEGIN IMMEDIATE" } else { "BEGIN" };
        let slow = match self {
            Self::Postgres(_) if number.is_multiple_of(37) => "SELECT pg_sleep(0.2);",
            Self::Mysql(_) if number.is_multiple_of(37) => "DO sleep(0.2);",
            _ => "",
        };
        let script = format!(
            "{begin};
             INSERT INTO orders (number, lane) VALUES ({number}, '{lane}');
             INSERT INTO acta_outbox (namespace, name, payload, lane)
             VALUES ('transactions/orders', 'ship', '{{\"order\": {number}}}', '{lane}');
             {slow}
             {end};"
        );
        let patience = std::time::Instant::now() + Duration::from_mins(1);
        while let Err(fault) = self.try_run(&script) {
            assert!(std::time::Instant::now() < patience, "order {number}: {fault}");
            let is_there = self.try_run(&format!("SELECT number FROM orders WHERE number = {number}"));
            if is_there.is_ok_and(|found| !found.is_empty()) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    pub(crate) fn orders(&self) -> Vec<usize> {
        self.run("SELECT number FROM orders ORDER BY number").iter().map(|number| number.parse().unwrap()).collect()
    }

    /// How many rows are there.
    pub(crate) fn left(&self) -> u64 {
        self.count("0 = 0")
    }

    /// How many rows are there of which this is true.
    pub(crate) fn count(&self, condition: &str) -> u64 {
        self.run(&format!("SELECT count(*) FROM acta_outbox WHERE {condition}"))[0].parse().unwrap()
    }

    /// One row, as an application writes it.
    pub(crate) fn stage(&self, columns: &str, values: &str) {
        self.run(&format!(
            "INSERT INTO acta_outbox (namespace, payload{columns}) VALUES ('transactions/orders', {values})"
        ));
    }
}

fn by_rusqlite(path: &std::path::Path, script: &str) -> rusqlite::Result<Vec<String>> {
    let db = rusqlite::Connection::open(path)?;
    db.busy_timeout(Duration::from_secs(30))?;
    if !script.starts_with("SELECT") {
        return db.execute_batch(script).map(|()| Vec::new());
    }
    let mut statement = db.prepare(script)?;
    let rows = statement.query_map([], |row| row.get::<_, rusqlite::types::Value>(0))?;
    rows.map(|value| {
        Ok(match value? {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => format!("{other:?}"),
        })
    })
    .collect()
}
