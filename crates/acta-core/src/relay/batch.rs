//! Runs of lines, and what a refusal cuts off.

use std::collections::{BTreeMap, BTreeSet};

use super::{Arrival, Row};

/// What a relay may deliver of what it took, and what it gives back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// To be delivered, in their order.
    pub kept: Vec<i64>,
    /// To be given back: an earlier one of their line went to somebody else.
    pub given_back: Vec<i64>,
}

/// Which of the rows that were to be taken, in their order, may be delivered; `got` holds those that were got.
///
/// Of a line that is a run from its first row on: behind one that was not got, nothing is.
pub fn runs<'r>(wanted: impl IntoIterator<Item = (i64, Option<(&'r str, &'r str)>)>, got: &BTreeSet<i64>) -> Run {
    let mut broken = BTreeSet::new();
    let mut run = Run::default();
    for (id, line) in wanted {
        let is_broken = line.is_some_and(|line| broken.contains(&line));
        match (got.contains(&id), is_broken) {
            (true, false) => run.kept.push(id),
            (true, true) => run.given_back.push(id),
            (false, _) => broken.extend(line),
        }
    }
    run
}

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

    /// The numbers of its rows.
    pub fn ids(&self) -> Vec<i64> {
        self.rows.iter().map(|(row, _)| row.id).collect()
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

    const A: Option<(&str, &str)> = Some(("q", "a"));
    const B: Option<(&str, &str)> = Some(("q", "b"));

    #[test]
    fn a_line_is_taken_as_a_run_from_its_first_row() {
        let wanted = [(1, A), (2, B), (3, A), (4, None), (5, A), (6, B), (7, Some(("p", "a")))];
        let got = BTreeSet::from([1, 4, 5, 6, 7]);
        assert_eq!(runs(wanted, &got), Run { kept: vec![1, 4, 7], given_back: vec![5, 6] });
        let all = wanted.iter().map(|(id, _)| *id).collect();
        assert_eq!(runs(wanted, &all).kept.len(), 7);
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
            first_taken_at: Timestamp::from_millis(0),
        };
        let arrival = row.judge("s", Timestamp::from_millis(0)).unwrap();
        (row, arrival)
    }

    proptest! {
        /// Whatever is got of what was wanted: nothing is lost, and no kept row of a line stands behind one that is not.
        #[test]
        fn runs_keep_lines_in_order(lanes in proptest::collection::vec(prop::option::of(0..3_u8), 0..30), bits in any::<u32>()) {
            let names: Vec<Option<String>> = lanes.iter().map(|lane| lane.map(|lane| lane.to_string())).collect();
            let wanted: Vec<(i64, Option<(&str, &str)>)> =
                names.iter().zip(0_i64..).map(|(lane, id)| (id, lane.as_deref().map(|lane| ("q", lane)))).collect();
            let got: BTreeSet<i64> = wanted.iter().map(|(id, _)| *id).filter(|id| bits & (1 << (id % 32)) != 0).collect();
            let run = runs(wanted.clone(), &got);
            let both: BTreeSet<i64> = run.kept.iter().chain(&run.given_back).copied().collect();
            prop_assert_eq!(&both, &got);
            for (id, line) in &wanted {
                let is_kept = run.kept.contains(id);
                let stands_free = line.is_none()
                    || wanted.iter().filter(|(other, of)| other < id && of == line).all(|(other, _)| run.kept.contains(other));
                prop_assert_eq!(is_kept, got.contains(id) && stands_free);
            }
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
