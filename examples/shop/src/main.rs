//! A shop that invoices its orders: of each customer one after the other, of different customers at once.

use acta::{Context, Enqueued, Job, JobError, Ledger, Wake, Worker};
use rusqlite::{Connection, TransactionBehavior};
use serde::{Deserialize, Serialize};

/// The shop's database, in which the ledger is, too.
const FILE: &str = ".orchestrator/acta.db";

/// Make out an invoice for an order.
#[derive(Serialize, Deserialize)]
struct Invoice {
    customer: String,
    order: u32,
    cents: u64,
}

impl Job for Invoice {
    const NAME: &'static str = "invoice";
    const QUEUE: &'static str = "shop";
    const MAX_ATTEMPTS: Option<u32> = Some(5);

    fn lane(&self) -> Option<String> {
        Some(self.customer.clone())
    }

    fn dedup_key(&self) -> Option<String> {
        Some(format!("order-{}", self.order))
    }
}

/// Makes out an invoice; its number is the job's output.
async fn invoice(invoice: Invoice, context: Context) -> Result<String, JobError> {
    if invoice.cents == 0 {
        return Err(JobError::business("nothing-to-pay", format!("order {} is for free", invoice.order)));
    }
    let number: String = context.step("number", async || Ok(format!("2026-{:04}", invoice.order))).await?;
    println!("invoice {number} for {}: {}.{:02}", invoice.customer, invoice.cents / 100, invoice.cents % 100);
    Ok(number)
}

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Takes an order: its row and the job of its invoice, both or neither.
fn take(shop: &mut Connection, ledger: &Ledger, invoice: &Invoice) -> Result<(Enqueued, Wake)> {
    let transaction = shop.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "INSERT INTO orders (number, customer) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        (invoice.order, &invoice.customer),
    )?;
    let enqueued = ledger.blocking_enqueue_in(&transaction, invoice)?;
    transaction.commit()?;
    Ok(enqueued)
}

#[tokio::main]
async fn main() -> Result<()> {
    let ledger = Ledger::open(&format!("sqlite:{FILE}")).await?;
    if std::env::args().nth(1).as_deref() == Some("work") {
        // Until Ctrl-C or SIGTERM; start as many as you like.
        return Ok(Worker::new(&ledger, "shop").concurrency(4).handle(invoice).run(acta::shutdown_signal()).await?);
    }
    let mut shop = Connection::open(FILE)?;
    shop.execute_batch("CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, customer TEXT NOT NULL)")?;
    for (customer, order, cents) in [("ada", 1, 1_250), ("bob", 2, 0), ("ada", 3, 990)] {
        let (added, wake) = take(&mut shop, &ledger, &Invoice { customer: customer.into(), order, cents })?;
        wake.send().await;
        println!("order {order} {} {}", if added.created { "is queued as" } else { "was there already as" }, added.id);
    }
    Ok(())
}
