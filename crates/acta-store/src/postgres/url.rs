//! The URL of a database, which may hold a password.

use std::fmt;
use std::str::FromStr;

use acta_core::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Where a database is, like `postgres://user:password@host:port/database`. Shown, it keeps its password to itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    config: Config,
}

impl Url {
    pub(super) fn config(&self) -> Config {
        self.config.clone()
    }
}

impl FromStr for Url {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let config = text.parse().map_err(|fault: tokio_postgres::Error| {
            // The text is not repeated, for its password's sake.
            let why = std::error::Error::source(&fault).map_or_else(|| fault.to_string(), ToString::to_string);
            Error::invalid("database", "postgres://…", format!("is no URL of a PostgreSQL database: {why}"))
        })?;
        Ok(Self { config })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".into(),
        };
        let port = self.config.get_ports().first().map(|port| format!(":{port}")).unwrap_or_default();
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        write!(f, "postgres://{host}{port}/{database}")
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_keeps_its_password_to_itself() {
        let url: Url = "postgres://me:secret@db.example:5433/shop".parse().unwrap();
        assert_eq!(url.to_string(), "postgres://db.example:5433/shop");
        assert!(!format!("{url:?}").contains("secret"));
        let fault = "postgres://me:secret@db.example:no/shop".parse::<Url>().unwrap_err().to_string();
        assert!(fault.contains("no URL") && !fault.contains("secret"), "{fault}");
    }
}
