//! A PostgreSQL server to throw away: started from the installed binaries, in a folder of its own, and gone with the test.

#![expect(clippy::disallowed_methods, reason = "a process that starts or stops tells nobody when it is ready")]

use std::fs::{self, Permissions};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio_postgres::NoTls;

/// The oldest version that is supported.
const OLDEST: u32 = 14;
/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running server, or one that a test has stopped.
///
/// A shell of its own watches it: when the test's process is gone, however it went, the server is stopped and its folder
/// removed.
#[derive(Debug)]
pub struct Server {
    folder: PathBuf,
    binaries: PathBuf,
    port: u16,
    settings: Vec<String>,
    watched: Mutex<Option<(Child, ChildStdin)>>,
}

/// Which way a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// In order: sessions are ended, all is written.
    Fast,
    /// As if it had crashed.
    Immediate,
}

impl Server {
    /// The server that the tests of this process share: that of the environment's `ACTA_TEST_POSTGRES`, else one of its own.
    /// It lives in memory where that can be had: what a process leaves behind when it dies is there all the same.
    pub fn shared_url() -> &'static str {
        static URL: OnceLock<String> = OnceLock::new();
        static SERVER: OnceLock<Server> = OnceLock::new();
        URL.get_or_init(|| match std::env::var("ACTA_TEST_POSTGRES") {
            Ok(url) => url,
            Err(_) => SERVER.get_or_init(|| Self::start_in(&in_memory(), &["max_connections=300"])).url("postgres"),
        })
    }

    /// Starts a server with these settings, each `name=value`, over its defaults.
    pub fn start(settings: &[&str]) -> Self {
        Self::start_in(&std::env::temp_dir(), settings)
    }

    /// The same with a certificate and its key, both in PEM form: it takes encrypted connections.
    pub fn start_encrypted(certificate: &str, key: &str) -> Self {
        let settings = ["ssl=on", "ssl_cert_file=../server.crt", "ssl_key_file=../server.key"];
        Self::start_with(&std::env::temp_dir(), &settings, &[("server.crt", certificate), ("server.key", key)])
    }

    fn start_in(parent: &Path, settings: &[&str]) -> Self {
        Self::start_with(parent, settings, &[])
    }

    /// Starts it beside files of its own, which are nobody else's to read.
    fn start_with(parent: &Path, settings: &[&str], files: &[(&str, &str)]) -> Self {
        let binaries = binaries().unwrap_or_else(|why| panic!("no PostgreSQL: {why}"));
        let folder = parent.join(format!("acta-postgres-{}-{}", std::process::id(), next()));
        fs::create_dir_all(&folder).unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()));
        let server = Self {
            folder,
            binaries,
            port: free_port(),
            settings: settings.iter().map(ToString::to_string).collect(),
            watched: Mutex::new(None),
        };
        for (name, text) in files {
            let path = server.folder.join(name);
            let written =
                fs::write(&path, text).and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o600)));
            written.unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        }
        server.own();
        let made = server
            .command("initdb")
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(server.data())
            .output();
        let made = made.unwrap_or_else(|fault| panic!("initdb: {fault}"));
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        server.resume();
        server
    }

    /// The URL of a database of this server.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts it again after a stop; returns when it takes connections.
    pub fn resume(&self) {
        let script = r#""$@" & cat > /dev/null; [ -f "$ACTA_DATA/postmaster.pid" ] && kill -QUIT "$(head -n 1 "$ACTA_DATA/postmaster.pid")"; wait; [ -n "$(ls "$ACTA_FOLDER/keep" 2> /dev/null)" ] || rm -rf "$ACTA_FOLDER""#;
        let postgres = self.command("postgres");
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(postgres.get_program()).args(postgres.get_args());
        shell.arg("-D").arg(self.data());
        let fixed = [
            format!("port={}", self.port),
            "listen_addresses=127.0.0.1".into(),
            format!("unix_socket_directories={}", self.folder.display()),
        ];
        for setting in fixed.iter().chain(&self.settings) {
            shell.args(["-c", setting]);
        }
        shell.env("ACTA_DATA", self.data()).env("ACTA_FOLDER", &self.folder);
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder.join("log"));
        let log = log.unwrap_or_else(|fault| panic!("{}: {fault}", self.folder.display()));
        let mut child = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|fault| panic!("sh: {fault}"));
        let stdin = child.stdin.take().unwrap_or_else(|| panic!("sh has no stdin"));
        *self.watched.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((child, stdin));
        self.wait();
    }

    /// Stops it; returns when it is gone.
    pub fn stop(&self, how: Stop) {
        let pid = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let Some(pid) = pid.lines().next() else { return };
        let signal = match how {
            Stop::Fast => "-INT",
            Stop::Immediate => "-QUIT",
        };
        let _ = Command::new("kill").args([signal, pid]).status();
        let began = Instant::now();
        while self.data().join("postmaster.pid").exists() && Path::new("/proc").join(pid).exists() {
            assert!(began.elapsed() < PATIENCE, "the server does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
        // The shell still waits for its own end, which comes with the next line or with this process.
        let keep = self.folder.join("keep");
        let _ = fs::create_dir_all(&keep).and_then(|()| fs::write(keep.join("it"), ""));
        let watched = self.watched.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some((mut child, stdin)) = watched {
            drop(stdin);
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(keep);
    }

    fn wait(&self) {
        let began = Instant::now();
        while let Err(fault) = sql(&self.url("postgres"), "SELECT 1") {
            if began.elapsed() > PATIENCE {
                let mut log = String::new();
                let _ = fs::File::open(self.folder.join("log")).and_then(|mut file| file.read_to_string(&mut log));
                panic!("the server does not start: {fault}\n{log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn command(&self, program: &str) -> Command {
        not_root(&self.binaries.join(program))
    }

    fn own(&self) {
        if is_root() {
            let owned = Command::new("chown").arg("-R").arg(user()).arg(&self.folder).status();
            assert!(owned.is_ok_and(|status| status.success()), "chown {}", self.folder.display());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(Stop::Immediate);
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
    /// A new database of the server whose URL, of any of its databases, is given: a copy of `template`, or an empty one.
    pub fn new(server: &str, template: Option<&Self>) -> Self {
        let name = format!("acta_{}_{}", std::process::id(), next());
        let template = template.map_or("template0", |template| &template.name);
        let create = format!("CREATE DATABASE {name} TEMPLATE {template}");
        let began = Instant::now();
        // Somebody's last connection to the template may be on its way out.
        while let Err(fault) = sql(server, &create) {
            assert!(began.elapsed() < PATIENCE, "{create}: {fault}");
            std::thread::sleep(Duration::from_millis(10));
        }
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
        let _ = sql(&self.server, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

/// Runs a script on a connection of its own; the first column of its rows, as text.
pub fn sql(url: &str, script: &str) -> Result<Vec<String>, String> {
    let (url, script) = (url.to_owned(), script.to_owned());
    // On a thread of its own: the caller may be on a runtime already.
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|fault| fault.to_string())?.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.map_err(|fault| told(&fault))?;
            let driven = tokio::spawn(connection);
            let messages = client.simple_query(&script).await.map_err(|fault| told(&fault))?;
            drop(client);
            let _ = driven.await;
            let first = |message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
                _ => None,
            };
            Ok(messages.into_iter().filter_map(first).collect())
        })
    };
    std::thread::spawn(run).join().unwrap_or_else(|_| Err("the thread panicked".into()))
}

fn told(fault: &tokio_postgres::Error) -> String {
    fault.as_db_error().map_or_else(|| fault.to_string(), |said| said.message().to_owned())
}

/// One of PostgreSQL's programs, like `psql`.
pub fn program(name: &str) -> PathBuf {
    binaries().unwrap_or_else(|why| panic!("no PostgreSQL: {why}")).join(name)
}

/// A program that refuses to run as root, as PostgreSQL's do: then it runs as the user that Debian's packages make, or as
/// nobody.
pub fn not_root(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={}", user()), "--clear-groups".into(), "--".into()]).arg(program);
    command
}

/// A port on 127.0.0.1 that nobody has.
pub fn free_port() -> u16 {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).map(|address| address.port());
    port.unwrap_or_else(|fault| panic!("no free port: {fault}"))
}

/// A folder that is no disk, if there is one with room.
pub(crate) fn in_memory() -> PathBuf {
    let shared = Path::new("/dev/shm");
    let free = Command::new("df").args(["--output=avail", "-k"]).arg(shared).output();
    let free = free.ok().and_then(|said| String::from_utf8_lossy(&said.stdout).lines().nth(1)?.trim().parse().ok());
    if free.is_some_and(|kilobytes: u64| kilobytes > 2_000_000) { shared.into() } else { std::env::temp_dir() }
}

pub(crate) fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn is_root() -> bool {
    let said = Command::new("id").arg("-u").output();
    said.is_ok_and(|said| said.stdout.trim_ascii() == b"0")
}

fn user() -> &'static str {
    let exists = Command::new("id").args(["-u", "postgres"]).output().is_ok_and(|said| said.status.success());
    if exists { "postgres" } else { "nobody" }
}

/// Where the server's programs are: the newest version of Debian's packages, or what is in the path.
fn binaries() -> Result<PathBuf, String> {
    let mut versions: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten() {
        let version = entry.file_name().to_string_lossy().parse().unwrap_or(0);
        let folder = entry.path().join("bin");
        if version >= OLDEST && folder.join("initdb").exists() && folder.join("postgres").exists() {
            versions.push((version, folder));
        }
    }
    if let Some((_, folder)) = versions.into_iter().max() {
        return Ok(folder);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).find(|folder| folder.join("initdb").exists());
    found.ok_or_else(|| format!("install version {OLDEST} or later; on Debian: apt-get install postgresql"))
}
