//! The URL of a database, which may hold a password.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use acta_core::{Error, Result};
use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls::Tls;

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
    tls: Tls,
}

impl Url {
    /// How connections are opened. What the URL does not say is so that a server or a network which went away without a word is
    /// noticed while leases last.
    pub(super) fn config(&self) -> Config {
        let mut config = self.config.clone();
        config.ssl_mode(self.tls.mode);
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

impl Url {
    /// What opens connections as the URL says.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect> {
        self.tls.connector()
    }
}

/// A URL without the options by these names, and their values.
fn taken<const N: usize>(text: &str, names: [&str; N]) -> (String, [Option<String>; N]) {
    let mut values = [const { None }; N];
    let Some((base, query)) = text.split_once('?') else { return (text.to_owned(), values) };
    let mut rest = Vec::new();
    for option in query.split('&') {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match names.iter().position(|known| *known == name) {
            Some(index) => values[index] = Some(percent_decode_str(value).decode_utf8_lossy().into_owned()),
            None => rest.push(option),
        }
    }
    let rest = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
    (rest, values)
}

impl FromStr for Url {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (rest, [mode, roots]) = taken(text, ["sslmode", "sslrootcert"]);
        let tls = Tls::new(mode.as_deref(), roots.as_deref())?;
        let config = rest.parse().map_err(|fault: tokio_postgres::Error| {
            // The text is not repeated, for its password's sake.
            let why = std::error::Error::source(&fault).map_or_else(|| fault.to_string(), ToString::to_string);
            Error::invalid("database", "postgres://…", format!("is no URL of a PostgreSQL database: {why}"))
        })?;
        Ok(Self { config, tls })
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
    fn a_url_says_whom_to_trust() {
        let tls = |text: &str| text.parse::<Url>().map(|url| url.tls);
        let of = |mode, roots| Ok(Tls::new(mode, roots).unwrap());
        assert_eq!(tls("postgres://db.example/shop"), of(Some("prefer"), None));
        let full = "postgres://db.example/shop?sslrootcert=%2Fetc%2Four%20ca.pem&connect_timeout=3&sslmode=verify-full";
        assert_eq!(tls(full), of(Some("verify-full"), Some("/etc/our ca.pem")));
        assert_eq!(full.parse::<Url>().unwrap().config().get_connect_timeout(), Some(&Duration::from_secs(3)));
        let fault = tls("postgres://me:secret@db.example/shop?sslmode=verify").unwrap_err().to_string();
        assert!(fault.contains("verify-full") && !fault.contains("secret"), "{fault}");
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
