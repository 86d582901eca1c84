//! What an outbox in MariaDB costs its server, and how it is reached.

use std::sync::Arc;

use acta_core::Span;
use acta_core::relay::{Look, Reason, Source};
use acta_store::outbox::{Dialect, TableName, open};
use acta_testkit::mariadb::{Database, Server, sql};

const HOLD: Span = Span::of(std::time::Duration::from_secs(30));

fn shop(server: &Server) -> (Database, Arc<dyn Source>) {
    let shop = Database::new(&server.url("mysql"));
    sql(&shop.url(), &Dialect::Mysql.ddl(&TableName::default())).unwrap();
    let source = open(&shop.url(), &TableName::default()).unwrap();
    (shop, source)
}

/// How many rows and entries of indexes the server has looked at so far.
fn looks(shop: &Database) -> u64 {
    let all = "SELECT CAST(sum(variable_value) AS CHAR) FROM information_schema.global_status WHERE variable_name LIKE 'HANDLER_READ%'";
    let told = sql(&shop.url(), all).unwrap().remove(0);
    told.split('.').next().unwrap().parse().unwrap()
}

/// Rows that can't go cost those that can next to nothing, however many they are.
#[tokio::test]
async fn rows_that_stay_are_not_looked_at() {
    let server = Server::start(&[]);
    let (shop, source) = shop(&server);
    let many = |columns: &str, values: &str, count: u32| {
        format!(
            "INSERT INTO acta_outbox (namespace, payload, {columns}) SELECT 'plain', '1', {values} FROM seq_1_to_{count};"
        )
    };
    let script = [
        // A head that waits for its next try, and a long line behind it; and rows in quarantine, in as many lanes.
        many("lane, status, until_ms", "'stuck', 1, 99999999999999", 1),
        many("lane, status", "'stuck', 2", 60_000),
        many("lane, status, quarantined_ms", "concat('lane ', seq % 20000), 3, 1", 60_000),
        many("lane", "concat('lane ', seq % 40)", 200),
        many("lane", "'stuck'", 1),
        "ANALYZE TABLE acta_outbox".into(),
    ];
    sql(&shop.url(), &script.concat()).unwrap();
    // It finds its lanes to sweep, too.
    let before = looks(&shop);
    let Look { rows, .. } = source.look(100, &[]).await.unwrap();
    assert_eq!(rows.len(), 100);
    assert_eq!(source.remove(&rows).await.unwrap(), 100);
    let used = looks(&shop) - before;
    assert!(used < 6_000, "a look at {used} rows for 100");
    // The rest, with the last of the long line.
    let before = looks(&shop);
    let look = source.look(900, &[]).await.unwrap();
    assert_eq!(look.rows.len(), 100);
    let used = looks(&shop) - before;
    assert!(used < 6_000, "a look at {used} rows for 100");
    let parked = sql(&shop.url(), "SELECT count(*) FROM acta_outbox WHERE status = 2").unwrap();
    assert_eq!(parked, ["60001"]);
}

/// No sweep is waited for.
#[tokio::test]
async fn what_stands_behind_a_row_comes_when_it_goes() {
    let shop = Database::new(Server::shared_url());
    sql(&shop.url(), &Dialect::Mysql.ddl(&TableName::default())).unwrap();
    let rows = "('plain', '1', 'a'), ('plain', '2', 'a'), ('plain', '3', 'a')";
    sql(&shop.url(), &format!("INSERT INTO acta_outbox (namespace, payload, lane) VALUES {rows}")).unwrap();
    let source = open(&shop.url(), &TableName::default()).unwrap();
    let rows = source.look(1, &[]).await.unwrap().rows;
    source.defer(&rows[0], &[2], Span::of(std::time::Duration::from_millis(300)), "no").await.unwrap();
    let (first, again) = (source.look(10, &[]).await.unwrap(), source.look(10, &[]).await.unwrap());
    assert!(first.rows.is_empty() && first.has_found && !again.has_found, "they are parked, and cost nothing then");
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    let head = source.look(10, &[]).await.unwrap().rows;
    assert_eq!((head.len(), head[0].id, head[0].has_behind), (1, 1, true));
    assert_eq!(source.remove(&head).await.unwrap(), 1);
    let standing = source.standing().await.unwrap();
    assert_eq!((standing.pending, standing.parked), (2, 0));
}

