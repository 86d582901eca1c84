//! sqlx: a connection whose statements run on a thread of its own.

use std::future::Future;

use acta_core::store::{Enqueue, Enqueued};
use acta_core::{Definition, Error, Result};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection as _, Row as _, TypeInfo as _, ValueRef as _};

use super::of_caller;
use crate::caller::{Caller, Sealed};
use crate::sqlite::caller::{self, Hand, Value};
use crate::sqlite::codec::Cell;
use crate::sqlite::connection::Statement;
use crate::{Opened, SqliteStore};

impl Sealed for SqliteConnection {}

impl Caller for SqliteConnection {
    async fn enqueue(
        &mut self,
        ledger: &Opened,
        enqueue: &Enqueue,
        definition: Option<&Definition>,
    ) -> Result<Vec<Enqueued>> {
        match ledger {
            Opened::Sqlite(store) => enqueue_on(store, self, enqueue, definition).await,
            #[allow(unreachable_patterns, reason = "with other features there are others")]
            _ => Err(Opened::is_elsewhere("SQLite")),
        }
    }
}

async fn enqueue_on(
    store: &SqliteStore,
    connection: &mut SqliteConnection,
    enqueue: &Enqueue,
    definition: Option<&Definition>,
) -> Result<Vec<Enqueued>> {
    let place = store.path().display().to_string();
    let told = |fault: sqlx::Error| translate(&place, &fault);
    // A savepoint in the caller's transaction. It is undone, too, if the caller stops waiting.
    let mut inner = connection.begin().await.map_err(told)?;
    let mut hand = Connection { raw: &mut inner, place: &place };
    match caller::enqueue(&mut hand, (store.path(), &store.world), enqueue, definition).await {
        Ok(added) => inner.commit().await.map(|()| added).map_err(told),
        Err(fault) => {
            // Where this does not work either, there is nothing left to undo.
            let _ = inner.rollback().await;
            Err(fault)
        }
    }
}

struct Connection<'t> {
    raw: &'t mut SqliteConnection,
    place: &'t str,
}

impl Hand for Connection<'_> {
    fn ask(
        &mut self,
        statement: Statement,
        values: &[Cell<'_>],
    ) -> impl Future<Output = Result<Vec<Vec<Value>>>> + Send {
        let mut query = sqlx::query(statement.sql);
        for value in values {
            query = match *value {
                Cell::Null => query.bind(None::<i64>),
                Cell::Integer(number) => query.bind(number),
                Cell::Text(text) => query.bind(text.to_owned()),
            };
        }
        async move {
            let rows = query.fetch_all(&mut *self.raw).await;
            let rows = rows.and_then(|rows| rows.iter().map(row).collect::<sqlx::Result<_>>());
            rows.map_err(|fault| translate(self.place, &fault))
        }
    }
}

fn row(row: &SqliteRow) -> sqlx::Result<Vec<Value>> {
    (0..row.len()).map(|column| value(row, column)).collect()
}

fn value(row: &SqliteRow, column: usize) -> sqlx::Result<Value> {
    let raw = row.try_get_raw(column)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let is_number = raw.type_info().name() == "INTEGER";
    if is_number { row.try_get(column).map(Value::Integer) } else { row.try_get(column).map(Value::Text) }
}

fn translate(place: &str, fault: &sqlx::Error) -> Error {
    match fault {
        sqlx::Error::Database(said) => {
            let code = said.code().and_then(|code| code.parse().ok());
            of_caller(place, code.map(|code| rusqlite::ffi::Error::new(code).code), fault)
        }
        // The connection is gone, or of no use.
        _ => Error::Unavailable { place: place.to_owned(), why: fault.to_string() },
    }
}
