//! A MariaDB server to throw away: started from the installed binaries, in a folder of its own, and gone with the test.

#![expect(clippy::disallowed_methods, reason = "a process that starts or stops tells nobody when it is ready")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, Row, from_value_opt};

use crate::postgres::{free_port, in_memory, is_root, next};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_mins(1);
/// A server for tests is small. What is committed survives the server, and need not survive the machine.
const SETTINGS: [&str; 8] = [
    "bind-address=127.0.0.1",
    "skip-name-resolve",
    "performance-schema=OFF",
    "innodb-buffer-pool-size=64M",
    "innodb-log-file-size=16M",
    "innodb-flush-log-at-trx-commit=2",
    "max-connections=300",
    "skip-log-bin",
];

/// A running server, or one that a test has stopped.
///
/// A shell of its own watches it: when the test's process is gone, however it went, the server is stopped and its folder
/// removed.
#[derive(Debug)]
pub struct Server {
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
    watched: Mutex<Option<(Child, ChildStdin)>>,
}

impl Server {
    /// The server that the tests of this process share: that of the environment's `ACTA_TEST_MYSQL`, else one of its own.
    pub fn shared_url() -> &'static str {
        static URL: OnceLock<String> = OnceLock::new();
        static SERVER: OnceLock<Server> = OnceLock::new();
        URL.get_or_init(|| match std::env::var("ACTA_TEST_MYSQL") {
            Ok(url) => url,
            Err(_) => SERVER.get_or_init(|| Self::start(&[])).url("mysql"),
        })
    }

    /// Starts a server with these settings, each `name=value`, over its defaults.
    pub fn start(settings: &[&str]) -> Self {
        Self::start_beside(settings, &[])
    }

    /// The same with files of these names in its folder, for settings that name them.
    pub fn start_beside(settings: &[&str], files: &[(&str, &str)]) -> Self {
        let folder = in_memory().join(format!("acta-mariadb-{}-{}", std::process::id(), next()));
        fs::create_dir_all(&folder).unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()));
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        }
        let settings =
            settings.iter().map(|setting| setting.replace("{folder}", &folder.display().to_string())).collect();
        let server = Self { folder, port: free_port(), settings, watched: Mutex::new(None) };
        if is_root() {
            let owned = Command::new("chown").arg("-R").arg(user()).arg(&server.folder).status();
            assert!(owned.is_ok_and(|status| status.success()), "chown {}", server.folder.display());
        }
        let made = not_root(&program("mariadb-install-db"))
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(format!("--datadir={}", server.data().display()))
            // Two at once would meet in the usual one.
            .env("TMPDIR", &server.folder)
            .output();
        let made = made.unwrap_or_else(|fault| panic!("mariadb-install-db: {fault}"));
        assert!(made.status.success(), "mariadb-install-db: {}", String::from_utf8_lossy(&made.stderr));
        server.resume();
        server
    }

    /// The URL of a database of this server.
    pub fn url(&self, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{}/{database}", self.port)
    }

    /// Starts it again after a stop; returns when it takes connections.
    pub fn resume(&self) {
        let script = r#""$@" & cat > /dev/null; [ -f "$ACTA_FOLDER/pid" ] && kill -KILL "$(cat "$ACTA_FOLDER/pid")"; wait; [ -f "$ACTA_FOLDER/keep" ] || rm -rf "$ACTA_FOLDER""#;
        let _ = fs::remove_file(self.folder.join("keep"));
        let server = not_root(&program("mariadbd"));
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(server.get_program()).args(server.get_args());
        shell
            .arg("--no-defaults")
            .arg(format!("--datadir={}", self.data().display()))
            .arg(format!("--port={}", self.port));
        for (setting, name) in [("socket", "socket"), ("pid-file", "pid"), ("log-error", "log.err")] {
            shell.arg(format!("--{setting}={}", self.folder.join(name).display()));
        }
        shell.args(SETTINGS.iter().map(|setting| format!("--{setting}")));
        shell.args(self.settings.iter().map(|setting| format!("--{setting}")));
        let mut child = shell
            .env("ACTA_FOLDER", &self.folder)
            .env("TMPDIR", &self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|fault| panic!("sh: {fault}"));
        let stdin = child.stdin.take().unwrap_or_else(|| panic!("sh has no stdin"));
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = Some((child, stdin));
        let began = Instant::now();
        while let Err(fault) = sql(&self.url("mysql"), "SELECT 1") {
            let log = || fs::read_to_string(self.folder.join("log.err")).unwrap_or_default();
            assert!(began.elapsed() < PATIENCE, "the server does not start: {fault}\n{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops it as if it had crashed; returns when it is gone.
    pub fn kill(&self) {
        let _ = fs::write(self.folder.join("keep"), "");
        // The shell does it when nobody holds its pipe any more.
        if let Some((mut child, stdin)) = self.watched.lock().unwrap_or_else(PoisonError::into_inner).take() {
            drop(stdin);
            let _ = child.wait();
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A database that is dropped with this value.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// A new database of the server whose URL, of any of its databases, is given.
    pub fn new(server: &str) -> Self {
        let name = format!("acta_{}_{}", std::process::id(), next());
        sql(server, &format!("CREATE DATABASE {name}")).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        Self { server: server.to_owned(), name }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        let base = self.server.rsplit_once('/').map_or(self.server.as_str(), |(base, _)| base);
        format!("{base}/{}", self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = sql(&self.server, &format!("DROP DATABASE IF EXISTS {}", self.name));
    }
}

/// Runs a script on a connection of its own; the first column of its rows, as text.
pub fn sql(url: &str, script: &str) -> Result<Vec<String>, String> {
    let (url, script) = (url.to_owned(), script.to_owned());
    // On a thread of its own: the caller may be on a runtime already.
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|fault| fault.to_string())?.block_on(async {
            let opts = Opts::from_url(&format!("{url}?prefer_socket=false")).map_err(|fault| fault.to_string())?;
            let mut conn = Conn::new(opts).await.map_err(|fault| fault.to_string())?;
            let mut answer = conn.query_iter(script).await.map_err(|fault| fault.to_string())?;
            let mut all = Vec::new();
            while !answer.is_empty() {
                let rows: Vec<Row> = answer.collect().await.map_err(|fault| fault.to_string())?;
                all.extend(rows.into_iter().map(first));
            }
            drop(answer);
            let _ = conn.disconnect().await;
            Ok(all)
        })
    };
    std::thread::spawn(run).join().unwrap_or_else(|_| Err("the thread panicked".into()))
}

fn first(row: Row) -> String {
    let value = row.unwrap().swap_remove(0);
    from_value_opt(value).unwrap_or_default()
}

/// One of the server's programs: MySQL's own names for them are left out, which may be another product.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders =
        std::env::split_paths(&path).chain(["/usr/sbin", "/usr/libexec", "/usr/local/sbin"].map(PathBuf::from));
    let found = folders.find_map(|folder| Some(folder.join(name)).filter(|program| program.exists()));
    found.unwrap_or_else(|| panic!("{name} is missing: on Debian: apt-get install mariadb-server"))
}

/// MariaDB refuses to run as root: then it runs as the user that Debian's packages make, or as nobody.
fn not_root(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={}", user()), "--clear-groups".into(), "--".into()]).arg(program);
    command
}

fn user() -> &'static str {
    let exists = Command::new("id").args(["-u", "mysql"]).output().is_ok_and(|said| said.status.success());
    if exists { "mysql" } else { "nobody" }
}
