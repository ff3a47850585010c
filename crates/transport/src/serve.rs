//! Takes connections until it is told to end, and then lets what is under way come to its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{interval, sleep, timeout};

use crate::exchange::told;
use crate::host::Host;
use crate::impatient::Impatient;
use crate::limits::{
    CONNECTIONS_MAX, DRAIN_TIME, HEADERS_BYTES_MAX, HEADERS_MAX, HEADERS_TIME, SWEEP, WRITE_TIME,
};
use crate::metrics::Metrics;
use crate::service::Service;

/// How long to wait where the system gives us no connection.
const REST: Duration = Duration::from_millis(100);

/// Serves until `stop`.
pub async fn serve<H: Host>(
    service: Arc<Service<H>>,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) {
    let router = service.router();
    let chores = tokio::spawn(keep_house(Arc::clone(&service)));
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    tokio::pin!(stop);
    loop {
        let (stream, place) = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let (service, router) = (Arc::clone(&service), router.clone());
        tokio::spawn(connection(service, router, stream, place));
    }
    drop(listener);
    service.drain();
    // Everything has a place of its own; when all are given back, nothing is under way.
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    if timeout(DRAIN_TIME, places.acquire_many(all)).await.is_err() {
        tracing::warn!("some requests were still under way, and are cut short");
    }
    chores.abort();
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // Never closed, so there is always a place some time.
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                // As when there are too many open files.
                tracing::warn!("no connection can be accepted now: {error}");
                sleep(REST).await;
            }
        }
    }
}

async fn connection<H: Host>(
    service: Arc<Service<H>>,
    router: Router,
    stream: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
) {
    Metrics::add(&service.metrics.connections);
    service.open.fetch_add(1, Ordering::Relaxed);
    // Answers are small and written whole: waiting for more would only make them late.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIME)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEADERS_BYTES_MAX)
        .serve_connection(
            TokioIo::new(Impatient::new(stream, WRITE_TIME)),
            TowerToHyperService::new(router),
        );
    tokio::pin!(connection);
    let mut draining = service.draining();
    let served = tokio::select! {
        served = &mut connection => served,
        () = told(&mut draining) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!("a connection broke: {error}");
    }
    service.open.fetch_sub(1, Ordering::Relaxed);
}

/// Tells clients what has changed, and sweeps out what is old.
async fn keep_house<H: Host>(service: Arc<Service<H>>) {
    let mut feed = service.feed.listen();
    let mut sweep = interval(SWEEP);
    loop {
        tokio::select! {
            Ok(changed) = feed.recv() => {
                service.peers.changed(&changed, |message| service.host.said(message));
            }
            _ = sweep.tick() => service.sweep(),
        }
    }
}
