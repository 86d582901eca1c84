//! What operators do with rows in quarantine.

use std::collections::BTreeMap;

use acta_core::relay::{Quarantined, Source, Why, delivery_key};
use acta_core::store::{Deliver, Delivered, Deliveries};
use acta_core::{Label, Namespace, Result};

use crate::ledger::Ledger;

/// What became of rows in quarantine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// So many go to the ledger again, or are gone for good.
    pub done: u64,
    /// So many had arrived after all, and are gone.
    pub arrived: u64,
}

/// Lets rows be delivered again: their deliveries are reopened, and they go before what is not delivered yet.
pub async fn requeue(ledger: &Ledger, source: &dyn Source, rows: &[Quarantined]) -> Result<Released> {
    let (open, arrived) = parted(ledger, source, rows, Deliveries::Reopen).await?;
    Ok(Released { arrived: source.discard(&arrived).await?, done: source.requeue(&open).await? })
}

/// Removes rows for good: their deliveries are closed first, so that no relay that has one in hand delivers it. They are kept among the
/// discarded, with what is said of it.
pub async fn discard(ledger: &Ledger, source: &dyn Source, rows: &[Quarantined], why: &Why) -> Result<Released> {
    let (closed, arrived) = parted(ledger, source, rows, Deliveries::Close).await?;
    source.keep(&closed, why).await?;
    Ok(Released { arrived: source.discard(&arrived).await?, done: source.discard(&closed).await? })
}

/// Does this to the deliveries of the rows; which rows have not arrived, and which have.
async fn parted(
    ledger: &Ledger,
    source: &dyn Source,
    rows: &[Quarantined],
    act: fn(Vec<Label>) -> Deliveries,
) -> Result<(Vec<i64>, Vec<i64>)> {
    let id = source.id().await?;
    let (mut there, mut arrived) = (Vec::new(), Vec::new());
    let mut by_namespace: BTreeMap<String, (Namespace, Vec<Label>, Vec<i64>)> = BTreeMap::new();
    for Quarantined { row, .. } in rows {
        // What names no queue can't have arrived in one.
        let Some((namespace, key)) = row.namespace.parse::<Namespace>().ok().zip(delivery_key(&id, &row.message).ok())
        else {
            there.push(row.id);
            continue;
        };
        let (_, keys, ids) =
            by_namespace.entry(row.namespace.clone()).or_insert_with(|| (namespace, Vec::new(), Vec::new()));
        keys.push(key);
        ids.push(row.id);
    }
    for (namespace, keys, ids) in by_namespace.into_values() {
        let answers = ledger.store().deliver(Deliver { namespace, deliveries: act(keys) }).await?;
        for (row, answer) in ids.into_iter().zip(answers) {
            if matches!(answer, Delivered::Before(_)) { arrived.push(row) } else { there.push(row) }
        }
    }
    Ok((there, arrived))
}
