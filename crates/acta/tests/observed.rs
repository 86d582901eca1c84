//! What an observed store counts.

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use acta::{Context, JobError, State};
use common::{Bench, Order, Running};
use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

/// Keeps sums of counters, and how many values histograms got.
#[derive(Clone, Default)]
struct Sums(Arc<Mutex<BTreeMap<String, u64>>>);

struct Sum(Sums, String);

impl Sums {
    fn add(&self, name: &str, value: u64) {
        *self.0.lock().unwrap().entry(name.to_owned()).or_default() += value;
    }

    fn of(&self, name: &str) -> u64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }

    fn sum(&self, key: &Key) -> Arc<Sum> {
        let labels: Vec<String> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Sum(self.clone(), format!("{} {}", key.name(), labels.join(" "))))
    }
}

impl CounterFn for Sum {
    fn increment(&self, value: u64) {
        self.0.add(&self.1, value);
    }

    fn absolute(&self, _value: u64) {}
}

impl HistogramFn for Sum {
    fn record(&self, value: f64) {
        assert!((0.0..600.0).contains(&value), "seconds: {value}");
        self.0.add(&self.1, 1);
    }
}

impl Recorder for Sums {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.sum(key))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.sum(key))
    }
}

#[test]
fn calls_errors_and_jobs_are_counted() {
    let sums = Sums::default();
    metrics::with_local_recorder(&sums, || {
        common::memory(|bench: Bench| async move {
            let orders: Vec<Order> = (0..4).map(Order::new).collect();
            let added = bench.ledger.enqueue_many(&orders).await.unwrap();
            let worker = bench.worker().handle(|order: Order, _: Context| async move {
                match order.number {
                    0 => Err(JobError::business("no", "no")),
                    _ => Ok(()),
                }
            });
            let running = Running::start(worker);
            bench.until(&added[3].id, State::Succeeded).await;
            running.end().await;
            let missing = acta::JobId::new("nothing").unwrap();
            bench.ledger.job(&missing).await.unwrap_err();
        });
    });
    assert_eq!(sums.of("acta_jobs_enqueued_total namespace=orders"), 4);
    assert_eq!(sums.of("acta_jobs_claimed_total namespace=orders"), 4);
    assert_eq!(sums.of("acta_jobs_settled_total namespace=orders outcome=succeeded"), 3);
    assert_eq!(sums.of("acta_jobs_settled_total namespace=orders outcome=business-exception"), 1);
    assert_eq!(sums.of("acta_calls_total verb=enqueue"), 1);
    assert_eq!(sums.of("acta_call_seconds verb=enqueue"), 1);
    assert_eq!(sums.of("acta_call_errors_total verb=enqueue"), 0);
    assert_eq!(sums.of("acta_call_errors_total verb=job"), 1);
}
