//! tokio-postgres.

use acta_core::store::{Enqueue, Enqueued};
use acta_core::{Definition, Result};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient, Row, Transaction};

use crate::caller::{Caller, Sealed};
use crate::postgres::caller::{self, STATEMENT, Scene};
use crate::postgres::codec::get;
use crate::postgres::fault;
use crate::{Opened, PostgresStore};

impl Sealed for Client {}
impl Sealed for Transaction<'_> {}

impl Caller for Client {
    async fn enqueue(
        &mut self,
        ledger: &Opened,
        enqueue: &Enqueue,
        _definition: Option<&Definition>,
    ) -> Result<Vec<Enqueued>> {
        enqueue_on(self, ledger, enqueue).await
    }
}

impl Caller for Transaction<'_> {
    async fn enqueue(
        &mut self,
        ledger: &Opened,
        enqueue: &Enqueue,
        _definition: Option<&Definition>,
    ) -> Result<Vec<Enqueued>> {
        enqueue_on(self, ledger, enqueue).await
    }
}

async fn enqueue_on(client: &impl GenericClient, ledger: &Opened, enqueue: &Enqueue) -> Result<Vec<Enqueued>> {
    match ledger {
        Opened::Postgres(store) => call(client, store, enqueue).await,
        #[allow(unreachable_patterns, reason = "with other features there are others")]
        _ => Err(Opened::is_elsewhere("PostgreSQL")),
    }
}

async fn call(client: &impl GenericClient, store: &PostgresStore, enqueue: &Enqueue) -> Result<Vec<Enqueued>> {
    let (queue, jobs) = (enqueue.namespace.to_string(), caller::written(enqueue)?);
    let rows = client.query_typed(STATEMENT, &[(&queue, Type::TEXT), (&jobs, Type::TEXT)]).await.map_err(|fault| {
        let scene = Scene::new(store, enqueue);
        fault::translate(&scene.place, scene.family, &fault)
    })?;
    let read = |row: &Row| caller::read((get(row, 0)?, get(row, 1)?, get(row, 2)?, get(row, 3)?));
    rows.iter().map(read).collect()
}
