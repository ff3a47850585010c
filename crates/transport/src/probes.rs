//! What operators ask: whether we live, whether to send us requests, and how it goes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use crate::answer::{Refused, with_text};
use crate::host::Host;
use crate::service::Service;

const TEXT: &str = "text/plain; charset=utf-8";

pub(crate) async fn healthz() -> Response {
    with_text(StatusCode::OK, TEXT, "ok\n")
}

pub(crate) async fn readyz<H: Host>(State(service): State<Arc<Service<H>>>) -> Response {
    match service.is_ready() {
        true => with_text(StatusCode::OK, TEXT, "ready\n"),
        false => with_text(StatusCode::SERVICE_UNAVAILABLE, TEXT, "not ready\n"),
    }
}

/// For whoever may call us.
pub(crate) async fn metrics<H: Host>(
    State(service): State<Arc<Service<H>>>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    match service.admit(&parts).await {
        Ok(_) => {
            let text = service.metrics.text(&service.now());
            with_text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
        }
        Err(refused) => Refused::response(refused),
    }
}

pub(crate) async fn nothing() -> Response {
    with_text(StatusCode::NOT_FOUND, TEXT, "not found; the MCP endpoint is /mcp\n")
}
