//! A ledger with some thousand rows of each kind, and all that applications and workers do on it.

use std::sync::{Arc, OnceLock};

use acta_core::job::FailureKind;
use acta_core::store::{
    Claim, ClaimOutcome, Claimant, Dedup, Enqueue, Failure, Heartbeats, NewJob, Outcome, Settlement, Wave,
};
use acta_core::{Clock, Job, Json, Label, ManualClock, Name, Namespace, Seeded, Span, Store, SystemClock, Timestamp};
use acta_store::{PostgresStore, postgres};
use acta_testkit::postgres::{Database, Server, sql};
use tokio_postgres::NoTls;

use crate::common::session::ledger;
use crate::told::{self, Verb};

const LANES: usize = 2_000;
/// Jobs whose ids are not the ledger's own, as a copy from elsewhere may have them.
const FOREIGN: &str = "
    INSERT INTO acta.jobs (job, created_at, ns, is_foreign, id, payload)
    SELECT nextval('acta.numbers'), 0, n.ns, true, 'theirs-' || i, '{}'
    FROM acta.namespaces n, generate_series(1, 3000) i;
    INSERT INTO acta.standing (job, place, ns, name, max_attempts, state, priority, flags, finished_at)
    SELECT j.job, j.job, j.ns, 0, 1, 6, 50, 0, 0 FROM acta.jobs j WHERE j.is_foreign";

/// A ledger that tells its plans.
pub(crate) struct Stage {
    store: PostgresStore,
    clock: Arc<ManualClock>,
    database: Database,
}

fn queue() -> Namespace {
    "mail".parse().unwrap()
}

fn jobs(count: usize, of: impl Fn(usize) -> NewJob) -> Vec<NewJob> {
    (0..count).map(of).collect()
}

fn plain(_: usize) -> NewJob {
    NewJob::new(Json::new("{}").unwrap())
}

fn named(number: usize) -> NewJob {
    NewJob { name: Some(Name::new("name", "send").unwrap()), ..plain(number) }
}

fn in_lane(number: usize) -> NewJob {
    NewJob { lane: Some(Label::new("lane", &format!("lane {number}")).unwrap()), ..plain(number) }
}

fn with_key(number: usize) -> NewJob {
    let key = Label::new("key", &format!("key {number}")).unwrap();
    NewJob { dedup: Some(Dedup { key, while_live: number.is_multiple_of(2) }), ..plain(number) }
}

fn failure(kind: FailureKind) -> Outcome {
    Outcome::Failed(Failure::new(kind, "no"))
}

fn signal() -> Outcome {
    Outcome::Wait { until: None, signal: Some(Name::new("signal", "paid").unwrap()) }
}

/// A database with a ledger that is filled, to be copied.
fn filled() -> &'static Database {
    static FILLED: OnceLock<Database> = OnceLock::new();
    FILLED.get_or_init(|| {
        let stage = Stage::over(ledger());
        acta_testkit::block_on(stage.fill());
        stage.database
    })
}

impl Stage {
    /// A ledger with jobs in every state, after this script has been run on it.
    pub(crate) fn new(script: &str) -> Self {
        let database = Database::new(Server::shared_url(), Some(filled()));
        let url = database.url();
        sql(&url, script).unwrap();
        let name = url.rsplit_once('/').unwrap().1;
        for setting in told::SETTINGS {
            sql(&url, &format!("ALTER DATABASE {name} SET {setting}")).unwrap();
        }
        Self::over(database)
    }

