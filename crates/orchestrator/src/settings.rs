//! From arguments, environment and the settings file to what the commands work with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acta_core::shelf::MemoryStore;
use acta_core::{Clock, Error, Namespace, Seeded, Span, Store, SystemClock, Timestamp};
use acta_store::Address;
use anyhow::Result;
use clap::ArgMatches;
use clap::parser::ValueSource;
use serde::Deserialize;

use crate::args::{Args, QueueArgs};
use crate::exit::{Exit, Fault};
use crate::printer::Printer;

/// The settings file, in the folder that the command is called in.
const FILE: &str = "orchestrator.toml";

/// Where the ledger is, and what keeps it.
#[derive(Debug)]
pub(crate) struct Settings {
    root: PathBuf,
    address: Address,
    clock: Arc<dyn Clock>,
    origins: Vec<(&'static str, String, Origin)>,
}

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag,
    Environment,
    File,
    Default,
}

impl Origin {
    /// In a word, for people and programs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => FILE,
            Self::Default => "default",
        }
    }
}

/// What the settings file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    root: Option<PathBuf>,
    provider: Option<String>,
    database_url: Option<String>,
}

impl Settings {
    /// Reads what all commands share.
    pub(crate) fn of(args: &Args, matches: &ArgMatches) -> Result<Self> {
        let file = read_file(Path::new(FILE))?;
        let given = |name| match matches.value_source(name) {
            Some(ValueSource::EnvVariable) => Origin::Environment,
            _ => Origin::Flag,
        };
        let (root, root_from) = match (&args.root, file.root) {
            (Some(root), _) => (root.clone(), given("root")),
            (None, Some(root)) => (root, Origin::File),
            (None, None) => (PathBuf::from(".orchestrator"), Origin::Default),
        };
        let told = args.provider.as_ref().filter(|provider| !provider.is_empty());
        let (provider, provider_from) = match (told, file.provider) {
            (Some(provider), _) => (provider.clone(), given("provider")),
            (None, Some(provider)) => (provider, Origin::File),
            (None, None) => ("sqlite".to_owned(), Origin::Default),
        };
        let told = args.database_url.as_ref().filter(|url| !url.is_empty());
        let (database, database_from) = match (told, &file.database_url) {
            (Some(url), _) => (Some(url), given("database_url")),
            (None, Some(url)) => (Some(url), Origin::File),
            (None, None) => (None, Origin::Default),
        };
        let (address, ledger_from) = match (provider.as_str(), database) {
            ("sqlite", _) => (Address::Sqlite(root.join("acta.db")), Origin::Default),
            ("file", _) => (Address::File(root.clone()), Origin::Default),
            ("postgres", Some(url)) => (Address::Postgres(Box::new(url.parse()?)), database_from),
            ("postgres", None) => {
                let hint = "say DATABASE_URL=postgres://USER:PASSWORD@HOST/DATABASE";
                return Err(Fault::new(Exit::Usage, "no database is named").hint(hint).into());
            }
            (other, _) => {
                let message = format!("provider {other:?} is not known");
                return Err(Fault::new(Exit::Usage, message).hint("it is sqlite, file or postgres").into());
            }
        };
        let origins = vec![
            ("root", root.display().to_string(), root_from),
            ("provider", provider, provider_from),
            ("ledger", address.to_string(), ledger_from),
        ];
        Ok(Self { root, address, clock: Arc::new(SystemClock), origins })
    }

    /// Every setting, its value, and where that comes from.
    pub(crate) fn origins(&self) -> &[(&'static str, String, Origin)] {
        &self.origins
    }

    /// The instant now.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What tells the time.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Where the ledger is.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Opens the ledger to put something in; an absent one is made.
    pub(crate) async fn open_or_make(&self) -> Result<Arc<dyn Store>> {
        Ok(self.open_at(&self.address).await?)
    }

    /// Opens the ledger that is there. An absent one is empty, and stays absent.
    pub(crate) async fn open(&self, printer: &Printer) -> Result<Arc<dyn Store>> {
        if self.address.exists().await? {
            return self.open_or_make().await;
        }
        let hint = if self.root.join("acta.db").exists() {
            "; there is one of --provider sqlite"
        } else if self.root.join("queues").exists() {
            "; there is one of --provider file"
        } else {
            ""
        };
        printer.complain(&format!("there is no ledger at {}{hint}", self.address));
        Ok(Arc::new(MemoryStore::new(Arc::clone(&self.clock), Box::new(Seeded::new(0)))))
    }

    /// Opens another ledger.
    pub(crate) async fn open_at(&self, address: &Address) -> acta_core::Result<Arc<dyn Store>> {
        address.open(Arc::clone(&self.clock)).await
    }

    /// The folder of the logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The folder of the job definitions, where none are named.
    pub(crate) fn jobdefs(&self) -> PathBuf {
        self.root.join("jobdefs")
    }

    /// The ledger's folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// An instant, or a while from now.
    pub(crate) fn instant_to_come(&self, what: &'static str, text: &str) -> Result<Timestamp> {
        self.instant(what, text, 1)
    }

    /// An instant, or a while before now.
    pub(crate) fn instant_gone_by(&self, what: &'static str, text: &str) -> Result<Timestamp> {
        self.instant(what, text, -1)
    }

    fn instant(&self, what: &'static str, text: &str, direction: i64) -> Result<Timestamp> {
        if let Ok(span) = text.parse::<Span>() {
            return Ok(self.now().plus_ms(direction * span.as_millis()));
        }
        text.parse().map_err(|_| {
            let why = "is neither an instant like 2026-10-03T09:12:00Z nor a while like 2h";
            Error::invalid(what, text, why).into()
        })
    }
}

fn read_file(path: &Path) -> Result<SettingsFile> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(SettingsFile::default()),
        Err(fault) => return Err(Fault::new(Exit::Usage, format!("{}: {fault}", path.display())).into()),
    };
    toml::from_str(&text).map_err(|fault| {
        let before = fault.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let message = format!("{}: line {line}, column {column}: {}", path.display(), fault.message());
        Fault::new(Exit::Usage, message).hint("the settings are root, provider and database_url").into()
    })
}

impl QueueArgs {
    /// The namespace that the flags name, if any does.
    pub(crate) fn namespace(&self) -> Result<Option<Namespace>> {
        let named = |flag: &Option<String>, make: fn(&str) -> acta_core::Result<Namespace>| {
            flag.as_deref().map(make).transpose()
        };
        Ok(named(&self.queue, Namespace::job_queue)?
            .or(named(&self.transactions, Namespace::transaction_queue)?)
            .or(named(&self.namespace, Namespace::plain)?))
    }

    /// The namespace that the flags name; one of them must.
    pub(crate) fn the_namespace(&self) -> Result<Namespace> {
        let missing = || {
            let hint = "say --queue QUEUE, --transactions QUEUE or --namespace NAME";
            Fault::new(Exit::Usage, "no queue is named").hint(hint)
        };
        Ok(self.namespace()?.ok_or_else(missing)?)
    }
}
