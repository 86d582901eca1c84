//! A ledger in a PostgreSQL database, for any number of machines.
//!
//! The verbs that applications and workers live on are functions in the database (see `sql/functions`), so that any language has
//! them; `calls` calls them. What operators do is carried out by the rules themselves, on the rows of one transaction.

mod act;
#[cfg(any(feature = "sqlx-postgres", feature = "tokio-postgres"))]
mod caller;
mod calls;
mod cells;
mod codec;
mod connection;
mod deliver;
mod drawn;
#[cfg(any(feature = "sqlx-postgres", feature = "tokio-postgres"))]
mod driver;
mod fault;
mod list;
mod look;
mod migrate;
mod places;
mod port;
mod rows;
mod session;
mod tls;
mod url;
mod vitals;
mod wake;

/// Connections and values, for the outboxes in PostgreSQL.
pub(crate) mod client {
    pub(crate) use super::codec::get;
    pub(crate) use super::connection::{Connections, Param};
    pub(crate) use super::session::params;
}

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use acta_core::explain::{Explanation, LaneView};
use acta_core::history::Entry;
use acta_core::random::Random;
use acta_core::store::{
    Beat, Claim, ClaimAnswer, Define, Deliver, Delivered, Enqueue, Enqueued, Finding, Found, Heartbeats, Hold,
    JobFilter, LaneFilter, Mark, Operated, Operation, Overview, Page, Parcel, QueueFilter, Report, SettleAnswer, Wave,
};
use acta_core::{Clock, Error, JobId, Json, Label, Namespace, Result, Seeded, State, Store};
use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::migration::Migration;
use crate::random::system_random;
use connection::Connections;
use drawn::{Drawn, Words};
use places::Places;
use wake::Wake;

pub use migrate::pending;
pub use url::Url;

/// How many connections a process opens at the most, unless told otherwise.
pub const CONNECTIONS: usize = 4;

/// How a ledger is opened.
pub struct Options {
    /// At most so many connections, one of which listens for word from other processes.
    pub connections: usize,
    /// What tells the time; the database's own clock, if nothing is said, which all machines then share.
    pub clock: Option<Arc<dyn Clock>>,
    /// Where ids and jitter come from; this machine and the database, if nothing is said.
    pub random: Option<Box<dyn Random>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { connections: CONNECTIONS, clock: None, random: None }
    }
}

/// A ledger in the schema `acta` of a PostgreSQL database.
///
/// Open it once a process and share it. It reconnects by itself; a call that meets a lost connection says that it is not done.
#[derive(Debug)]
pub struct PostgresStore {
    db: Arc<Connections>,
    wake: Arc<Wake>,
    clock: Option<Arc<dyn Clock>>,
    drawn: Option<Mutex<Drawn>>,
    /// What salts ids where no source is handed in; a call does not keep it from others.
    dice: std::sync::Mutex<Seeded>,
    places: Places,
}

impl PostgresStore {
    /// The ledger in the database that `url` names. Nothing is opened and nothing looked at before the first call; see
    /// [`PostgresStore::create_or_accept`].
    pub fn new(url: &Url, options: Options) -> Result<Self> {
        // One of them listens.
        let db = Arc::new(Connections::new(url, options.connections.saturating_sub(1))?);
        Ok(Self {
            wake: Arc::new(Wake::new(Arc::clone(&db), url)),
            db,
            clock: options.clock,
            drawn: options.random.map(|random| Mutex::new(Drawn::new(random))),
            dice: std::sync::Mutex::new(system_random()?),
            places: Places::default(),
        })
    }

    /// Makes the ledger if there is none; refuses an older, newer, half-made or foreign one.
    pub async fn create_or_accept(&self) -> Result<()> {
        migrate::create_or_accept(&self.db).await
    }

