//! The one table that a run prints.

use std::time::Duration;

/// The lines of a run, and whether all of them hold.
#[derive(Debug, Default)]
pub struct Table {
    failures: usize,
}

fn per_second(count: usize, took: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let count = count as f64;
    count / took.as_secs_f64()
}

impl Table {
    /// Prints the headings.
    pub fn begin() -> Self {
        println!("{:<48} {:>12} {:>12} {:>7} {:>7}", "what, jobs/s or a time", "ledger", "beside", "ratio", "wanted");
        Self::default()
    }

    /// A rate that is beside nothing: one of several, the best of which counts.
    pub fn note(what: &str, count: usize, took: Duration) {
        println!("{what:<48} {:>12.0}", per_second(count, took));
    }

    /// A rate beside the raw one, and the least ratio that is wanted.
    pub fn rate(&mut self, what: &str, count: usize, ours: Duration, raw: Duration, wanted: f64) {
        let (ours, raw) = (per_second(count, ours), per_second(count, raw));
        let ratio = ours / raw;
        self.failures += usize::from(ratio < wanted);
        let verdict = if ratio < wanted { "  MISSED" } else { "" };
        println!("{what:<48} {ours:>12.0} {raw:>12.0} {ratio:>7.2} {:>7}{verdict}", format!("≥ {wanted}"));
    }

    /// A time beside the one it must not exceed by more than a factor.
    pub fn time(&mut self, what: &str, took: Duration, base: Duration, most: f64) {
        let ratio = took.as_secs_f64() / base.as_secs_f64();
        self.failures += usize::from(ratio > most);
        let verdict = if ratio > most { "  MISSED" } else { "" };
        let (took, base) = (format!("{took:.1?}"), format!("{base:.1?}"));
        println!("{what:<48} {took:>12} {base:>12} {ratio:>7.2} {:>7}{verdict}", format!("≤ {most}"));
    }

    /// The machine must reach this rate raw, or the run says nothing.
    pub fn floor(&mut self, what: &str, count: usize, took: Duration, least: f64) {
        let rate = per_second(count, took);
        if rate < least {
            self.failures += 1;
            println!("{what}: raw does {rate:.0}/s, less than {least:.0}/s: this run is void");
        }
    }

    /// How many lines do not hold.
    pub fn failures(&self) -> usize {
        self.failures
    }
}