    fn over(database: Database) -> Self {
        let url = database.url();
        // What the planner knows changes when a test says so.
        let still = "SELECT format('ALTER TABLE %s SET (autovacuum_enabled = off)', c.oid::regclass) FROM pg_class c
                     WHERE c.relnamespace = 'acta'::regnamespace AND c.relkind = 'r'";
        sql(&url, &sql(&url, still).unwrap().join(";")).unwrap();
        // The functions for all languages go by the database's clock. It is an hour behind this one, so that nothing is due for
        // them, however long the test takes.
        let clock = Arc::new(ManualClock::new(SystemClock.now().plus_ms(3_600_000)));
        let options = postgres::Options {
            clock: Some(Arc::clone(&clock) as _),
            random: Some(Box::new(Seeded::new(1))),
            ..postgres::Options::default()
        };
        let store = PostgresStore::new(&url.parse().unwrap(), options).unwrap();
        Self { store, clock, database }
    }

    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    fn later(&self, seconds: i64) -> Timestamp {
        self.clock.now().plus_ms(seconds * 1_000)
    }

    async fn fill(&self) {
        self.add(jobs(2_000, named)).await;
        self.add(jobs(2_000, with_key)).await;
        let ended = self.claim(3_000).await;
        let (done, rest) = ended.split_at(1_000);
        self.settle(done, |_| Outcome::Succeeded(None)).await;
        let (told, rest) = rest.split_at(500);
        self.settle(told, |_| Outcome::Succeeded(Some(Json::new("1").unwrap()))).await;
        let (failed, waiting) = rest.split_at(1_000);
        let kind = |number| if number % 2 == 0 { FailureKind::Business } else { FailureKind::System };
        self.settle(failed, |number| failure(kind(number))).await;
        self.settle(waiting, |_| signal()).await;
        self.add(jobs(6_000, |number| in_lane(number % LANES))).await;
        self.add(jobs(2_000, |number| NewJob { run_at: Some(self.later(86_400 * 365)), ..named(number) })).await;
        self.claim(1_000).await;
        self.add(jobs(3_000, plain)).await;
        self.store.recover(queue()).await.unwrap();
        sql(&self.url(), FOREIGN).unwrap();
    }

    async fn add(&self, jobs: Vec<NewJob>) {
        self.store.enqueue(Enqueue { namespace: queue(), jobs }).await.unwrap();
    }

    fn asks(count: usize) -> Claim {
        Claim { count, ..Claim::one(queue(), Label::new("robot", "r").unwrap()) }
    }

    async fn claim(&self, count: usize) -> Vec<Job> {
        match self.store.claim(Self::asks(count)).await.unwrap().outcome {
            ClaimOutcome::Claimed(jobs) => jobs,
            other => panic!("{other:?}"),
        }
    }

    fn wave(jobs: &[Job], outcome: impl Fn(usize) -> Outcome) -> Wave {
        let settled = |(number, job): (usize, &Job)| Settlement {
            id: job.identity.id.clone(),
            claimant: Claimant::fence(job.standing.fence),
            outcome: outcome(number),
        };
        Wave { namespace: queue(), settlements: jobs.iter().enumerate().map(settled).collect() }
    }

    async fn settle(&self, jobs: &[Job], outcome: impl Fn(usize) -> Outcome) {
        for answer in self.store.settle(Self::wave(jobs, outcome)).await.unwrap() {
            answer.unwrap();
        }
    }

    /// Adds jobs before all others, and claims so many.
    async fn fresh(&self, count: usize, claimed: usize, of: impl Fn(usize) -> NewJob) -> Vec<Job> {
        self.add(jobs(count, |number| NewJob { priority: Some(100), ..of(number) })).await;
        self.claim(claimed).await
    }

    fn outcome(&self, number: usize) -> Outcome {
        match number % 7 {
            0 => Outcome::Succeeded(Some(Json::new("1").unwrap())),
            1 => failure(FailureKind::Business),
            2 => failure(FailureKind::System),
            3 => Outcome::Wait { until: Some(self.later(30)), signal: None },
            4 => signal(),
            5 => Outcome::Snooze(self.later(30)),
            _ => Outcome::Release,
        }
    }

