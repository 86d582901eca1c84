//! Where a ledger is, as a URL: `sqlite:<file>` or `file:<folder>`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use acta_core::{Clock, Error, Result, Store};

/// Where a ledger is, and what it is kept in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An SQLite file.
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf),
    /// A folder of JSON files.
    #[cfg(feature = "file")]
    File(PathBuf),
}

impl Address {
    /// Opens the ledger there, with its default options; one that is not there is made, now or by the first change.
    pub fn open(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>> {
        Ok(match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => {
                let options = crate::sqlite::Options { clock, ..crate::sqlite::Options::default() };
                Arc::new(crate::SqliteStore::open(path, options)?)
            }
            #[cfg(feature = "file")]
            Self::File(root) => Arc::new(crate::FileStore::open(root, crate::file::Options { clock, random: None })?),
        })
    }
}

impl Address {
    /// The same place, whatever folder it is named from.
    pub fn absolute(self) -> Self {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => Self::Sqlite(absolute(path)),
            #[cfg(feature = "file")]
            Self::File(root) => Self::File(absolute(root)),
        }
    }

    /// Whether there is anything yet.
    pub fn exists(&self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => path.exists(),
            #[cfg(feature = "file")]
            Self::File(root) => root.exists(),
        }
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self> {
        let wrong = |why: &str| Error::invalid("ledger", url, why);
        let Some((scheme, path)) = url.split_once(':') else {
            return Err(wrong("is no URL like sqlite:FILE or file:FOLDER"));
        };
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
            _ => Err(wrong("is neither sqlite:FILE nor file:FOLDER")),
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
