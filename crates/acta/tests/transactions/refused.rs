//! Connections and ledgers that don't belong together are told so.

use acta::Ledger;
use acta_core::store::Mark;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::shop::{Place, Shop, on_postgres, on_sqlite};
use super::{jobs, postgres, ship, sqlite};

#[test]
fn another_file_is_not_the_ledger() {
    on_sqlite(async |place: Place| {
        let ledger = place.ledger().await;
        // Another ledger, at that: its tables are all there.
        let other = Ledger::open(&format!("sqlite:{}", place.file("other.db").display())).await.unwrap();
        for file in [place.file("other.db"), place.file("none.db"), ":memory:".into()] {
            let connection = Connection::open(&file).unwrap();
            let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate).unwrap();
            let fault = ledger.blocking_enqueue_in(&transaction, &ship("ada", 1)).unwrap_err();
            let told = fault.to_string();
            assert!(fault.is_invalid() && told.contains("is not the ledger's file"), "{}: {told}", file.display());
            transaction.commit().unwrap();
        }
        assert_eq!((jobs(&ledger).await, jobs(&other).await), (0, 0));
        // The same file by another name is.
        std::os::unix::fs::symlink(place.file("acta.db"), place.file("link.db")).unwrap();
        let connection = Connection::open(place.file("link.db")).unwrap();
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate).unwrap();
        assert!(ledger.blocking_enqueue_in(&transaction, &ship("ada", 1)).unwrap().0.created);
    });
}

#[test]
fn a_database_of_another_kind_is_told() {
    on_postgres(async |place: Place| {
        let files = Place::sqlite();
        let (in_file, in_database) = (files.ledger().await, place.ledger().await);
        let (mut file, mut database) = (sqlite::Sqlx::open(&files).await, postgres::Sqlx::open(&place).await);
        let mut sync = sqlite::Rusqlite::open(&files).await;
        file.begin().await;
        let mut faults = vec![file.enqueue(&in_database, &ship("ada", 1)).await.unwrap_err()];
        file.rollback().await;
        sync.begin().await;
        faults.push(sync.enqueue(&in_database, &ship("ada", 1)).await.unwrap_err());
        sync.rollback().await;
        database.begin().await;
        faults.push(database.enqueue(&in_file, &ship("ada", 1)).await.unwrap_err());
        for fault in faults {
            assert!(fault.is_invalid() && fault.to_string().contains("something else"), "{fault}");
        }
    });
}

#[test]
fn files_and_stores_of_the_application_s_own_have_no_transaction() {
    on_sqlite(async |place: Place| {
        let _here = place.ledger().await;
        let mut shop = sqlite::Sqlx::open(&place).await;
        let in_files = Ledger::open(&format!("file:{}", place.file("root").display())).await.unwrap();
        shop.begin().await;
        let fault = shop.enqueue(&in_files, &ship("ada", 1)).await.unwrap_err();
        assert!(fault.is_invalid() && fault.to_string().contains("no transaction"), "{fault}");
        let fault = shop.enqueue(acta::testing::TestLedger::new().ledger(), &ship("ada", 1)).await.unwrap_err();
        assert!(fault.is_invalid() && fault.to_string().contains("open it by its address"), "{fault}");
    });
}

#[test]
fn a_database_without_a_ledger_is_told_and_where_the_ledger_is() {
    on_postgres(async |place: Place| {
        let ledger = place.ledger().await;
        let empty = Place::postgres();
        let (mut one, mut other) = (postgres::Sqlx::open(&empty).await, postgres::Tokio::open(&empty).await);
        one.begin().await;
        other.begin().await;
        for fault in [
            one.enqueue(&ledger, &ship("ada", 1)).await.unwrap_err(),
            other.enqueue(&ledger, &ship("ada", 1)).await.unwrap_err(),
        ] {
            let told = fault.to_string();
            assert!(told.contains(r#"schema "acta" does not exist"#), "{told}");
            let ledger = place.url.rsplit('/').next().unwrap();
            assert!(told.contains(ledger) && told.contains("orchestrator migrate"), "{told}");
        }
    });
}

/// A copied ledger takes no writes, by whatever way.
#[test]
fn a_closed_ledger_says_so() {
    on_postgres(async |place: Place| {
        let files = Place::sqlite();
        for ledger in [place.ledger().await, files.ledger().await] {
            ledger.define::<super::Ship>().await.unwrap();
            ledger.store().mark(Mark::Leaving { to: "elsewhere".into() }).await.unwrap();
        }
        let (ledger, database) = (files.ledger().await, place.ledger().await);
        for fault in [
            refusal(&mut sqlite::Sqlx::open(&files).await, &ledger).await,
            refusal(&mut sqlite::Rusqlite::open(&files).await, &ledger).await,
            refusal(&mut postgres::Sqlx::open(&place).await, &database).await,
            refusal(&mut postgres::Tokio::open(&place).await, &database).await,
        ] {
            assert!(fault.is_closed() && fault.to_string().contains("elsewhere"), "{fault}");
        }
    });
}

async fn refusal(shop: &mut impl Shop, ledger: &Ledger) -> acta::Error {
    shop.begin().await;
    let fault = shop.enqueue(ledger, &ship("ada", 1)).await.unwrap_err();
    shop.rollback().await;
    fault
}

#[test]
fn a_stricter_isolation_is_refused() {
    on_postgres(async |place: Place| {
        let (ledger, shop) = (place.ledger().await, postgres::Sqlx::open(&place).await);
        let mut transaction = shop.pool.begin_with("BEGIN ISOLATION LEVEL SERIALIZABLE").await.unwrap();
        let fault = ledger.enqueue_in(&mut *transaction, &ship("ada", 1)).await.unwrap_err();
        assert!(fault.to_string().contains("READ COMMITTED"), "{fault}");
    });
}
