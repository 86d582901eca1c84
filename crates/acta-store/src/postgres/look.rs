//! Looks at the ledger that change nothing.

use acta_core::store::{Found, Overview, QueueFilter};
use acta_core::{Error, JobId, Namespace, Result, Rules, Seeded};

use super::PostgresStore;
use super::act::{now, with_rules};
use super::codec::{self, get};
use super::rows::PgRows;
use super::session::{NamespaceNumber, Session, params, statement};

/// The namespace and the row of the job with this id.
pub(super) fn locate(session: &Session, id: &JobId) -> Result<(NamespaceNumber, i64)> {
    let mut found = None;
    if let Some(row) = id.row() {
        found = session.first(statement!("locate"), params![row.cast_signed() => INT8, id.as_str() => TEXT])?;
    }
    if found.is_none() {
        found = session.first(statement!("locate_foreign"), params![id.as_str() => TEXT])?;
    }
    let row = found.ok_or_else(|| Error::not_found("job", id.as_str()))?;
    Ok((get(&row, 0)?, get(&row, 1)?))
}

fn namespace_of(session: &Session, ns: NamespaceNumber) -> Result<Namespace> {
    let found = session.namespaces()?.into_iter().find(|(number, _)| *number == ns);
    found.map(|(_, queue)| queue.namespace).ok_or_else(|| session.unreadable("namespaces", format!("no number {ns}")))
}

impl PostgresStore {
    /// Runs a verb of the rules that changes nothing; `None` where there is no such namespace.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        namespace: &Namespace,
        verb: impl FnOnce(&mut Rules<'_, PgRows<'_>>) -> Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        let (clock, namespace) = (self.clock.clone(), namespace.clone());
        self.read(move |session| with_rules(session, clock.as_deref(), &namespace, verb)).await
    }

    /// The same on the namespace of a job.
    pub(super) async fn look_at<T: Send + 'static>(
        &self,
        id: JobId,
        verb: impl FnOnce(&mut Rules<'_, PgRows<'_>>, &JobId) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let clock = self.clock.clone();
        self.read(move |session| {
            let (ns, _) = locate(session, &id)?;
            let namespace = namespace_of(session, ns)?;
            let found = with_rules(session, clock.as_deref(), &namespace, |rules| verb(rules, &id))?;
            found.ok_or_else(|| Error::not_found("job", id.as_str()))
        })
        .await
    }

    pub(super) async fn find(&self, id: JobId) -> Result<Found> {
        self.read(move |session| {
            let (ns, row) = locate(session, &id)?;
            let namespace = namespace_of(session, ns)?;
            let found = session.first(statement!("whole"), params![row => INT8])?;
            let found = found.ok_or_else(|| Error::not_found("job", id.as_str()))?;
            Ok(Found { namespace, job: codec::job(&found, 0)? })
        })
        .await
    }

    pub(super) async fn overview(&self, filter: QueueFilter) -> Result<Overview> {
        let clock = self.clock.clone();
        self.read(move |session| {
            let now = now(session, clock.as_deref())?;
            let mut overview = Overview::default();
            for (ns, queue) in session.namespaces()?.into_iter().filter(|(_, queue)| filter.takes(&queue.namespace)) {
                let mut rows = PgRows::new(session, ns, queue, now);
                Rules::new(&mut rows, now, &mut Seeded::new(0)).overview(&filter, &mut overview)?;
            }
            Ok(overview)
        })
        .await
    }
}
