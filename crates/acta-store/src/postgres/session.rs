//! One transaction's view of the ledger, for the verbs that the rules themselves carry out.
//!
//! The rules look at rows one by one and do not know of waiting, so such a verb runs on a thread that may block. The verbs that
//! workers live on do not come here: they are functions in the database, one round trip each.

use acta_core::rows::Queue;
use acta_core::store::Openness;
use acta_core::{Backoff, Definition, Error, Family, Label, Name, Namespace, QueueSettings, Result, Span, Timestamp};
use deadpool_postgres::Client;
use tokio::runtime::Handle;
use tokio_postgres::Row;

use super::codec::{self, get};
use super::connection::Param;
use super::fault;

/// A named statement; its text stands in a file of that name.
macro_rules! statement {
    ($name:literal) => {
        include_str!(concat!("sql/", $name, ".sql"))
    };
}
pub(super) use statement;

/// Lists a statement's parameters with their types: `params![ns => INT4, text => TEXT]`.
macro_rules! params {
    ($($value:expr => $type:ident),* $(,)?) => {
        &[$((&$value as &(dyn tokio_postgres::types::ToSql + Sync), tokio_postgres::types::Type::$type)),*]
    };
}
pub(crate) use params;

/// The number of a namespace in its ledger.
pub(super) type NamespaceNumber = i32;

/// A transaction, on a thread that may block.
pub(super) struct Session {
    handle: Handle,
    client: Client,
    place: String,
}

impl Session {
    pub(super) fn new(handle: Handle, client: Client, place: &str) -> Self {
        Self { handle, client, place: place.to_owned() }
    }

    /// The ledger's name.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// A command without parameters or answer.
    pub(super) fn command(&self, sql: &str) -> Result<()> {
        self.handle
            .block_on(self.client.batch_execute(sql))
            .map_err(|fault| fault::translate(&self.place, None, &fault))
    }

    /// All rows of a statement's answer.
    pub(super) fn all(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        self.all_in(None, sql, params)
    }

    /// The same of a statement whose refusals depend on what kind of namespace is in hand.
    pub(super) fn all_in(&self, family: Option<Family>, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let run = self.client.query_typed(sql, params);
        self.handle.block_on(run).map_err(|fault| fault::translate(&self.place, family, &fault))
    }