    /// Brings the ledger to this release's schema, making it if there is none; the migrations that were applied.
    pub async fn migrate(&self) -> Result<Vec<&'static Migration>> {
        migrate::migrate(&self.db).await
    }

    /// Whether there is a ledger, of any version.
    pub async fn exists(&self) -> Result<bool> {
        Ok(self.version().await?.is_some())
    }

    /// The version of the ledger's schema, if there is a ledger.
    pub async fn version(&self) -> Result<Option<i64>> {
        migrate::inspect(&self.db).await
    }

    /// Whoever waits for work in the namespace, in any process, may look: a transaction that is not this store's has put something
    /// there. The word is out when this answers; what becomes of it is nobody's concern, since everybody polls, too.
    pub async fn wake(&self, namespace: &Namespace) {
        self.wake.note(namespace);
        self.wake.tell_now(namespace).await;
    }

    /// The instant that a call is to count as its own, where a clock is handed in.
    fn given_now(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| clock.now().as_millis())
    }

    /// The random parts of so many ids.
    fn salts(&self, count: usize) -> Vec<String> {
        // Nobody panics while holding it.
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        (0..count).map(|_| JobId::salt(dice.next_u64())).collect()
    }

    /// The random numbers of a call.
    async fn words(&self) -> Words<'_> {
        match &self.drawn {
            Some(drawn) => Words(Some(drawn.lock().await)),
            None => Words(None),
        }
    }

    /// An error that a call meets before it is sent; a queue that is not there is the greater one.
    async fn refuse<T>(&self, namespace: &Namespace, fault: Error) -> Result<T> {
        match self.look(namespace, |_| Ok(())).await? {
            Some(()) => Err(fault),
            None => Err(Error::not_found("queue", &namespace.to_string())),
        }
    }
}

#[expect(clippy::redundant_closure_for_method_calls, reason = "a bare method is not general enough in its lifetimes")]
#[async_trait]
impl Store for PostgresStore {
    async fn enqueue(&self, enqueue: Enqueue) -> Result<Vec<Enqueued>> {
        enqueue.check()?;
        self.enqueue_jobs(&enqueue).await
    }

    async fn deliver(&self, deliver: Deliver) -> Result<Vec<Delivered>> {
        self.deliver_all(deliver).await
    }

    async fn claim(&self, claim: Claim) -> Result<ClaimAnswer> {
        if let Err(fault) = claim.check() {
            let exists = self.look(&claim.namespace, |_| Ok(())).await?.is_some();
            return if exists { Err(fault) } else { Ok(ClaimAnswer::no_such_queue(&claim)) };
        }
        if claim.trace || claim.expect.is_some() {
            return self.claim_closely(claim).await;
        }
        let answer = self.claim_jobs(&claim).await?;
        self.with_reason(answer, claim).await
    }

    async fn settle(&self, wave: Wave) -> Result<Vec<Result<SettleAnswer>>> {
        if let Err(fault) = wave.check() {
            return self.refuse(&wave.namespace, fault).await;
        }
        let answers = self.settle_wave(&wave).await?;
        // A lane may go on, a job may be back: here nobody claims it in the same breath.
        if answers.iter().any(Result::is_ok) {
            self.wake.tell(&wave.namespace);
        }
        Ok(answers)
    }

    async fn exchange(&self, wave: Wave, claim: Claim) -> Result<(Vec<Result<SettleAnswer>>, ClaimAnswer)> {
        if wave.namespace != claim.namespace {
            let why = "is not the namespace of the claim";
            return Err(Error::invalid("namespace", &wave.namespace.to_string(), why));
        }
        let answer = match wave.check().and_then(|()| claim.check()) {
            Err(fault) => self.refuse(&wave.namespace, fault).await,
            Ok(()) if claim.trace || claim.expect.is_some() => self.exchange_closely(&wave, &claim).await,
            Ok(()) => self.exchange_wave(&wave, &claim).await,
        };
        match answer {
            Err(Error::NotFound { what: "queue", .. }) => {
                Ok((wave.no_such_queue(), ClaimAnswer::no_such_queue(&claim)))
            }
            Err(fault) => Err(fault),
            Ok((settled, answer)) => {
                // What became ready and was not claimed here is somebody else's to claim.
                if settled.iter().flatten().any(|settled| settled.state == State::Ready) {
                    self.wake.tell(&wave.namespace);
                } else {
                    self.wake.note(&wave.namespace);
                }
                Ok((settled, self.with_reason(answer, claim).await?))
            }
        }
    }

