//! Connections that programs of other languages would have: statements as text, rows as text, errors by their state.

use std::time::Duration;

use acta_testkit::postgres::{Database, Server};
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage};

/// Why a statement was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) state: String,
    pub(crate) message: String,
}

pub(crate) type Row = Vec<Option<String>>;

/// A connection.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    notified: tokio::sync::mpsc::UnboundedReceiver<(String, String)>,
}

/// A database of its own, with an empty ledger.
pub(crate) fn ledger() -> Database {
    Database::new(Server::shared_url(), Some(super::template()))
}

impl Session {
    /// A connection to this database. A statement that has to wait for another one's lock fails.
    pub(crate) async fn open(url: &str) -> Self {
        let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        let (sender, notified) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(told) = message {
                    let _ = sender.send((told.channel().to_owned(), told.payload().to_owned()));
                }
            }
        });
        let session = Self { client, notified };
        session.run("SET lock_timeout = '10s'; SET timezone = 'UTC'").await;
        session
    }

    /// The rows of a script.
    pub(crate) async fn try_all(&self, script: &str) -> Result<Vec<Row>, Refused> {
        let messages = self.client.simple_query(script).await.map_err(|fault| {
            let said = fault.as_db_error().unwrap_or_else(|| panic!("{script}: {fault}"));
            Refused { state: said.code().code().into(), message: said.message().into() }
        })?;
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(ToOwned::to_owned)).collect())
            }
            _ => None,
        };
        Ok(messages.into_iter().filter_map(row).collect())
    }

    /// The rows of a script that is accepted.
    pub(crate) async fn all(&self, script: &str) -> Vec<Row> {
        self.try_all(script).await.unwrap_or_else(|fault| panic!("{script}: {fault:?}"))
    }

    /// Its rows, each as one line.
    pub(crate) async fn lines(&self, script: &str) -> Vec<String> {
        let line = |row: Row| row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join("|");
        self.all(script).await.into_iter().map(line).collect()
    }

    /// The only value of a script.
    pub(crate) async fn one(&self, script: &str) -> String {
        let mut rows = self.all(script).await;
        assert_eq!(rows.len(), 1, "{script}: {rows:?}");
        rows.remove(0).remove(0).unwrap_or_default()
    }

    /// Runs a script.
    pub(crate) async fn run(&self, script: &str) {
        self.all(script).await;
    }

    /// Why a script is refused.
    pub(crate) async fn refused(&self, script: &str) -> Refused {
        match self.try_all(script).await {
            Err(fault) => fault,
            Ok(rows) => panic!("{script} was accepted: {rows:?}"),
        }
    }

    /// The next notification, channel and payload.
    pub(crate) async fn notification(&mut self) -> (String, String) {
        let next = tokio::time::timeout(Duration::from_secs(10), self.notified.recv()).await;
        next.expect("nobody notifies").expect("the connection is there")
    }
}
