//! One transaction's view of the ledger: what it has looked up, and what it writes once at its end.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use acta_core::job::Tally;
use acta_core::random::Random;
use acta_core::rows::Queue;
use acta_core::store::Openness;
use acta_core::vitals::Flow;
use acta_core::{Clock, Definition, Error, JobId, Name, Namespace, QueueSettings, Result, Rules, Timestamp};
use rusqlite::Row;

use super::codec;
use super::connection::{Db, statement};
use super::rows::SqlRows;
use super::standings::Standings;
use super::vitals::flow_cells;

/// The number of a namespace in its ledger.
pub(super) type NamespaceNumber = i64;

/// What does not change often, remembered between transactions while no other process commits.
#[derive(Debug, Default)]
pub(super) struct Memory {
    namespaces: HashMap<Namespace, (NamespaceNumber, Queue)>,
    names: HashMap<Name, (i64, Option<Definition>)>,
    last_number: Option<u64>,
    data_version: i64,
    pub(super) openness: Option<Openness>,
    pub(super) standings: Standings,
}

/// What a group of operations writes once, just before it commits.
#[derive(Clone, Debug, Default)]
struct Pending {
    counts: BTreeMap<(NamespaceNumber, Tally), i64>,
    flows: BTreeMap<(NamespaceNumber, Timestamp), Flow>,
    last_number: Option<u64>,
}

/// A transaction: several operations, each of which happens wholly or not at all.
pub(super) struct Session<'a> {
    pub(super) db: &'a Db,
    pub(super) memory: &'a mut Memory,
    pending: Pending,
    /// Namespaces in which somebody who waits may find something once this has committed.
    pub(super) woken: Vec<Namespace>,
    is_fresh: bool,
    begin: &'static str,
    world: &'a World,
}

/// What is handed in: time and randomness.
pub(super) struct World {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Mutex<Box<dyn Random>>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl<'a> Session<'a> {
    /// Begins a transaction, by the command `begin`.
    pub(super) fn begin(db: &'a Db, memory: &'a mut Memory, world: &'a World, begin: &'static str) -> Result<Self> {
        db.command(begin)?;
        let version = db.data_version()?;
        if memory.data_version != version {
            *memory = Memory { data_version: version, ..Memory::default() };
        }
        Ok(Self { db, memory, pending: Pending::default(), woken: Vec::new(), is_fresh: true, begin, world })
    }

    /// Runs one operation: a refused one leaves nothing behind, and nothing of the others is undone with it.
    ///
    /// The first needs no savepoint of its own, since there is nothing before it to keep. The outer error means that
    /// the whole transaction is gone: SQLite rolls everything back when the disk is full.
    pub(super) fn operation<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<Result<T>> {
        let is_first = std::mem::replace(&mut self.is_fresh, false);
        if !is_first {
            self.db.command("SAVEPOINT operation")?;
        }
        let before = self.pending.clone();
        match run(self) {
            // Any statement may have met an error that SQLite answers by rolling back, even one that was dealt with.
            Ok(_) if self.db.raw.is_autocommit() => Err(self.db.rolled_back()),
            Ok(answer) => {
                if !is_first {
                    self.db.command("RELEASE operation")?;
                }
                Ok(Ok(answer))
            }
            Err(fault) => {
                if self.db.raw.is_autocommit() {
                    return Err(fault);
                }
                if is_first {
                    self.db.command("ROLLBACK")?;
                    self.db.command(self.begin)?;
                    self.is_fresh = true;
                } else {
                    self.db.command("ROLLBACK TO operation")?;
                    self.db.command("RELEASE operation")?;
                }
                self.pending = before;
                // Names, lanes or numbers may have been given in what is undone now.
                *self.memory = Memory { data_version: self.memory.data_version, ..Memory::default() };
                Ok(Err(fault))
            }
        }
    }

    /// Whoever waits for work in the namespace is told once this has committed. If it is undone, they look in vain.
    pub(super) fn wake(&mut self, namespace: &Namespace) {
        if !self.woken.contains(namespace) {
            self.woken.push(namespace.clone());
        }
    }

    /// Writes what was kept for the end.
    pub(super) fn finish(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        for ((ns, tally), change) in pending.counts {
            let statement = if change < 0 { statement!("take_count") } else { statement!("add_count") };
            if change != 0 {
                self.db.execute(statement, (ns, codec::counter(tally), change.abs()))?;
            }
        }
        for ((ns, minute), flow) in pending.flows {
            self.db.execute(statement!("add_minute"), codec::bind(flow_cells(ns, minute, flow)))?;
        }
        if let Some(last) = pending.last_number {
            self.db.execute(statement!("save_last_number"), [last.cast_signed()])?;
        }
        Ok(())
    }

