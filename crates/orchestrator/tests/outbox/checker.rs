//! What is wrong with what has arrived, by the databases alone.

use std::collections::{BTreeMap, BTreeSet};

use acta_core::store::JobFilter;
use acta_testkit::block_on;

use crate::common::Desk;

/// What has arrived: the orders, in the order of their places, each with its lane.
pub(crate) fn arrived(desk: &Desk) -> Vec<(usize, String)> {
    let store = desk.store();
    let mut filter = JobFilter { limit: 1_000, ..JobFilter::default() };
    let mut jobs = Vec::new();
    loop {
        let page = block_on(store.jobs(filter.clone())).unwrap();
        jobs.extend(page.jobs);
        match page.next {
            Some(next) => filter.after_row = Some(next),
            None => break,
        }
    }
    jobs.sort_by_key(|found| found.job.standing.place);
    let number = |payload: &str| serde_json::from_str::<serde_json::Value>(payload).unwrap()["order"].as_u64().unwrap();
    jobs.iter()
        .map(|found| {
            let identity = &found.job.identity;
            (usize::try_from(number(identity.payload.as_str())).unwrap(), identity.lane.clone().unwrap().to_string())
        })
        .collect()
}

/// What is wrong with what has arrived: orders that are lost, that were never committed, that came twice, lanes out of order.
pub(crate) fn faults(committed: &[usize], arrived: &[(usize, String)]) -> Vec<String> {
    let mut faults = Vec::new();
    let wanted: BTreeSet<usize> = committed.iter().copied().collect();
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, lane) in arrived {
        *counts.entry(*number).or_default() += 1;
        if let Some(before) = last.insert(lane, *number)
            && before > *number
        {
            faults.push(format!("{lane}: {number} behind {before}"));
        }
    }
    faults
        .extend(wanted.iter().filter(|number| !counts.contains_key(number)).map(|number| format!("{number} is lost")));
    faults.extend(
        counts.iter().filter(|(_, count)| **count > 1).map(|(number, count)| format!("{number} came {count} times")),
    );
    faults.extend(
        counts.keys().filter(|number| !wanted.contains(number)).map(|number| format!("{number} was never committed")),
    );
    faults
}

#[test]
fn the_checker_finds_a_loss_a_double_a_swap_and_an_invention() {
    let job = |number: usize| (number, format!("lane {}", number % 2));
    let sound: Vec<(usize, String)> = (0..6).map(job).collect();
    let committed: Vec<usize> = (0..6).collect();
    assert_eq!(faults(&committed, &sound), Vec::<String>::new());
    let mut lost = sound.clone();
    lost.remove(3);
    assert_eq!(faults(&committed, &lost), ["3 is lost"]);
    let mut double = sound.clone();
    double.push(job(5));
    assert_eq!(faults(&committed, &double), ["5 came 2 times"]);
    let mut swapped = sound.clone();
    swapped.swap(0, 2);
    assert_eq!(faults(&committed, &swapped), ["lane 0: 0 behind 2"]);
    let mut invented = sound;
    invented.push(job(8));
    assert_eq!(faults(&committed, &invented), ["8 was never committed"]);
}
