//! Connections, and statements on them.

use acta_core::{Error, Family, Result};
use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Config, NoTls, Row};

use super::fault;

/// A parameter and its type. The type is told, so that a statement is one round trip and leaves nothing behind on the server: what
/// a pooler in transaction mode can carry.
pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// The connections of one process to one ledger.
#[derive(Debug)]
pub(super) struct Connections {
    pool: Pool,
    place: String,
}

impl Connections {
    /// At most `most` connections to the database that `config` names; none is opened yet.
    pub(super) fn new(mut config: Config, most: usize) -> Result<Self> {
        if config.get_application_name().is_none() {
            config.application_name("acta");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(std::time::Duration::from_secs(10));
        }
        let place = place_of(&config);
        let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let pool = Pool::builder(manager).max_size(most.max(1)).build();
        let pool = pool.map_err(|fault| fault::unavailable(&place, fault.to_string()))?;
        Ok(Self { pool, place })
    }

    /// The ledger's name, without a password.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// A connection, as soon as one is free.
    pub(super) async fn get(&self) -> Result<Client> {
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

    pub(super) fn fault(&self, family: Option<Family>, fault: &tokio_postgres::Error) -> Error {
        fault::translate(&self.place, family, fault)
    }

    /// Something in the ledger that can't be understood.
    pub(super) fn unreadable(&self, what: &str, why: impl std::fmt::Display) -> Error {
        Error::Unreadable { place: format!("{}, {what}", self.place), why: why.to_string() }
    }
}

fn place_of(config: &Config) -> String {
    use tokio_postgres::config::Host;
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".into(),
    };
    let port = config.get_ports().first().map(|port| format!(":{port}")).unwrap_or_default();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{host}{port}/{database}")
}
