//! Where a ledger is, as a URL: `sqlite:<file>`, `file:<folder>` or `postgres://…`.

use std::fmt;
#[cfg(any(feature = "sqlite", feature = "file"))]
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use acta_core::{Clock, Error, Result, Store};

use crate::migration::{Migration, Pending};

/// Where a ledger is, and what it is kept in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An SQLite file.
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf),
    /// A folder of JSON files.
    #[cfg(feature = "file")]
    File(PathBuf),
    /// A PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(Box<crate::postgres::Url>),
}

/// A ledger that was opened, and what it is kept in: for what only some substrates can do.
#[derive(Clone, Debug)]
pub enum Opened {
    /// In an SQLite file.
    #[cfg(feature = "sqlite")]
    Sqlite(Arc<crate::SqliteStore>),
    /// In a folder of JSON files.
    #[cfg(feature = "file")]
    File(Arc<crate::FileStore>),
    /// In a PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(Arc<crate::PostgresStore>),
}

impl Opened {
    /// The ledger with the verbs that all have.
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(store) => Arc::clone(store) as _,
            #[cfg(feature = "file")]
            Self::File(store) => Arc::clone(store) as _,
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => Arc::clone(store) as _,
        }
    }

    /// What is wrong with a connection of a caller's to a database of a kind that the ledger is not in.
    pub fn is_elsewhere(connection: &str) -> Error {
        Error::invalid("connection to", connection, "does not lead to the ledger, which is kept in something else")
    }
}

impl Address {
    /// Opens the ledger there, with its default options; one that is not there is made, now or by the first change.
    ///
    /// A ledger in PostgreSQL goes by the database's clock, which all its machines share, not by `clock`.
    pub async fn open(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>> {
        Ok(self.opened(clock).await?.store())
    }

    /// The same, by what it is kept in.
    pub async fn opened(&self, clock: Arc<dyn Clock>) -> Result<Opened> {
        Ok(match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => {
                let options = crate::sqlite::Options { clock, ..crate::sqlite::Options::default() };
                Opened::Sqlite(Arc::new(crate::SqliteStore::open(path, options)?))
            }
            #[cfg(feature = "file")]
            Self::File(root) => {
                Opened::File(Arc::new(crate::FileStore::open(root, crate::file::Options { clock, random: None })?))
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => {
                drop(clock);
                let store = crate::PostgresStore::new(url, crate::postgres::Options::default())?;
                store.create_or_accept().await?;
                Opened::Postgres(Arc::new(store))
            }
        })
    }
}

impl Address {
    /// The same place, whatever folder it is named from.
    pub fn absolute(self) -> Self {
        #[cfg(any(feature = "sqlite", feature = "file"))]
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => Self::Sqlite(absolute(path)),
            #[cfg(feature = "file")]
            Self::File(root) => Self::File(absolute(root)),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Self::Postgres(url),
        }
    }

    /// Whether there is anything yet.
    pub async fn exists(&self) -> Result<bool> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => Ok(path.exists()),
            #[cfg(feature = "file")]
            Self::File(root) => Ok(root.exists()),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => crate::PostgresStore::new(url, crate::postgres::Options::default())?.exists().await,
        }
    }
}

impl Address {
    /// What the ledger there lacks of this release's schema. Files have none.
    pub async fn pending(&self) -> Result<Pending> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => crate::SqliteStore::pending(path),
            #[cfg(feature = "file")]
            Self::File(_) => Ok(Pending::default()),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => {
                let store = crate::PostgresStore::new(url, crate::postgres::Options::default())?;
                Ok(crate::postgres::pending(store.version().await?))
            }
        }
    }

    /// Brings it to this release's schema, making it if there is none; the migrations that were applied.
    pub async fn migrate(&self) -> Result<Vec<&'static Migration>> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => crate::SqliteStore::migrate(path),
            #[cfg(feature = "file")]
            Self::File(root) => crate::FileStore::open(root, crate::file::Options::default()).map(|_| Vec::new()),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => crate::PostgresStore::new(url, crate::postgres::Options::default())?.migrate().await,
        }
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self> {
        let wrong = |why: &str| Error::invalid("ledger", url, why);
        let Some((scheme, path)) = url.split_once(':') else {
            return Err(wrong("is no URL like sqlite:FILE, file:FOLDER or postgres://HOST/DATABASE"));
        };
        #[cfg(feature = "postgres")]
        if matches!(scheme, "postgres" | "postgresql") {
            return Ok(Self::Postgres(Box::new(url.parse()?)));
        }
        // `sqlite://dir/x` and `sqlite:///x` are written, too.
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() {
            return Err(wrong("names no path"));
        }
        match scheme {
            #[cfg(feature = "sqlite")]
            "sqlite" => Ok(Self::Sqlite(path.into())),
            #[cfg(feature = "file")]
            "file" => Ok(Self::File(path.into())),
            _ => Err(wrong("is none of sqlite:FILE, file:FOLDER, postgres://HOST/DATABASE")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            #[cfg(feature = "file")]
            Self::File(root) => write!(f, "file:{}", root.display()),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => write!(f, "{url}"),
        }
    }
}

#[cfg(all(test, feature = "sqlite", feature = "file"))]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url() {
        for (url, address) in [
            ("sqlite:acta.db", Address::Sqlite("acta.db".into())),
            ("sqlite:///var/acta.db", Address::Sqlite("/var/acta.db".into())),
            ("file:a b", Address::File("a b".into())),
        ] {
            assert_eq!(url.parse::<Address>().unwrap(), address);
            assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
        }
        for wrong in ["acta.db", "sqlite:", "file://", "oracle:x", ""] {
            assert!(wrong.parse::<Address>().unwrap_err().is_invalid(), "{wrong}");
        }
    }
}
