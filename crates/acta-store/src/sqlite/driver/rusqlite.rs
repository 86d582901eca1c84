//! rusqlite: calls that block, on the thread of the caller.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use acta_core::store::{Enqueue, Enqueued};
use acta_core::{Definition, Error, Result};
use rusqlite::types::ValueRef;
use rusqlite::{Row, Transaction};

use super::of_caller;
use crate::SqliteStore;
use crate::sqlite::caller::{self, Hand, Value};
use crate::sqlite::codec::{self, Cell};
use crate::sqlite::connection::Statement;

impl SqliteStore {
    /// Adds jobs, all or none, in this transaction, which must be on the ledger's file; one answer a job, in order.
    ///
    /// `definition` is registered with them, unless the ledger knows it already. What is refused leaves the transaction as it was.
    pub fn enqueue_on(
        &self,
        transaction: &Transaction<'_>,
        enqueue: &Enqueue,
        definition: Option<&Definition>,
    ) -> Result<Vec<Enqueued>> {
        let place = self.path().display().to_string();
        let command = |sql| transaction.execute_batch(sql).map_err(|fault| translate(&place, &fault));
        command("SAVEPOINT acta_enqueue")?;
        let mut hand = Connection { transaction, place: &place };
        let added = at_once(caller::enqueue(&mut hand, (self.path(), &self.world), enqueue, definition));
        if added.is_err() && !transaction.is_autocommit() {
            command("ROLLBACK TO acta_enqueue")?;
        }
        // An error that made SQLite roll everything back has taken the savepoint with it.
        if added.is_ok() || !transaction.is_autocommit() {
            command("RELEASE acta_enqueue")?;
        }
        added
    }
}

struct Connection<'t> {
    transaction: &'t Transaction<'t>,
    place: &'t str,
}

impl Hand for Connection<'_> {
    fn ask(
        &mut self,
        statement: Statement,
        values: &[Cell<'_>],
    ) -> impl Future<Output = Result<Vec<Vec<Value>>>> + Send {
        let run = || -> rusqlite::Result<Vec<Vec<Value>>> {
            let mut statement = self.transaction.prepare_cached(statement.sql)?;
            let columns = statement.column_count();
            let values = codec::bind(values.iter().copied());
            statement.query_map(values, |row| (0..columns).map(|column| value(row, column)).collect())?.collect()
        };
        std::future::ready(run().map_err(|fault| translate(self.place, &fault)))
    }
}

fn value(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Text(_) | ValueRef::Blob(_) | ValueRef::Real(_) => Value::Text(row.get(column)?),
    })
}

fn translate(place: &str, fault: &rusqlite::Error) -> Error {
    of_caller(place, fault.sqlite_error_code(), fault)
}

/// What becomes of something that waits for nothing.
fn at_once<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => Err(Error::Unavailable { place: "the connection".into(), why: "has not answered".into() }),
    }
}