    /// The verbs, each with the plans of its statements.
    pub(crate) async fn hot_verbs(&self) -> Vec<Verb> {
        let mut verbs = Vec::new();
        let mut told = |name| verbs.push(Verb { name, plans: told::take() });
        told::take();

        self.add(jobs(100, named)).await;
        told("enqueue");
        self.add(jobs(100, |number| NewJob { priority: Some(90), ..in_lane(number) })).await;
        told("enqueue, in lanes");
        self.add(jobs(100, |number| with_key(number + 1_950))).await;
        told("enqueue, with keys");
        self.add(jobs(50, |number| NewJob { run_at: Some(self.later(60)), ..named(number) })).await;
        told("enqueue, scheduled");
        self.add(jobs(50, |number| NewJob { expires_at: Some(self.later(60)), ..plain(number) })).await;
        told("enqueue, expiring");

        self.claim(100).await;
        told("claim");
        let names = Some(vec![Name::new("name", "send").unwrap()]);
        self.store.claim(Claim { names, ..Self::asks(10) }).await.unwrap();
        told("claim, by name");

        let plain_ones = self.fresh(100, 100, plain).await;
        let exchanged = self.fresh(100, 100, plain).await;
        // Lanes that go on, and lanes that end.
        let heads = self.fresh(100, 60, |number| in_lane(LANES + number % 60)).await;
        let keyed = self.fresh(50, 50, |number| with_key(2 * number + 10_000)).await;
        told::take();
        self.settle(&plain_ones, |_| Outcome::Succeeded(None)).await;
        told("settle, plain successes");
        self.settle(&heads, |_| Outcome::Succeeded(None)).await;
        told("settle, plain successes in lanes");
        self.settle(&keyed, |_| Outcome::Succeeded(None)).await;
        told("settle, keys that hold while their jobs live");
        let special = self.claim(40).await;
        told::take();
        self.settle(&special, |number| self.outcome(number)).await;
        told("settle, of all kinds");
        let wave = Self::wave(&exchanged, |_| Outcome::Succeeded(None));
        let (_, answer) = self.store.exchange(wave, Self::asks(100)).await.unwrap();
        told("exchange");
        let ClaimOutcome::Claimed(claimed) = answer.outcome else { panic!("{answer:?}") };
        let beats = claimed.iter().map(|job| (job.identity.id.clone(), Claimant::fence(job.standing.fence))).collect();
        let lease = Some(Span::from_millis(600_000));
        self.store.heartbeat(Heartbeats { namespace: queue(), beats, lease, worker: None }).await.unwrap();
        told("heartbeat");

        self.in_sql().await;
        told("by the functions for all languages");
        self.clock.advance_ms(700_000);
        self.store.recover(queue()).await.unwrap();
        told("recover and tend: schedules, leases, expiries, waits");
        self.clock.advance_ms(31 * 86_400_000);
        self.store.prune(queue(), 100).await.unwrap();
        told("prune");
        self.clock.advance_ms(100 * 86_400_000);
        self.store.prune(queue(), 1_000).await.unwrap();
        told("prune, keys as well");
        verbs
    }

    /// What programs of other languages call, in transactions of their own.
    async fn in_sql(&self) {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
            .batch_execute(
                "BEGIN;
                 SELECT * FROM acta.enqueue('mail', '{}', lane => 'lane 7');
                 SELECT * FROM acta.enqueue('mail', '{}', dedup_key => 'key 7');
                 SELECT * FROM acta.enqueue_many('mail', '[{\"payload\": 1}, {\"payload\": 2, \"lane\": \"new\"}]');
                 COMMIT",
            )
            .await
            .unwrap();
        let held = client.query("SELECT id, fence FROM acta.claim('mail', 'r', 20)", &[]).await.unwrap();
        let ids: Vec<String> = held.iter().map(|row| row.get(0)).collect();
        let fences: Vec<i64> = held.iter().map(|row| row.get(1)).collect();
        client.query("SELECT acta.heartbeat('mail', $1, $2)", &[&ids, &fences]).await.unwrap();
        client.query("SELECT acta.complete('mail', $1, $2)", &[&ids[0], &fences[0]]).await.unwrap();
        client.query("SELECT acta.fail('mail', $1, $2, 'no')", &[&ids[1], &fences[1]]).await.unwrap();
    }
}
