//! Workers and minutes of a namespace, in a file of their own beside that of its items, which people read.
//!
//! It is written without waiting for the disk: what it loses with the machine is a count of what happened in a minute, or a
//! worker that shows itself again. One that can't be read is begun anew.

use std::collections::BTreeMap;

use acta_core::Timestamp;
use acta_core::vitals::{Flow, Registered, Vitals};
use serde::{Deserialize, Serialize};

/// One minute.
const MINUTE_MS: i64 = 60_000;

/// A minute's number since 1970, then what was added, claimed, succeeded, failed and cancelled in it.
type Row = (i64, u64, u64, u64, u64, u64);

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Text {
    workers: Vec<Registered>,
    minutes: Vec<Row>,
}

/// What a file says.
pub(super) fn read(text: &[u8]) -> Vitals {
    let Text { workers, minutes } = serde_json::from_slice(text).unwrap_or_default();
    let minute = |(number, added, claimed, succeeded, failed, cancelled): Row| {
        let at = Timestamp::from_millis(number.saturating_mul(MINUTE_MS));
        (at, Flow { added, claimed, succeeded, failed, cancelled })
    };
    Vitals {
        workers: workers.into_iter().map(|worker| (worker.card.id.clone(), worker)).collect(),
        minutes: minutes.into_iter().map(minute).collect::<BTreeMap<_, _>>(),
    }
}

/// What a file is to say.
pub(super) fn write(vitals: &Vitals) -> serde_json::Result<Vec<u8>> {
    let row = |(at, flow): (&Timestamp, &Flow)| {
        let Flow { added, claimed, succeeded, failed, cancelled } = *flow;
        (at.as_millis() / MINUTE_MS, added, claimed, succeeded, failed, cancelled)
    };
    let minutes = vitals.minutes.iter().map(row).collect();
    let mut text = serde_json::to_vec(&Text { workers: vitals.workers.values().cloned().collect(), minutes })?;
    text.push(b'\n');
    Ok(text)
}
