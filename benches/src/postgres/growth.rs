//! Whether a claim and a settle cost the same however much lies beside them.

use std::time::{Duration, Instant};

use acta::Ledger;
use acta_testkit::postgres::Database;
use anyhow::Result;

use super::by_hand::ByHand;
use super::raw::connect;
use crate::table::Table;
use crate::work::{Nothing, insert};

const MANY: usize = 1_000_000;
const LANES: usize = 1_000;
const PER_CALL: usize = 5_000;
/// How often each ledger's turn comes; the median counts.
const TURNS: usize = 100;
/// How many jobs are claimed and settled in a turn, of the thousand that are ready.
const BATCH: usize = 10;

/// What lies beside a thousand ready jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    Ready,
    Blocked,
    Finished,
}

/// The times of a claim and settle in ledgers with a million jobs of each kind, beside those in a small one.
pub async fn measure(base: &str, table: &mut Table) -> Result<()> {
    let cases = [
        ("", Beside::Nothing),
        ("claim and settle 10 of 1 M ready, or of 1 k", Beside::Ready),
        ("  beside 1 M blocked in 1 k lanes, or nothing", Beside::Blocked),
        ("  beside 1 M finished, or nothing", Beside::Finished),
    ];
    let mut ledgers = Vec::new();
    for (_, beside) in cases {
        ledgers.push(prepare(base, beside).await?);
    }
    let mut times = vec![Vec::with_capacity(TURNS); cases.len()];
    // They take turns, so that all are measured in the same moments of the machine.
    for _ in 0..TURNS {
        for ((_, by_hand), times) in ledgers.iter().zip(&mut times) {
            let begun = Instant::now();
            let claimed = by_hand.claim(BATCH).await?;
            by_hand.settle(&claimed).await?;
            times.push(begun.elapsed());
        }
    }
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[TURNS / 2]
    };
    let times: Vec<Duration> = times.into_iter().map(median).collect();
    for ((what, _), took) in cases.iter().zip(&times).skip(1) {
        table.time(what, *took, times[0], 1.2);
    }
    Ok(())
}

async fn prepare(base: &str, beside: Beside) -> Result<(Database, ByHand)> {
    let database = Database::new(base, None);
    let url = database.url();
    let ledger = Ledger::open(&url).await?;
    let by_hand = ByHand::new(&ledger)?;
    ledger.define::<Nothing>().await?;
    match beside {
        Beside::Nothing => {}
        Beside::Ready => fill(&url, "NULL").await?,
        Beside::Finished => {
            fill(&url, "NULL").await?;
            finish(&url).await?;
        }
        Beside::Blocked => {
            // The heads are held, so that all others of their lanes stay blocked.
            insert(&ledger, LANES, LANES, LANES).await?;
            by_hand.claim(LANES).await?;
            let lanes = format!("ARRAY(SELECT 'lane ' || n % {LANES} FROM generate_series(1, {PER_CALL}) n)");
            fill(&url, &lanes).await?;
        }
    }
    insert(&ledger, 1_000, 1_000, 0).await?;
    connect(&url).await?.batch_execute("VACUUM ANALYZE").await?;
    Ok((database, by_hand))
}

/// A million jobs, by the function that the library calls, without the round trips. Each call is a transaction: the many
/// versions that one leaves behind of a lane's row are stepped over until it has committed.
async fn fill(url: &str, lanes: &str) -> Result<()> {
    let payload = serde_json::to_string(&Nothing::new(0, 0))?;
    let script = format!(
        "DO $$ BEGIN
             FOR i IN 1 .. {calls} LOOP
                 PERFORM count(*) FROM acta._enqueue(
                     'bench', true, array_fill('{payload}'::text, ARRAY[{PER_CALL}]),
                     array_fill('nothing'::text, ARRAY[{PER_CALL}]), {lanes}, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                     NULL, NULL, NULL, NULL);
                 COMMIT;
             END LOOP;
         END $$",
        calls = MANY / PER_CALL,
    );
    connect(url).await?.batch_execute(&script).await?;
    Ok(())
}

/// Ends all jobs as a claim and a settle would.
async fn finish(url: &str) -> Result<()> {
    let script = "
        UPDATE acta.standing SET state = 6, attempts = 1, fence = 1, claimed_by = 'bench', settled = 6, flags = flags & ~256,
            claimed_at = acta._now(NULL), finished_at = acta._now(NULL), prune_at = acta._now(NULL) + 2592000000;
        INSERT INTO acta.changes (ns, at, amounts)
        SELECT ns, 0, ARRAY[0, -count(*), 0, 0, 0, 0, count(*)]::integer[] FROM acta.standing GROUP BY ns;
        SELECT acta._tend(NULL)";
    connect(url).await?.batch_execute(script).await?;
    Ok(())
}
