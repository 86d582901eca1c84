//! Rows that an application stages, in its own open transaction.

use std::future::Future;

#[cfg(any(
    feature = "mysql-async",
    feature = "rusqlite",
    feature = "sqlx-mysql",
    feature = "sqlx-sqlite",
    feature = "sqlx-postgres",
    feature = "tokio-postgres"
))]
use acta_core::Error;
use acta_core::Result;
use acta_core::relay::Staged;

#[cfg(any(
    feature = "mysql-async",
    feature = "rusqlite",
    feature = "sqlx-mysql",
    feature = "sqlx-sqlite",
    feature = "sqlx-postgres",
    feature = "tokio-postgres"
))]
use super::Dialect;
use super::TableName;

/// What only the drivers of this crate are.
pub trait Sealed {}

/// A connection of the application's, in whose open transaction rows are staged.
///
/// These are `sqlx::SqliteConnection` (with the feature `sqlx-sqlite`), `sqlx::PgConnection` (`sqlx-postgres`),
/// `sqlx::MySqlConnection` (`sqlx-mysql`), `tokio_postgres::Client` and `tokio_postgres::Transaction` (`tokio-postgres`), and
/// `mysql_async::Conn` and `mysql_async::Transaction` (`mysql-async`). Whatever derefs to one of them, as a transaction of sqlx or
/// of deadpool does, is handed in as `&mut *transaction`.
pub trait Stager: Sealed + Send {
    /// Inserts rows, one behind another.
    #[doc(hidden)]
    fn stage(&mut self, table: &TableName, rows: &[Staged]) -> impl Future<Output = Result<()>> + Send;
}

#[cfg(any(
    feature = "mysql-async",
    feature = "rusqlite",
    feature = "sqlx-mysql",
    feature = "sqlx-sqlite",
    feature = "sqlx-postgres",
    feature = "tokio-postgres"
))]
fn refused(table: &TableName, why: impl std::fmt::Display) -> Error {
    Error::Unavailable { place: format!("the outbox {}", table.as_str()), why: why.to_string() }
}

/// Stages rows on a connection of rusqlite, on the thread of the caller.
#[cfg(feature = "rusqlite")]
pub fn stage_blocking(connection: &rusqlite::Connection, table: &TableName, rows: &[Staged]) -> Result<()> {
    let mut insert = connection.prepare_cached(&Dialect::Sqlite.stage(table)).map_err(|fault| refused(table, fault))?;
    for row in rows {
        let values = (&row.namespace, &row.name, &row.payload, &row.lane, &row.dedup_key, &row.options);
        insert.execute(values).map_err(|fault| refused(table, fault))?;
    }
    Ok(())
}

#[cfg(feature = "sqlx-sqlite")]
mod by_sqlx_on_sqlite {
    use sqlx::SqliteConnection;

    use super::{Dialect, Result, Sealed, Staged, Stager, TableName, refused};

    impl Sealed for SqliteConnection {}

    impl Stager for SqliteConnection {
        async fn stage(&mut self, table: &TableName, rows: &[Staged]) -> Result<()> {
            let insert = Dialect::Sqlite.stage(table);
            for row in rows.iter().cloned() {
                let query = sqlx::query(sqlx::AssertSqlSafe(insert.clone()));
                let query = query.bind(row.namespace).bind(row.name).bind(row.payload);
                let query = query.bind(row.lane).bind(row.dedup_key).bind(row.options);
                query.execute(&mut *self).await.map_err(|fault| refused(table, fault))?;
            }
            Ok(())
        }
    }
}

#[cfg(feature = "sqlx-postgres")]
mod by_sqlx_on_postgres {
    use sqlx::PgConnection;

    use super::{Dialect, Result, Sealed, Staged, Stager, TableName, refused};

    impl Sealed for PgConnection {}

