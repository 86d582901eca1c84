//! The URL of a database, which may hold a password.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use acta_core::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the other end may leave what was sent unacknowledged before the connection counts as lost.
const SILENCE: Duration = Duration::from_secs(30);
/// What the driver has where the URL says nothing of keepalives.
const NEVER_SAID: Duration = Duration::from_hours(2);

/// Where a database is, like `postgres://user:password@host:port/database`. Shown, it keeps its password to itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    config: Config,
}

impl Url {
    /// How connections are opened. What the URL does not say is so that a server or a network which went away without a word is
    /// noticed while leases last.
    pub(super) fn config(&self) -> Config {
        let mut config = self.config.clone();
        if config.get_application_name().is_none() {
            config.application_name("acta");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        if config.get_keepalives_idle() == NEVER_SAID {
            config.keepalives_idle(SILENCE / 2).keepalives_interval(SILENCE / 6).keepalives_retries(3);
        }
        config
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
    fn a_silent_network_is_noticed_unless_the_url_says_how_long_to_wait() {
        let config = |text: &str| text.parse::<Url>().unwrap().config();
        let silent = config("postgres://db.example/shop");
        assert_eq!(silent.get_tcp_user_timeout(), Some(&SILENCE));
        assert_eq!(silent.get_keepalives_idle(), SILENCE / 2);
        let patient = config("postgres://db.example/shop?tcp_user_timeout=90&keepalives_idle=60");
        assert_eq!(patient.get_tcp_user_timeout(), Some(&Duration::from_secs(90)));
        assert_eq!(patient.get_keepalives_idle(), Duration::from_mins(1));
    }

    #[test]
    fn a_url_keeps_its_password_to_itself() {
        let url: Url = "postgres://me:secret@db.example:5433/shop".parse().unwrap();
        assert_eq!(url.to_string(), "postgres://db.example:5433/shop");
        assert!(!format!("{url:?}").contains("secret"));
        let fault = "postgres://me:secret@db.example:no/shop".parse::<Url>().unwrap_err().to_string();
        assert!(fault.contains("no URL") && !fault.contains("secret"), "{fault}");
    }
}
