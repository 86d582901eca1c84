//! Connections to a PostgreSQL server that can be encrypted, and what the URL says of them.

use acta_core::store::QueueFilter;
use acta_core::{Error, Store};
use acta_store::{PostgresStore, postgres};
use acta_testkit::postgres::{Database, Server, sql};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// A server, and in PEM form whoever has signed its certificate, which is for `localhost` alone.
fn encrypted() -> (Server, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    (Server::start_encrypted(&certificate.pem(), &key.serialize_pem()), authority.pem())
}

async fn try_open(url: &str) -> Result<PostgresStore, Error> {
    let store = PostgresStore::new(&url.parse()?, postgres::Options::default())?;
    store.create_or_accept().await?;
    store.queues(QueueFilter::default()).await?;
    Ok(store)
}

/// Whether the connections of this name are encrypted: all of them are, or none.
fn is_encrypted(server: &Server, name: &str) -> bool {
    let count = format!(
        "SELECT DISTINCT s.ssl FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) WHERE a.application_name = '{name}'"
    );
    sql(&server.url("postgres"), &count).unwrap() == ["t"]
}

#[test]
fn a_connection_is_as_the_url_says_and_trusts_whom_it_says() {
    let (server, authority) = encrypted();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (ours, nothing) = (write("ours.pem", &authority), write("nothing.pem", "no certificate"));
    let another = write("another.pem", &{
        let key = KeyPair::generate().unwrap();
        CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap().pem()
    });
    let by_name = server.url("postgres").replace("127.0.0.1", "localhost");
    let by_number = server.url("postgres");
    acta_testkit::block_on(async {
        for (options, expected) in [
            ("", true),
            ("&sslmode=prefer", true),
            ("&sslmode=require", true),
            ("&sslmode=disable", false),
            (&format!("&sslmode=verify-full&sslrootcert={ours}"), true),
            (&format!("&sslmode=require&sslrootcert={ours}"), true),
        ] {
            let name = format!("case {}", options.len());
            let store = try_open(&format!("{by_name}?application_name={}{options}", name.replace(' ', "%20"))).await;
            assert_eq!(is_encrypted(&server, &name), expected, "{options}");
            drop(store.unwrap());
        }
        for (url, expected) in [
            // Nobody whom the system trusts has signed it.
            (format!("{by_name}?sslmode=verify-full"), "certificate"),
            (format!("{by_name}?sslmode=verify-full&sslrootcert={another}"), "certificate"),
            (format!("{by_name}?sslmode=require&sslrootcert={another}"), "certificate"),
            // It is not in this name.
            (format!("{by_number}?sslmode=verify-full&sslrootcert={ours}"), "certificate"),
            (format!("{by_name}?sslmode=verify-full&sslrootcert={nothing}"), "holds no certificate"),
            (format!("{by_name}?sslmode=verify-full&sslrootcert={nothing}.not"), "nothing.pem.not"),
            (format!("{by_name}?sslmode=allow"), "is none of"),
        ] {
            let fault = try_open(&url).await.unwrap_err().to_string();
            assert!(fault.contains(expected), "{url}: {fault}");
        }
    });
}

#[test]
fn who_wants_encryption_gets_none_less() {
    let database = Database::new(Server::shared_url(), None);
    acta_testkit::block_on(async {
        // The tests' server has no certificate.
        try_open(&database.url()).await.unwrap();
        let fault = try_open(&format!("{}?sslmode=require", database.url())).await.unwrap_err().to_string();
        assert!(fault.contains("TLS"), "{fault}");
    });
}