    async fn heartbeat(&self, beats: Heartbeats) -> Result<Vec<Result<Beat>>> {
        if let Err(fault) = beats.check() {
            return self.refuse(&beats.namespace, fault).await;
        }
        self.beat(&beats).await
    }

    async fn report(&self, report: Report) -> Result<()> {
        self.report_on(report).await
    }

    async fn operate(&self, operation: Operation) -> Result<Vec<Result<Operated>>> {
        let namespace = operation.namespace.clone();
        let answers = self.operate_on(operation).await?;
        self.wake.tell(&namespace);
        Ok(answers)
    }

    async fn hold(&self, hold: Hold) -> Result<()> {
        let namespace = hold.namespace.clone();
        self.hold_or_resume(hold).await?;
        self.wake.tell(&namespace);
        Ok(())
    }

    async fn recover(&self, namespace: Namespace) -> Result<usize> {
        let changed = self.bring_in(&namespace).await?;
        if changed > 0 {
            self.wake.tell(&namespace);
        }
        Ok(changed)
    }

    async fn prune(&self, namespace: Namespace, limit: usize) -> Result<(usize, usize)> {
        self.prune_some(&namespace, limit).await
    }

    async fn define(&self, define: Define) -> Result<()> {
        define.check()?;
        self.define_one(define).await
    }

    async fn changed(&self, namespace: Namespace, seen: Option<u64>) -> Result<u64> {
        Ok(self.wake.changed(&namespace, seen).await)
    }

    async fn job(&self, id: JobId) -> Result<Found> {
        self.find(id).await
    }

    async fn key_holder(&self, namespace: Namespace, key: Label) -> Result<Option<JobId>> {
        Ok(self.look(&namespace, move |rules| rules.key_holder(&key)).await?.flatten())
    }

    async fn jobs(&self, filter: JobFilter) -> Result<Page> {
        self.read(move |session| list::page(session, &filter)).await
    }

    async fn history(&self, id: JobId) -> Result<Vec<Entry>> {
        self.history_of(id).await
    }

    async fn steps(&self, id: JobId) -> Result<Vec<(String, Json)>> {
        self.look_at(id, |rules, id| rules.steps(id)).await
    }

    async fn explain(&self, id: JobId) -> Result<Explanation> {
        self.look_at(id, |rules, id| rules.explain(id)).await
    }

    async fn lanes(&self, filter: LaneFilter) -> Result<Vec<LaneView>> {
        let namespace = filter.namespace.clone();
        let found = self.look(&namespace, move |rules| rules.lanes(&filter)).await?;
        found.ok_or_else(|| Error::not_found("queue", &namespace.to_string()))
    }

    async fn queues(&self, filter: QueueFilter) -> Result<Overview> {
        self.overview(filter).await
    }

    async fn export(&self, namespace: Option<Namespace>) -> Result<Parcel> {
        self.read(move |session| port::export(session, namespace.as_ref())).await
    }

    async fn import(&self, parcel: Parcel) -> Result<()> {
        self.write(move |session| port::import(session, &parcel)).await
    }

    async fn mark(&self, mark: Mark) -> Result<()> {
        let clock = self.clock.clone();
        self.write(move |session| port::mark(session, &mark, clock.as_deref())).await
    }

    async fn backup(&self, _path: PathBuf) -> Result<()> {
        let why =
            "a database is backed up by its own means: `pg_dump --schema=acta`, or the copies of the whole server";
        Err(Error::invalid("backup", self.db.place(), why))
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        self.read(port::examine).await
    }

    fn is_parallel(&self) -> bool {
        true
    }
}
