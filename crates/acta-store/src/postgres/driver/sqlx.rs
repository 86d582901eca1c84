//! sqlx.

use acta_core::store::{Enqueue, Enqueued};
use acta_core::{Definition, Error, Result};
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgDatabaseError, PgRow};

use crate::caller::{Caller, Sealed};
use crate::postgres::caller::{self, STATEMENT, Scene};
use crate::postgres::fault::{self, Said};
use crate::{Opened, PostgresStore};

impl Sealed for PgConnection {}

impl Caller for PgConnection {
    async fn enqueue(
        &mut self,
        ledger: &Opened,
        enqueue: &Enqueue,
        _definition: Option<&Definition>,
    ) -> Result<Vec<Enqueued>> {
        match ledger {
            Opened::Postgres(store) => call(self, store, enqueue).await,
            #[allow(unreachable_patterns, reason = "with other features there are others")]
            _ => Err(Opened::is_elsewhere("PostgreSQL")),
        }
    }
}

async fn call(connection: &mut PgConnection, store: &PostgresStore, enqueue: &Enqueue) -> Result<Vec<Enqueued>> {
    let (queue, jobs) = (enqueue.namespace.to_string(), caller::written(enqueue)?);
    let scene = Scene::new(store, enqueue);
    // A statement with a name would outlive the transaction; a pooler gives the next one another session.
    let rows = sqlx::query(STATEMENT).persistent(false).bind(queue).bind(jobs).fetch_all(connection).await;
    let rows = rows.map_err(|fault| translate(&scene, &fault))?;
    rows.iter().map(|row| read(row).map_err(|fault| translate(&scene, &fault))?).collect()
}

fn read(row: &PgRow) -> sqlx::Result<Result<Enqueued>> {
    Ok(caller::read((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?)))
}

fn translate(scene: &Scene, fault: &sqlx::Error) -> Error {
    let said = fault.as_database_error().and_then(|said| said.try_downcast_ref::<PgDatabaseError>());
    match said {
        Some(said) => {
            let said = Said { code: said.code(), message: said.message(), detail: said.detail() };
            fault::of_database(&scene.place, scene.family, &said)
        }
        None => fault::unavailable(&scene.place, fault.to_string()),
    }
}