    /// Runs a verb of the rules on a namespace that exists; `Ok(None)` where it does not.
    pub(super) fn rules<T>(
        &mut self,
        namespace: &Namespace,
        verb: impl FnOnce(&mut Rules<'_, SqlRows<'_, 'a>>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some((ns, queue)) = self.namespace(namespace)? else { return Ok(None) };
        let world = self.world;
        // Nobody panics while holding it, and a half-used source of random numbers is as good as any.
        let mut random = world.random.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut rows = SqlRows::new(self, ns, queue);
        let answer = verb(&mut Rules::new(&mut rows, world.clock.now(), random.as_mut()))?;
        rows.flush()?;
        Ok(Some(answer))
    }

    /// The namespace's number and row, if it exists.
    pub(super) fn namespace(&mut self, namespace: &Namespace) -> Result<Option<(NamespaceNumber, Queue)>> {
        if let Some(known) = self.memory.namespaces.get(namespace) {
            return Ok(Some(known.clone()));
        }
        let path = namespace.to_string();
        let found = self.db.first(statement!("namespace"), [&path], queue_columns)?;
        let Some(columns) = found else { return Ok(None) };
        if columns.1 != path {
            return Err(Error::CaseDiffers { what: "queue", given: path, existing: columns.1 });
        }
        let (ns, queue) = self.queue_of(columns)?;
        self.memory.namespaces.insert(namespace.clone(), (ns, queue.clone()));
        Ok(Some((ns, queue)))
    }

    /// Makes the namespace if it is not there.
    pub(super) fn ensure_namespace(&mut self, namespace: &Namespace) -> Result<()> {
        if self.namespace(namespace)?.is_none() {
            self.db.execute(statement!("add_namespace"), [namespace.to_string()])?;
        }
        Ok(())
    }

    /// What a row of the namespaces says.
    pub(super) fn queue_of(
        &self,
        (ns, path, settings, paused): (NamespaceNumber, String, String, bool),
    ) -> Result<(NamespaceNumber, Queue)> {
        let namespace = path.parse().map_err(|fault| self.db.unreadable("acta_namespaces", fault))?;
        let settings: QueueSettings = serde_json::from_str(&settings)
            .map_err(|fault| self.db.unreadable(&format!("acta_namespaces, settings of {path}"), fault))?;
        Ok((ns, Queue { namespace, settings, paused }))
    }

    pub(super) fn forget_namespace(&mut self, namespace: &Namespace) {
        self.memory.namespaces.remove(namespace);
    }

    /// The number and definition of a name, if the ledger has seen it.
    pub(super) fn name(&mut self, name: &Name) -> Result<Option<(i64, Option<Definition>)>> {
        if let Some(known) = self.memory.names.get(name) {
            return Ok(Some(known.clone()));
        }
        let found = self.db.first(statement!("name"), [name.as_str()], name_columns)?;
        found.map(|columns| self.remember_name(name, columns)).transpose()
    }

    fn remember_name(&mut self, given: &Name, columns: NameColumns) -> Result<(i64, Option<Definition>)> {
        let (number, name, definition) = columns;
        if name != given.as_str() {
            let given = given.to_string();
            return Err(Error::CaseDiffers { what: "name", given, existing: name });
        }
        let definition = match definition {
            None => None,
            Some(text) => Some(
                serde_json::from_str(&text)
                    .map_err(|fault| self.db.unreadable(&format!("acta_names, definition {name}"), fault))?,
            ),
        };
        self.memory.names.insert(given.clone(), (number, definition.clone()));
        Ok((number, definition))
    }

    /// The number of a name, given now if it is new.
    pub(super) fn ensure_name(&mut self, name: &Name) -> Result<i64> {
        if let Some((number, _)) = self.name(name)? {
            return Ok(number);
        }
        self.db.execute(statement!("add_name"), [name.as_str()])?;
        self.name(name)?
            .map(|(number, _)| number)
            .ok_or_else(|| self.db.unreadable("acta_names", "a new name is not there"))
    }

    /// Registers a job definition.
    pub(super) fn define(&mut self, definition: &Definition) -> Result<()> {
        let number = self.ensure_name(&definition.name)?;
        let text = serde_json::to_string(definition).map_err(|fault| self.db.unreadable("definition", fault))?;
        self.db.execute(statement!("save_definition"), (number, text))?;
        self.memory.names.remove(&definition.name);
        Ok(())
    }

    /// Sets what a queue says about its jobs; makes it if it is not there.
    pub(super) fn configure(&mut self, namespace: &Namespace, settings: &QueueSettings) -> Result<()> {
        self.ensure_namespace(namespace)?;
        let text = serde_json::to_string(settings).map_err(|fault| self.db.unreadable("settings", fault))?;
        if let Some((ns, _)) = self.namespace(namespace)? {
            self.db.execute(statement!("save_settings"), (ns, text))?;
        }
        self.forget_namespace(namespace);
        Ok(())
    }

    /// The last number that was given.
    pub(super) fn last_number(&self) -> Result<u64> {
        match self.pending.last_number.or(self.memory.last_number) {
            Some(last) => Ok(last),
            None => self
                .db
                .first(statement!("last_number"), [], |row| codec::number(row, 0))?
                .ok_or_else(|| self.db.unreadable("acta_counters", "has no last number")),
        }
    }

    pub(super) fn next_number(&mut self) -> Result<u64> {
        let next = self.last_number()? + 1;
        self.raise_last_number(next);
        Ok(next)
    }

    /// Numbers go on after this one.
    pub(super) fn raise_last_number(&mut self, last: u64) {
        self.pending.last_number = Some(last);
        self.memory.last_number = Some(last);
    }

    /// Whether the ledger takes writes.
    pub(super) fn openness(&self) -> Result<Openness> {
        let text: Option<String> = self.db.first(statement!("openness"), [], |row| row.get(0))?;
        let text = text.ok_or_else(|| self.db.unreadable("acta_ledger", "has no row"))?;
        serde_json::from_str(&text).map_err(|fault| self.db.unreadable("acta_ledger", fault))
    }

    /// Refuses a write into a ledger that takes none.
    pub(super) fn check_open(&mut self) -> Result<()> {
        let openness = match self.memory.openness.take() {
            Some(openness) => openness,
            None => self.openness()?,
        };
        openness.check(self.db.place())?;
        self.memory.openness = Some(openness);
        Ok(())
    }

    pub(super) fn count(&mut self, ns: NamespaceNumber, tally: Tally, change: i64) {
        *self.pending.counts.entry((ns, tally)).or_default() += change;
    }

    pub(super) fn flow(&mut self, ns: NamespaceNumber, minute: Timestamp, flow: Flow) {
        *self.pending.flows.entry((ns, minute)).or_default() += flow;
    }

    /// Changes of the counts that are not written yet.
    pub(super) fn pending_counts(&self, ns: NamespaceNumber) -> impl Iterator<Item = (Tally, i64)> + '_ {
        self.pending.counts.iter().filter(move |((of, _), _)| *of == ns).map(|((_, tally), change)| (*tally, *change))
    }