    impl Stager for PgConnection {
        async fn stage(&mut self, table: &TableName, rows: &[Staged]) -> Result<()> {
            let insert = Dialect::Postgres.stage(table);
            for row in rows.iter().cloned() {
                let query = sqlx::query(sqlx::AssertSqlSafe(insert.clone())).persistent(false);
                let query = query.bind(row.namespace).bind(row.name).bind(row.payload);
                let query = query.bind(row.lane).bind(row.dedup_key).bind(row.options);
                query.execute(&mut *self).await.map_err(|fault| refused(table, fault))?;
            }
            Ok(())
        }
    }
}

#[cfg(feature = "tokio-postgres")]
mod by_tokio_postgres {
    use tokio_postgres::types::Type;
    use tokio_postgres::{Client, GenericClient, Transaction};

    use super::{Dialect, Result, Sealed, Staged, Stager, TableName, refused};

    impl Sealed for Client {}
    impl Sealed for Transaction<'_> {}

    impl Stager for Client {
        async fn stage(&mut self, table: &TableName, rows: &[Staged]) -> Result<()> {
            stage_on(self, table, rows).await
        }
    }

    impl Stager for Transaction<'_> {
        async fn stage(&mut self, table: &TableName, rows: &[Staged]) -> Result<()> {
            stage_on(self, table, rows).await
        }
    }

    async fn stage_on(client: &impl GenericClient, table: &TableName, rows: &[Staged]) -> Result<()> {
        let insert = Dialect::Postgres.stage(table);
        for row in rows {
            let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 6] = [
                (&row.namespace, Type::TEXT),
                (&row.name, Type::TEXT),
                (&row.payload, Type::TEXT),
                (&row.lane, Type::TEXT),
                (&row.dedup_key, Type::TEXT),
                (&row.options, Type::TEXT),
            ];
            client.query_typed(&insert, &values).await.map_err(|fault| {
                let why = fault.as_db_error().map_or_else(|| fault.to_string(), |said| said.message().to_owned());
                refused(table, why)
            })?;
        }
        Ok(())
    }
}

#[cfg(feature = "sqlx-mysql")]
mod by_sqlx_on_mysql {
    use sqlx::MySqlConnection;

    use super::{Dialect, Result, Sealed, Staged, Stager, TableName, refused};

    impl Sealed for MySqlConnection {}

    impl Stager for MySqlConnection {
        async fn stage(&mut self, table: &TableName, rows: &[Staged]) -> Result<()> {
            let insert = Dialect::Mysql.stage(table);
            for row in rows.iter().cloned() {
                let query = sqlx::query(sqlx::AssertSqlSafe(insert.clone()));
                let query = query.bind(row.namespace).bind(row.name).bind(row.payload);
                let query = query.bind(row.lane).bind(row.dedup_key).bind(row.options);
                query.execute(&mut *self).await.map_err(|fault| refused(table, fault))?;
            }
            Ok(())
        }
    }
}

#[cfg(feature = "mysql-async")]
mod by_mysql_async {
    use mysql_async::prelude::Queryable;
    use mysql_async::{Conn, Transaction};

    use super::{Dialect, Result, Sealed, Staged, Stager, TableName, refused};

    impl Sealed for Conn {}
    impl Sealed for Transaction<'_> {}

    impl Stager for Conn {
        async fn stage(&mut self, table: &TableName, rows: &[Staged]) -> Result<()> {
            stage_on(self, table, rows).await
        }
    }

    impl Stager for Transaction<'_> {
        async fn stage(&mut self, table: &TableName, rows: &[Staged]) -> Result<()> {
            stage_on(self, table, rows).await
        }
    }

    async fn stage_on(session: &mut impl Queryable, table: &TableName, rows: &[Staged]) -> Result<()> {
        let insert = Dialect::Mysql.stage(table);
        for row in rows {
            let values = (&row.namespace, &row.name, &row.payload, &row.lane, &row.dedup_key, &row.options);
            session.exec_drop(insert.as_str(), values).await.map_err(|fault| refused(table, fault))?;
        }
        Ok(())
    }
}
