//! The yardstick for sessions in a PostgreSQL: a handler that does nothing but one compare-and-set append for each request,
//! over as many connections as the product has. With `loop N SECONDS` the same without HTTP, by N tasks.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_postgres::NoTls;

/// Of the same shape as the product's, with the indexes that an append of its touches, but for the one of words.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS raw_sessions (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text COLLATE \"C\" NOT NULL UNIQUE, status smallint NOT NULL,
        step text, revision bigint NOT NULL, touched bigint NOT NULL, version bigint NOT NULL
    ) WITH (fillfactor = 80);
    CREATE TABLE IF NOT EXISTS raw_events (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session bigint NOT NULL, version bigint NOT NULL,
        time bigint NOT NULL, kind text NOT NULL, revision bigint, body text NOT NULL
    );
    CREATE UNIQUE INDEX IF NOT EXISTS raw_by_version ON raw_events (session, version);
    CREATE INDEX IF NOT EXISTS raw_by_revision ON raw_events (session, revision) WHERE revision IS NOT NULL";
const BEGIN: &str =
    "INSERT INTO raw_sessions (id, status, revision, touched, version) VALUES ($1, 0, 0, 0, 0)
    ON CONFLICT (id) DO UPDATE SET version = raw_sessions.version RETURNING version";
const APPEND: &str = "WITH head AS (
        UPDATE raw_sessions SET step = 'part-0001', revision = $2 + 1, touched = $2, version = $2 + 1
        WHERE id = $1 AND version = $2 RETURNING number
    )
    INSERT INTO raw_events (session, version, time, kind, revision, body)
    SELECT number, $2 + 1, $2, 'accepted', $2, $3 FROM head RETURNING version";
const CONNECTIONS: usize = 16;

#[derive(Deserialize)]
struct Append {
    session: String,
    version: Option<i64>,
    body: String,
}

async fn append(pool: &Pool, append: &Append) -> Result<i64, Box<dyn Error + Send + Sync>> {
    let client = pool.get().await?;
    let Some(version) = append.version else {
        let statement = client.prepare_cached(BEGIN).await?;
        return Ok(client.query_one(&statement, &[&append.session]).await?.get(0));
    };
    let statement = client.prepare_cached(APPEND).await?;
    let row = client.query_one(&statement, &[&append.session, &version, &append.body]).await?;
    Ok(row.get(0))
}

async fn answer(State(pool): State<Pool>, Json(body): Json<Append>) -> Json<Value> {
    match append(&pool, &body).await {
        Ok(version) => Json(json!({"version": version})),
        Err(error) => Json(json!({"error": error.to_string()})),
    }
}

/// Appends per second, and the 99th percentile in microseconds.
async fn repeat(pool: &Pool, tasks: usize, seconds: u64) -> (f64, f64) {
    let end = Instant::now() + Duration::from_secs(seconds);
    let body: Arc<str> = "x".repeat(400).into();
    let running: Vec<_> = (0..tasks)
        .map(|task| {
            let (pool, body) = (pool.clone(), Arc::clone(&body));
            tokio::spawn(async move {
                let (session, body) = (format!("loop-{task}"), body.to_string());
                let mut one = Append { session, version: None, body };
                let mut version = append(&pool, &one).await.expect("a session");
                let mut times = Vec::new();
                while Instant::now() < end {
                    let begun = Instant::now();
                    one.version = Some(version);
                    version = append(&pool, &one).await.expect("an append");
                    times.push(begun.elapsed().as_secs_f64() * 1e6);
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in running {
        times.extend(task.await.expect("a task"));
    }
    times.sort_by(f64::total_cmp);
    (times.len() as f64 / seconds as f64, times[times.len() * 99 / 100])
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let url = arguments.first().ok_or("an address")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(url.parse()?, NoTls, config);
        let pool = Pool::builder(manager).max_size(CONNECTIONS).build()?;
        pool.get().await?.batch_execute(TABLES).await?;
        if let [_, word, tasks, seconds] = &arguments[..]
            && word == "loop"
        {
            let (rate, slow) = repeat(&pool, tasks.parse()?, seconds.parse()?).await;
            println!("{rate} {slow}");
            return Ok(());
        }
        let router = Router::new().route("/mcp", post(answer)).with_state(pool);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening on http://{}/mcp", listener.local_addr()?);
        axum::serve(listener, router).await?;
        Ok(())
    })
}
