//! Connections, and statements on them.

use acta_core::{Error, Family, Result};
use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::fault;
use super::url::Url;

/// A parameter and its type. The type is told, so that a statement is one round trip and leaves nothing behind on the server: what
/// a pooler in transaction mode can carry.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// The connections of one process to one ledger.
#[derive(Debug)]
pub(crate) struct Connections {
    pool: Pool,
    place: String,
}

impl Connections {
    /// At most `most` connections to the database that `url` names; none is opened yet.
    pub(crate) fn new(url: &Url, most: usize) -> Result<Self> {
        let place = url.to_string();
        let manager = Manager::from_config(
            url.config(),
            url.connector()?,
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let pool = Pool::builder(manager).max_size(most.max(1)).build();
        let pool = pool.map_err(|fault| fault::unavailable(&place, fault.to_string()))?;
        Ok(Self { pool, place })
    }

    /// The ledger's name, without a password.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// A connection, as soon as one is free.
    pub(crate) async fn get(&self) -> Result<Client> {
        self.pool.get().await.map_err(|fault| match fault {
            PoolError::Backend(fault) => fault::translate(&self.place, None, &fault),
            other => fault::unavailable(&self.place, other.to_string()),
        })
    }

    /// Runs one statement, which is its own transaction.
    pub(super) async fn all(&self, family: Option<Family>, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let client = self.get().await?;
        client.query_typed(sql, params).await.map_err(|fault| self.fault(family, &fault))
    }

    /// The same with another right behind it, on the same connection: a transaction of its own, which begins when the first one has
    /// committed. What becomes of it is nobody's concern.
    pub(super) async fn all_and_then(
        &self,
        family: Option<Family>,
        (sql, params): (&str, &[Param<'_>]),
        (then, then_params): (&str, &[Param<'_>]),
    ) -> Result<Vec<Row>> {
        let client = self.get().await?;
        let (rows, _) = tokio::join!(client.query_typed(sql, params), client.query_typed(then, then_params));
        rows.map_err(|fault| self.fault(family, &fault))
    }

    pub(super) fn fault(&self, family: Option<Family>, fault: &tokio_postgres::Error) -> Error {
        fault::translate(&self.place, family, fault)
    }

    /// Something in the ledger that can't be understood.
    pub(super) fn unreadable(&self, what: &str, why: impl std::fmt::Display) -> Error {
        Error::Unreadable { place: format!("{}, {what}", self.place), why: why.to_string() }
    }
}
