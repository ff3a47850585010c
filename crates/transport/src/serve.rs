//! Takes connections until it is told to end, and then lets what is under way come to its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
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
use crate::limits::{HEADERS_BYTES_MAX, HEADERS_MAX, SWEEP};
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
    let connections = service.options.limits.connections;
    let places = Arc::new(Semaphore::new(connections));
    tokio::pin!(stop);
    loop {
        let (stream, place) = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let (service, router) = (Arc::clone(&service), router.clone());
        tokio::spawn(connection(service, router, stream, place));
    }
    // Who was let in by the system already is served: otherwise their requests would be lost.
    while let (Some(Ok((stream, _))), Ok(place)) =
        (now(listener.accept()).await, Arc::clone(&places).try_acquire_owned())
    {
        let (service, router) = (Arc::clone(&service), router.clone());
        tokio::spawn(connection(service, router, stream, Some(place)));
    }
    drop(listener);
    service.drain();
    // Everything has a place of its own; when all are given back, nothing is under way.
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    if timeout(service.options.limits.drain_time, places.acquire_many(all)).await.is_err() {
        tracing::warn!("some requests were still under way, and are cut short");
    }
    chores.abort();
}

/// What is there without waiting for it.
async fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
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
    let limits = &service.options.limits;
    let stream = Impatient::new(stream, limits.write_time);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers_time)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEADERS_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let mut draining = service.draining();
    let served = tokio::select! {
        served = &mut connection => served,
        () = told(&mut draining) => {
            // What is just being sent is still heard, and its answer says that the connection ends.
            match timeout(limits.drain_grace, &mut connection).await {
                Ok(served) => served,
                Err(_) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
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
            // Who was too slow for some of them goes on with the next.
            changed = feed.recv() => if let Ok(changed) = changed {
                service.peers.changed(&changed, |message| service.host.said(message));
            },
            _ = sweep.tick() => service.sweep(),
        }
    }
}