    /// Its first row, if it has one.
    pub(super) fn first(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>> {
        Ok(self.all(sql, params)?.into_iter().next())
    }

    /// Its first row; that there is none is a fault of the ledger.
    pub(super) fn one(&self, sql: &str, params: &[Param<'_>]) -> Result<Row> {
        self.first(sql, params)?.ok_or_else(|| self.unreadable("an answer", "has no row"))
    }

    /// Runs a statement for what it does; how many rows it did it to.
    pub(super) fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let run = self.client.execute_typed(sql, params);
        self.handle.block_on(run).map_err(|fault| fault::translate(&self.place, None, &fault))
    }

    /// Something in the ledger that can't be understood.
    pub(super) fn unreadable(&self, what: &str, why: impl std::fmt::Display) -> Error {
        Error::Unreadable { place: format!("{}, {what}", self.place), why: why.to_string() }
    }

    /// The namespace's number and row, if it exists.
    pub(super) fn namespace(&self, namespace: &Namespace) -> Result<Option<(NamespaceNumber, Queue)>> {
        let path = namespace.to_string();
        let Some(row) = self.first(statement!("namespace"), params![path => TEXT])? else { return Ok(None) };
        let existing: &str = get(&row, 1)?;
        if existing != path {
            return Err(Error::CaseDiffers { what: "queue", given: path, existing: existing.to_owned() });
        }
        self.queue(&row).map(Some)
    }

    /// Makes the namespace if it is not there.
    pub(super) fn ensure_namespace(&self, namespace: &Namespace) -> Result<(NamespaceNumber, Queue)> {
        let row = self.one(statement!("add_namespace"), params![namespace.to_string() => TEXT])?;
        self.queue(&row)
    }

    /// All namespaces, by path.
    pub(super) fn namespaces(&self) -> Result<Vec<(NamespaceNumber, Queue)>> {
        self.all(statement!("namespaces"), &[])?.iter().map(|row| self.queue(row)).collect()
    }

    fn queue(&self, row: &Row) -> Result<(NamespaceNumber, Queue)> {
        let path: &str = get(row, 1)?;
        let span = |column| Ok::<_, Error>(get::<Option<i64>>(row, column)?.map(Span::from_millis));
        let queue = Queue {
            namespace: path.parse().map_err(|fault| self.unreadable("namespaces", fault))?,
            settings: QueueSettings { lease: span(2)?, retention: span(3)? },
            paused: get(row, 4)?,
        };
        Ok((get(row, 0)?, queue))
    }

    /// A name that was used, with its definition if it has one; nothing, if it never was.
    pub(super) fn name(&self, name: &Name) -> Result<Option<(Name, Option<Definition>)>> {
        let Some(row) = self.first(statement!("name"), params![name.as_str() => TEXT])? else { return Ok(None) };
        let existing: &str = get(&row, 0)?;
        if existing != name.as_str() {
            let given = name.to_string();
            return Err(Error::CaseDiffers { what: "name", given, existing: existing.to_owned() });
        }
        self.definition(&row).map(Some)
    }

    /// Every name that was used, with its definition.
    pub(super) fn names(&self) -> Result<Vec<(Name, Option<Definition>)>> {
        self.all(statement!("names"), &[])?.iter().map(|row| self.definition(row)).collect()
    }

    fn definition(&self, row: &Row) -> Result<(Name, Option<Definition>)> {
        let name = Name::trusted(get::<&str>(row, 0)?);
        if !get::<bool>(row, 1)? {
            return Ok((name, None));
        }
        let span = |column| Ok::<_, Error>(get::<Option<i64>>(row, column)?.map(Span::from_millis));
        let backoff = get::<Option<&str>>(row, 6)?.map(serde_json::from_str::<Backoff>).transpose();
        let priority = get::<Option<i16>>(row, 3)?.map(u8::try_from).transpose();
        let definition = Definition {
            name: name.clone(),
            lane: codec::label(row, 2)?,
            priority: priority.map_err(|fault| self.unreadable("names", fault))?,
            max_attempts: get::<Option<i32>>(row, 4)?.map(i32::unsigned_abs),
            retryable: get(row, 5)?,
            backoff: backoff.map_err(|fault| self.unreadable("names", fault))?,
            lease: span(7)?,
            retention: span(8)?,
        };
        Ok((name, Some(definition)))
    }

    /// Takes note of a name that is used.
    pub(super) fn ensure_name(&self, name: &Name) -> Result<()> {
        if self.name(name)?.is_none() {
            self.execute(statement!("add_name"), params![name.as_str() => TEXT])?;
        }
        Ok(())
    }

    /// Registers a job definition.
    pub(super) fn define(&self, definition: &Definition) -> Result<()> {
        self.ensure_name(&definition.name)?;
        let backoff = definition.backoff.as_ref().map(written).transpose();
        let backoff = backoff.map_err(|fault| self.unreadable("a definition", fault))?;
        let millis = |span: Option<Span>| span.map(Span::as_millis);
        self.execute(
            statement!("save_definition"),
            params![
                definition.name.as_str() => TEXT,
                definition.lane.as_ref().map(Label::as_str) => TEXT,
                definition.priority.map(i16::from) => INT2,
                definition.max_attempts.map(count_of) => INT4,
                definition.retryable => BOOL,
                backoff => TEXT,
                millis(definition.lease) => INT8,
                millis(definition.retention) => INT8,
            ],
        )?;
        Ok(())
    }

    /// Sets what a queue says about its jobs; makes it if it is not there.
    pub(super) fn configure(
        &self,
        namespace: &Namespace,
        settings: &QueueSettings,
    ) -> Result<(NamespaceNumber, Queue)> {
        let (ns, queue) = self.ensure_namespace(namespace)?;
        let millis = |span: Option<Span>| span.map(Span::as_millis);
        let sql = statement!("save_settings");
        self.execute(sql, params![ns => INT4, millis(settings.lease) => INT8, millis(settings.retention) => INT8])?;
        Ok((ns, Queue { settings: settings.clone(), ..queue }))
    }

    /// Whether the ledger takes writes.
    pub(super) fn openness(&self) -> Result<Openness> {
        let row = self.one(statement!("openness"), &[])?;
        serde_json::from_str(get(&row, 0)?).map_err(|fault| self.unreadable("its openness", fault))
    }

    /// The database's own instant.
    pub(super) fn now(&self) -> Result<Timestamp> {
        Ok(Timestamp::from_millis(get(&self.one(statement!("now"), &[])?, 0)?))
    }
}

/// A back-off as it is kept.
pub(super) fn written(backoff: &Backoff) -> serde_json::Result<String> {
    serde_json::to_string(backoff)
}

/// A count as a database value; nothing that is counted here comes near the limit.
pub(super) fn count_of(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// One column of what a call gives for each of many jobs; null where no job has a value, which spares carrying it.
pub(super) fn column<'j, T, V>(jobs: &'j [T], value: impl Fn(&'j T) -> Option<V>) -> Option<Vec<Option<V>>> {
    let values: Vec<Option<V>> = jobs.iter().map(value).collect();
    values.iter().any(Option::is_some).then_some(values)
}
