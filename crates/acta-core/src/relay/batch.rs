//! Rows on their way, and what a refusal cuts off.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Arrival, Row};

/// Fewer rows than this go together: what one call costs is more than what two of them at a time would spare.
const LEAST_PARTED: usize = 100;

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
    /// The rows by namespace, in batches that may go at the same time: no order is kept between one and another.
    ///
    /// Where the ledger `is_parallel`, many rows of one namespace go in two, if each names its lane and none has a key that another one
    /// may have, too: what has no lane is taken in the order in which it was staged, and of one key the first one counts.
    pub fn of(rows: Vec<(Row, Arrival)>, is_parallel: bool) -> Vec<Self> {
        let mut batches: BTreeMap<String, Vec<(Row, Arrival)>> = BTreeMap::new();
        for (row, arrival) in rows {
            batches.entry(arrival.namespace.to_string()).or_default().push((row, arrival));
        }
        let parts = batches.into_values().flat_map(|rows| {
            let is_ordered = |(row, _): &(Row, Arrival)| row.lane.is_none() || row.dedup_key.is_some();
            if !is_parallel || rows.len() < LEAST_PARTED || rows.iter().any(is_ordered) {
                return [rows, Vec::new()];
            }
            let (one, other) = rows.into_iter().partition(|(row, _)| is_even(row.lane.as_deref()));
            [one, other]
        });
        parts.filter(|rows| !rows.is_empty()).map(|rows| Self { rows }).collect()
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

/// Into which half of the lanes one belongs.
fn is_even(lane: Option<&str>) -> bool {
    let mut hasher = DefaultHasher::new();
    lane.hash(&mut hasher);
    hasher.finish() & 1 == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Timestamp;
    use crate::relay::Held;

    /// Nobody had the outbox before.
    fn nobody() -> Held {
        Held { since: Timestamp::from_millis(0), now: Timestamp::from_millis(0) }
    }

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
        let arrival = row.judge("s", nobody()).unwrap();
        (row, arrival)
    }

    #[test]
    fn many_rows_in_lanes_go_in_two() {
        let rows = |count: i64| (0..count).zip((0..20).cycle()).map(|(id, lane)| row(id, Some(lane))).collect();
        assert_eq!(Batch::of(rows(99), true).len(), 1);
        let [one, other] = &Batch::of(rows(1_000), true)[..] else { panic!("not two") };
        assert!(one.rows.len().min(other.rows.len()) > 200, "{} and {}", one.rows.len(), other.rows.len());
    }

    proptest! {
        /// Each row goes in one batch, and with all of its line; what is in one order stays in it.
        #[test]
        fn batches_keep_what_is_in_order_together(
            rows in proptest::collection::vec((0..2_u8, prop::option::of(0..40_u8), prop::option::weighted(0.001, 0..3_u8)), 1..300),
            all_in_lanes in any::<bool>(),
            is_parallel in any::<bool>(),
        ) {
            let rows: Vec<(Row, Arrival)> = rows.iter().zip(0_i64..).map(|((queue, lane, key), id)| {
                let (mut row, _) = row(id, lane.or(all_in_lanes.then_some(0)));
                row.namespace = format!("queue{queue}");
                row.dedup_key = key.map(|key| key.to_string());
                let arrival = row.judge("s", nobody()).unwrap();
                (row, arrival)
            }).collect();
            let batches = Batch::of(rows.clone(), is_parallel);
            let mut seen = std::collections::BTreeMap::new();
            for (nth, batch) in batches.iter().enumerate() {
                prop_assert!(batch.rows.is_sorted_by_key(|(row, _)| row.id) && !batch.rows.is_empty());
                for (row, arrival) in &batch.rows {
                    prop_assert_eq!(&arrival.namespace, &batch.rows[0].1.namespace);
                    prop_assert!(seen.insert(row.id, nth).is_none());
                }
            }
            prop_assert_eq!(seen.len(), rows.len());
            let are_one = |one: &Row, other: &Row| one.namespace == other.namespace
                && (one.lane == other.lane || one.lane.is_none() || one.dedup_key.is_some());
            for (one, _) in &rows {
                for (other, _) in rows.iter().filter(|(other, _)| are_one(one, other)) {
                    prop_assert_eq!(seen[&one.id], seen[&other.id]);
                }
            }
            let queues = rows.iter().map(|(row, _)| &row.namespace).collect::<std::collections::BTreeSet<_>>().len();
            let most = if is_parallel { 2 * queues } else { queues };
            prop_assert!(batches.len() <= most);
        }

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