/// A row that the application has locked stays until it lets go, and nobody waits for that; what is put aside is waited for, for longer
/// than the server lets anybody wait.
#[tokio::test]
async fn a_row_that_the_application_has_locked_is_removed_later() {
    let server = Server::start(&[]);
    let (shop, source) = shop(&server);
    sql(&shop.url(), "INSERT INTO acta_outbox (namespace, payload) VALUES ('plain', '1'), ('plain', '2')").unwrap();
    let Look { rows, .. } = source.look(100, &[]).await.unwrap();
    let url = shop.url();
    let locked = std::thread::spawn(move || {
        sql(&url, "BEGIN; UPDATE acta_outbox SET options = '{}' WHERE id = 1; DO sleep(7); COMMIT").unwrap()
    });
    let sleeping = "SELECT count(*) FROM information_schema.processlist WHERE state = 'User sleep'";
    while sql(&shop.url(), sleeping).unwrap() != ["1"] {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(source.remove(&rows).await.unwrap(), 1);
    assert!(!locked.is_finished());
    source.quarantine(&rows[0], &Reason::Closed).await.unwrap();
    assert_eq!(sql(&shop.url(), "SELECT status FROM acta_outbox").unwrap(), ["3"]);
    assert!(locked.join().unwrap().is_empty());
}

/// One relay has an outbox, as long as it says so.
#[tokio::test]
async fn one_relay_has_an_outbox_to_itself() {
    let shop = Database::new(Server::shared_url());
    sql(&shop.url(), &Dialect::Mysql.ddl(&TableName::default())).unwrap();
    let source = open(&shop.url(), &TableName::default()).unwrap();
    let other = open(&shop.url(), &TableName::default()).unwrap();
    let short = Span::of(std::time::Duration::from_millis(300));
    let first = source.hold("first", short, false).await.unwrap().unwrap();
    assert!(first.now.since_ms(first.since) < 100);
    assert_eq!(other.hold("second", HOLD, false).await.unwrap(), None);
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    assert_eq!(other.hold("second", HOLD, true).await.unwrap().unwrap().since, first.since);
    let again = other.hold("second", HOLD, true).await.unwrap().unwrap();
    assert!(again.since > first.since, "all that had arrived is gone");
    assert_eq!(source.standing().await.unwrap().relay.unwrap().0, "second");
    other.let_go("second").await.unwrap();
    assert_eq!(source.hold("first", short, false).await.unwrap().unwrap().since, again.since);
}

/// What one look has in hand the next one leaves out; and a number that was given again is another row.
#[tokio::test]
async fn rows_in_hand_are_known_by_number_and_message() {
    let shop = Database::new(Server::shared_url());
    sql(&shop.url(), &Dialect::Mysql.ddl(&TableName::default())).unwrap();
    let source = open(&shop.url(), &TableName::default()).unwrap();
    let rows = vec!["('plain', '1')"; 50].join(", ");
    sql(&shop.url(), &format!("INSERT INTO acta_outbox (namespace, payload) VALUES {rows}")).unwrap();
    let first = source.look(20, &[]).await.unwrap().rows;
    let in_hand: Vec<i64> = first.iter().map(|row| row.id).filter(|id| *id != 7).collect();
    let second = source.look(20, &in_hand).await.unwrap().rows;
    let wanted: Vec<i64> = std::iter::once(7).chain(21..40).collect();
    assert_eq!(second.iter().map(|row| row.id).collect::<Vec<_>>(), wanted);
    sql(&shop.url(), "UPDATE acta_outbox SET message = 'another' WHERE id = 1").unwrap();
    assert_eq!(source.remove(&first).await.unwrap(), 19);
}

/// Each row has a message of its own, also where several are staged by one statement.
#[tokio::test]
async fn no_two_rows_have_the_same_message() {
    let shop = Database::new(Server::shared_url());
    sql(&shop.url(), &Dialect::Mysql.ddl(&TableName::new("our_outbox").unwrap())).unwrap();
    sql(
        &shop.url(),
        "INSERT INTO our_outbox (namespace, payload, lane) VALUES ('q', '1', 'a'), ('q', '1', 'A'), ('q', '1', 'a')",
    )
    .unwrap();
    let count =
        |what: &str| sql(&shop.url(), &format!("SELECT count(*) FROM our_outbox WHERE {what}")).unwrap().remove(0);
    assert_eq!(sql(&shop.url(), "SELECT count(DISTINCT message) FROM our_outbox").unwrap(), ["3"]);
    assert_eq!((count("lane = 'a'"), count("lane = 'A'")), ("2".into(), "1".into()), "case counts");
    for wrong in ["namespace = ''", "lane = ''", "status = 4", "status = 1", "until_ms = 1"] {
        assert!(sql(&shop.url(), &format!("UPDATE our_outbox SET {wrong}")).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn a_connection_is_encrypted_where_the_address_says_so() {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let settings = ["ssl-cert={folder}/server.crt", "ssl-key={folder}/server.key"];
    let files = [("server.crt", &*signed.cert.pem()), ("server.key", &*signed.signing_key.serialize_pem())];
    let server = Server::start_beside(&settings, &files);
    let (shop, _) = shop(&server);
    sql(&shop.url(), "CREATE USER shop@'%' IDENTIFIED BY 'secret' REQUIRE SSL; GRANT ALL ON *.* TO shop@'%'").unwrap();
    let address = shop.url().replace("mysql://root@127.0.0.1", "mariadb://shop:secret@localhost");
    let id = async |options: &str| open(&format!("{address}{options}"), &TableName::default()).unwrap().id().await;
    assert_eq!(id("?require_ssl=true&verify_ca=false").await.unwrap().len(), 36);
    let unknown = id("?require_ssl=true").await.unwrap_err().to_string();
    assert!(unknown.contains("ertificate") && !unknown.contains("secret"), "{unknown}");
    let plain = id("").await.unwrap_err().to_string();
    assert!(plain.contains("Access denied") && !plain.contains("secret"), "{plain}");
}

#[test]
fn what_is_no_address_is_told_without_its_password() {
    for address in
        ["mysql://shop:secret@host", "mysql://shop:secret@host:port/db", "mariadb://shop:secret@h/db?colour=1"]
    {
        let told = open(address, &TableName::default()).unwrap_err().to_string();
        assert!(!told.contains("secret"), "{told}");
    }
}
