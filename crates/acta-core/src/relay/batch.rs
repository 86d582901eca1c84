//! Rows on their way, and what a refusal cuts off.

use std::collections::BTreeMap;

use super::{Arrival, Row};

/// Rows on their way into one namespace of the ledger, in their order.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Each with what the ledger is to take.
    pub rows: Vec<(Row, Arrival)>,
}

/// What a refused row takes with it.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The row that was refused.
    pub refused: Row,
    /// What stands behind it in its line, and waits with it.
    pub behind: Vec<i64>,
}

impl Batch {
    /// The rows by namespace.
    pub fn of(rows: Vec<(Row, Arrival)>) -> Vec<Self> {
        let mut batches: BTreeMap<String, Vec<(Row, Arrival)>> = BTreeMap::new();
        for (row, arrival) in rows {
            batches.entry(arrival.namespace.to_string()).or_default().push((row, arrival));
        }
        batches.into_values().map(|rows| Self { rows }).collect()
    }

    /// Takes out the row at `index`, which the ledger has refused, and with it the rest of its line: what is left may be tried
    /// again at once.
    pub fn cut(&mut self, index: usize) -> Option<Cut> {
        if index >= self.rows.len() {
            return None;
        }
        let (refused, _) = self.rows.remove(index);
        let mut behind = Vec::new();
        if let Some(line) = refused.line() {
            let later = self.rows.split_off(index);
            for (row, arrival) in later {
                if row.line() == Some(line) {
                    behind.push(row.id);
                } else {
                    self.rows.push((row, arrival));
                }
            }
        }
        Some(Cut { refused, behind })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Timestamp;
    use crate::relay::Held;

    fn row(id: i64, lane: Option<u8>) -> (Row, Arrival) {
        let row = Row {
            id,
            message: format!("m{id}"),
            namespace: "plain".into(),
            name: None,
            payload: "1".into(),
            lane: lane.map(|lane| lane.to_string()),
            dedup_key: None,
            options: None,
            refusals: 0,
            staged_at: Timestamp::from_millis(0),
            requeued_at: None,
            has_behind: false,
        };
        let held = Held { since: Timestamp::from_millis(0), now: Timestamp::from_millis(0) };
        let arrival = row.judge("s", held).unwrap();
        (row, arrival)
    }

    proptest! {
        /// A cut takes the refused row and the rest of its line, and nothing else.
        #[test]
        fn a_cut_takes_the_rest_of_its_line(lanes in proptest::collection::vec(prop::option::of(0..3_u8), 1..20), at in any::<prop::sample::Index>()) {
            let rows: Vec<(Row, Arrival)> = lanes.iter().zip(0_i64..).map(|(lane, id)| row(id, *lane)).collect();
            let at = at.index(rows.len());
            let refused = rows[at].0.clone();
            let mut batch = Batch { rows };
            let cut = batch.cut(at).unwrap();
            prop_assert_eq!(&cut.refused, &refused);
            let left: Vec<i64> = batch.rows.iter().map(|(row, _)| row.id).collect();
            prop_assert!(left.is_sorted());
            prop_assert_eq!(left.len() + cut.behind.len() + 1, lanes.len());
            for (lane, id) in lanes.iter().zip(0_i64..) {
                let goes = id > refused.id && lane.is_some() && *lane == lanes[at];
                prop_assert_eq!(cut.behind.contains(&id), goes);
            }
        }
    }
}