    /// The namespace of the job with this id.
    pub(super) fn locate(&mut self, id: &JobId) -> Result<Option<Namespace>> {
        let mut ns = None;
        if let Some(row) = id.row() {
            let found = self.db.first(statement!("locate"), [row.cast_signed()], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
            })?;
            ns = found.filter(|(found, _)| found == id.as_str()).map(|(_, ns)| ns);
        }
        if ns.is_none() {
            ns = self.db.first(statement!("locate_foreign"), [id.as_str()], |row| row.get(0))?;
        }
        match ns {
            Some(ns) => Ok(Some(self.namespace_numbered(ns)?.namespace)),
            None => Ok(None),
        }
    }

    /// The namespace with this number.
    pub(super) fn namespace_numbered(&mut self, ns: NamespaceNumber) -> Result<Queue> {
        if let Some((_, queue)) = self.memory.namespaces.values().find(|(number, _)| *number == ns) {
            return Ok(queue.clone());
        }
        let found = self.db.first(statement!("namespace_numbered"), [ns], queue_columns)?;
        let columns = found.ok_or_else(|| self.db.unreadable("acta_namespaces", format!("no number {ns}")))?;
        Ok(self.queue_of(columns)?.1)
    }
}

type NameColumns = (i64, String, Option<String>);

fn name_columns(row: &Row<'_>) -> rusqlite::Result<NameColumns> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

pub(super) fn queue_columns(row: &Row<'_>) -> rusqlite::Result<(NamespaceNumber, String, String, bool)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}
