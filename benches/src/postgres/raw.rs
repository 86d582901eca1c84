//! The limit: the same durable transitions by hand, prepared statements on a minimal table, nothing else.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

/// Makes the table.
pub const TABLE: &str =
    "CREATE TABLE job (id bigserial PRIMARY KEY, state smallint NOT NULL DEFAULT 0, payload text NOT NULL);
CREATE INDEX ready ON job (id) WHERE state = 0";
/// Adds jobs.
pub const INSERT: &str = "INSERT INTO job (payload) SELECT unnest($1::text[])";
/// Adds one job.
pub const INSERT_ONE: &str = "INSERT INTO job (payload) VALUES ($1)";
/// Claims.
pub const CLAIM: &str = "UPDATE job SET state = 1
WHERE ctid = ANY (ARRAY(SELECT ctid FROM job WHERE state = 0 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id, payload";
/// Settles.
pub const SETTLE: &str = "UPDATE job SET state = 2 WHERE id = ANY ($1)";

/// Opens a connection.
pub async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Makes the table anew.
pub async fn make(url: &str) -> Result<()> {
    connect(url).await?.batch_execute(&format!("DROP TABLE IF EXISTS job; {TABLE}")).await?;
    Ok(())
}

/// Adds `total` jobs in calls of `batch`; how long it took.
pub async fn insert(url: &str, total: usize, batch: usize, payload: &str) -> Result<Duration> {
    let client = connect(url).await?;
    let insert = client.prepare(INSERT).await?;
    let payloads = vec![payload; batch];
    let start = Instant::now();
    for _ in 0..total / batch {
        client.execute(&insert, &[&payloads]).await?;
    }
    Ok(start.elapsed())
}

/// Adds jobs one by one, on so many connections at once.
pub async fn insert_singly(url: &str, total: usize, connections: usize, payload: &str) -> Result<Duration> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let client = connect(url).await?;
        let insert = client.prepare(INSERT_ONE).await?;
        clients.push((client, insert));
    }
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for (client, insert) in clients {
        let payload = payload.to_owned();
        tasks.spawn(async move {
            for _ in 0..total / connections {
                client.execute(&insert, &[&payload]).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(start.elapsed())
}

/// Claims and settles all jobs, `batch` a statement, on so many connections at once; how long it took.
pub async fn drain(url: &str, connections: usize, batch: i64) -> Result<Duration> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let client = connect(url).await?;
        let statements = (client.prepare(CLAIM).await?, client.prepare(SETTLE).await?);
        clients.push((client, statements));
    }
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for (client, (claim, settle)) in clients {
        tasks.spawn(async move {
            loop {
                let claimed = client.query(&claim, &[&batch]).await?;
                if claimed.is_empty() {
                    return Ok::<_, anyhow::Error>(());
                }
                let ids: Vec<i64> = claimed.iter().map(|row| row.get(0)).collect();
                client.execute(&settle, &[&ids]).await?;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(start.elapsed())
}
