//! Endpoints of the host's own, beside MCP: whoever calls them passes the same guard, says who they are in the same way,
//! and is held to the same bounds. They are carried out on threads that may wait.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use serde_json::json;

use crate::answer::{self, Refused};
use crate::host::{Host, Principal};
use crate::post::is_json;
use crate::probes;
use crate::service::{Service, allow_origin, check_headers, method_name, preflight};

/// A request to an endpoint of the host's own.
#[derive(Debug)]
pub struct EndpointRequest {
    /// `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    pub path: String,
    /// JSON, or nothing.
    pub body: Bytes,
    /// Nobody in particular, where anybody is let in.
    pub principal: Option<Principal>,
}

/// What the host says to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointAnswer {
    pub status: u16,
    /// JSON; none where there is nothing to say.
    pub body: Option<String>,
    /// The methods that it does know, where it does not know this one.
    pub allow: Option<&'static str>,
}

/// How much of a path is logged.
const LOGGED_PATH_MAX: usize = 200;

/// Everything that has no route.
pub(crate) async fn endpoint<H: Host>(
    State(service): State<Arc<Service<H>>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    if !service.host.has_endpoint(parts.uri.path()) {
        return probes::nothing().await;
    }
    let begun = tracing::enabled!(tracing::Level::INFO).then(Instant::now);
    let method = method_name(&parts.method);
    let mut who = None;
    let served = match (check_headers(&parts.headers), method) {
        (Err(refused), _) => Err(refused),
        (Ok(()), "OPTIONS") => preflight(&service, &parts),
        (Ok(()), "other") => Err(Refused::MethodNotAllowed),
        (Ok(()), _) => match service.admit(&parts).await {
            Err(refused) => Err(refused),
            Ok(principal) => {
                who = principal.as_ref().map(|principal| Arc::clone(&principal.name));
                carry_out(&service, &parts, method, principal, body).await
            }
        },
    };
    let refused = match &served {
        Err(refused) => Some(refused.kind()),
        // The host has looked at what they may do.
        Ok(response) => (response.status() == StatusCode::FORBIDDEN).then_some("not_allowed"),
    };
    if let Some(kind) = refused {
        service.metrics.refused(kind);
    }
    let mut response = served.unwrap_or_else(Refused::response);
    let status = response.status().as_u16();
    service.metrics.responded(method, status);
    if service.is_draining() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    // What it says is about now, and may hold a secret.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(begun) = begun {
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let principal = who.as_deref().unwrap_or("nobody");
        let path = parts.uri.path();
        let path = &path[..path.floor_char_boundary(LOGGED_PATH_MAX)];
        tracing::info!(method, path, status, principal, micros, "answered");
    }
    allow_origin(&service, &parts.headers, &mut response);
    response
}

async fn carry_out<H: Host>(
    service: &Arc<Service<H>>,
    parts: &Parts,
    method: &'static str,
    principal: Option<Principal>,
    body: axum::body::Body,
) -> Result<Response, Refused> {
    let place = service.enter(principal.as_ref())?;
    let read = service.read(principal.as_ref(), parts, body).await?;
    // A page in a browser can send anything else without asking first.
    if (method == "POST" || !read.bytes.is_empty()) && !is_json(&parts.headers) {
        let has_kind = parts.headers.contains_key(header::CONTENT_TYPE);
        if has_kind || !read.bytes.is_empty() {
            return Err(Refused::UnsupportedMediaType);
        }
    }
    let (path, bytes) = (parts.uri.path().to_owned(), read.bytes.clone());
    let who = principal.as_ref().map(|principal| Arc::clone(&principal.name));
    let asked = EndpointRequest { method, path, body: bytes, principal };
    // Whoever goes away does not take it back: what is decided is decided.
    let own = Arc::clone(service);
    let work = tokio::spawn(async move {
        let _permit = own.thread(who.clone()).await.ok_or(Refused::Busy)?;
        let host = Arc::clone(&own);
        let work = move || host.budgets.measure(who.as_ref(), || host.host.answer(asked));
        let done = tokio::task::spawn_blocking(work).await;
        own.host.touched();
        drop((place, read));
        Ok(done.ok())
    });
    let answered = work.await.unwrap_or(Ok(None))?.unwrap_or_else(|| {
        let error = json!({"code": -32603, "message": "Internal error"});
        let body = Some(json!({"error": error}).to_string());
        EndpointAnswer { status: 500, body, allow: None }
    });
    let status = StatusCode::from_u16(answered.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match answered.body {
        Some(body) => answer::with_text(status, "application/json", body),
        None => answer::empty(status),
    };
    if let Some(methods) = answered.allow {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    }
    Ok(response)
}
