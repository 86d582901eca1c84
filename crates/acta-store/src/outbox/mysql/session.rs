//! Connections to a MySQL or MariaDB server, and statements on them.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acta_core::{Error, Result};
use mysql_async::prelude::{FromValue, Queryable as _};
use mysql_async::{Conn, Opts, OptsBuilder, Params, Row, Value};
use tokio::time::{sleep, timeout};

use super::bound::{Param, bound};

/// How long a server may take to answer before the connection counts as lost.
const SILENCE: Duration = Duration::from_secs(30);
/// How often a statement is tried that another transaction stands in the way of, and how long is waited in between, each time longer.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);
/// What the server says then: a deadlock, and a lock that was not to be had in time.
const IN_THE_WAY: [u16; 2] = [1213, 1205];
const NO_SUCH_TABLE: u16 = 1146;
/// READ COMMITTED: without it a look locks the gaps that the application inserts into.
const SETUP: [&str; 2] = [
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION autocommit = 1, innodb_lock_wait_timeout = 5",
];
/// Statements with lists are as many as there are lengths of lists.
const STATEMENTS: usize = 128;

/// What went wrong on a connection, which is dropped then: its server forgets what was begun on it.
#[derive(Debug)]
pub(super) enum Fault {
    Said(mysql_async::Error),
    Silent,
}

impl From<mysql_async::Error> for Fault {
    fn from(fault: mysql_async::Error) -> Self {
        Self::Said(fault)
    }
}

impl Fault {
    fn code(&self) -> Option<u16> {
        match self {
            Self::Said(mysql_async::Error::Server(said)) => Some(said.code),
            _ => None,
        }
    }
}

pub(super) type Attempt<T> = std::result::Result<T, Fault>;

/// A connection. Each statement is a transaction of its own, so that a relay which stands still leaves no lock behind.
pub(super) struct Session(Conn);

impl Session {
    pub(super) async fn run(&mut self, sql: &str, params: &[Param]) -> Attempt<Vec<Row>> {
        let (text, values) = bound(sql, params);
        self.run_as_it_is(text, values).await
    }

    /// The same with a statement that is bound already.
    pub(super) async fn run_as_it_is(&mut self, text: String, values: Vec<Value>) -> Attempt<Vec<Row>> {
        in_time(self.0.exec(text, Params::Positional(values))).await
    }

    /// How many rows the last statement has changed.
    pub(super) fn changed(&self) -> u64 {
        self.0.affected_rows()
    }
}

async fn in_time<T>(answer: impl Future<Output = mysql_async::Result<T>>) -> Attempt<T> {
    timeout(SILENCE, answer).await.map_err(|_| Fault::Silent)?.map_err(Fault::Said)
}

/// One column of a row.
pub(super) fn get<T: FromValue>(row: &Row, column: usize) -> Attempt<T> {
    match row.get_opt(column) {
        Some(Ok(value)) => Ok(value),
        _ => Err(Fault::Said(mysql_async::Error::Driver(mysql_async::DriverError::FromRow { row: row.clone() }))),
    }
}

/// Connections that are opened when they are needed.
#[derive(Debug)]
pub(super) struct Connections {
    opts: Opts,
    place: String,
    idle: Mutex<Vec<Conn>>,
}

impl Connections {
    /// Connections to the database at `address`, to which nothing is connected yet; `what` is to be found there.
    pub(super) fn new(address: &str, what: &str) -> Result<Self> {
        // The text is not repeated, for its password's sake.
        let wrong = |why: String| Error::invalid("source", "mysql://…", why);
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        let opts = Opts::from_url(&format!("mysql://{rest}"));
        let opts = opts.map_err(|fault| wrong(format!("is no URL of a MySQL database: {fault}")))?;
        let database = opts.db_name().ok_or_else(|| wrong("names no database".into()))?;
        let place = format!("{what} in mysql://{}:{}/{database}", opts.ip_or_hostname(), opts.tcp_port());
        let trusting = opts.ssl_opts().cloned().map(|ssl| ssl.with_root_certs(trusted().map(Into::into).collect()));
        let opts = OptsBuilder::from_opts(opts)
            // Another server's socket may be where this one says that its own is.
            .prefer_socket(false)
            .stmt_cache_size(STATEMENTS)
            .setup(SETUP.to_vec())
            .ssl_opts(trusting);
        Ok(Self { opts: opts.into(), place, idle: Mutex::default() })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Conn>> {
        // Nobody panics while holding it.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn get(&self) -> Attempt<Session> {
        let idle = self.idle().pop();
        match idle {
            Some(conn) => Ok(Session(conn)),
            None => in_time(Conn::new(self.opts.clone())).await.map(Session),
        }
    }

    /// Takes back a session on which all went well.
    pub(super) fn put(&self, session: Session) {
        self.idle().push(session.0);
    }

    /// Does it, again if another transaction stood in the way.
    pub(super) async fn attempts<T, F>(&self, mut once: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Attempt<T>>,
    {
        let mut tries = 1;
        loop {
            match once().await {
                Ok(answer) => return Ok(answer),
                Err(fault) if tries < TRIES && fault.code().is_some_and(|code| IN_THE_WAY.contains(&code)) => {
                    sleep(PAUSE * tries).await;
                    tries += 1;
                }
                Err(fault) => return Err(self.unavailable(&fault)),
            }
        }
    }

    pub(super) fn unavailable(&self, fault: &Fault) -> Error {
        let mut why = match fault {
            Fault::Said(mysql_async::Error::Server(said)) => said.message.clone(),
            Fault::Said(other) => other.to_string(),
            Fault::Silent => format!("did not answer within {} s", SILENCE.as_secs()),
        };
        if fault.code() == Some(NO_SUCH_TABLE) {
            why.push_str("; `orchestrator outbox ddl --for mysql` prints what makes it");
        }
        Error::Unavailable { place: self.place.clone(), why }
    }
}

/// Whom the system trusts, beside those whom browsers do: what can't be read of it is as good as not trusted.
fn trusted() -> impl Iterator<Item = Vec<u8>> {
    let mut sound = rustls::RootCertStore::empty();
    let certificates = rustls_native_certs::load_native_certs().certs.into_iter();
    certificates
        .filter(move |certificate| sound.add(certificate.clone()).is_ok())
        .map(|certificate| certificate.to_vec())
}
