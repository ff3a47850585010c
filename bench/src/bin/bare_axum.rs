//! The yardstick over HTTP: a handler that parses a body and sends it back, and nothing else.

use std::error::Error;

use axum::routing::post;
use axum::{Json, Router};
use serde_json::Value;

async fn echo(Json(body): Json<Value>) -> Json<Value> {
    Json(body)
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let router = Router::new().route("/mcp", post(echo));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening on http://{}/mcp", listener.local_addr()?);
        axum::serve(listener, router).await?;
        Ok(())
    })
}
