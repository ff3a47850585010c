//! What operators ask: whether we live, whether to send us requests, and how it goes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_ORIGIN};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;

use crate::answer::{Refused, empty, with_text};
use crate::host::Host;
use crate::page::Page;
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
            let mut page = Page::default();
            service.metrics.print(&service.now(), &mut page);
            service.host.metrics(&mut page);
            let text = page.into_text();
            with_text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
        }
        Err(refused) => {
            service.metrics.refused(refused.kind());
            Refused::response(refused)
        }
    }
}

/// What anybody may read, a page in a browser too.
pub(crate) async fn document(method: Method, text: String) -> Response {
    let mut response = match method {
        Method::GET | Method::HEAD => with_text(StatusCode::OK, "application/json", text),
        Method::OPTIONS => empty(StatusCode::NO_CONTENT),
        _ => empty(StatusCode::METHOD_NOT_ALLOWED),
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    response
}

pub(crate) async fn nothing() -> Response {
    with_text(StatusCode::NOT_FOUND, TEXT, "not found; the MCP endpoint is /mcp\n")
}
