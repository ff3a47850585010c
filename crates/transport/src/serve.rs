//! Takes connections until it is told to end, and then lets what is under way come to its end.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{interval, sleep, timeout};

use crate::connections::{Connection as OpenConnection, InFlightGuard, OpenGuard};
use crate::exchange::told;
use crate::host::Host;
use crate::impatient::Impatient;
use crate::limits::{HEADERS_BYTES_MAX, HEADERS_MAX, SWEEP};
use crate::metrics::{Eviction, Metrics};
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
        let (stream, address, place) = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&service, &listener, &places) => accepted,
        };
        let open = service.connections.open(address);
        let (service, router) = (Arc::clone(&service), router.clone());
        tokio::spawn(connection(service, router, stream, open, place));
    }
    // Who was let in by the system already is served: otherwise their requests would be lost.
    while let (Some(Ok((stream, address))), Ok(place)) =
        (now(listener.accept()).await, Arc::clone(&places).try_acquire_owned())
    {
        let open = service.connections.open(address.ip());
        let (service, router) = (Arc::clone(&service), router.clone());
        tokio::spawn(connection(service, router, stream, open, Some(place)));
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

/// Accepts the next connection. Evicts idle ones for it before the limit is reached, or while it is.
async fn accept<H: Host>(
    service: &Service<H>,
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, IpAddr, Option<OwnedSemaphorePermit>) {
    let evict = || {
        if service.connections.evict() {
            service.metrics.evicted(Eviction::Capacity);
        }
    };
    let place = loop {
        match timeout(REST, Arc::clone(places).acquire_owned()).await {
            // An error only if the semaphore is closed, which it never is.
            Ok(place) => break place.ok(),
            Err(_) => evict(),
        }
    };
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let address = address.ip();
                if service.connections.evict_from(address) {
                    service.metrics.evicted(Eviction::Address);
                }
                if service.connections.is_short() {
                    evict();
                }
                return (stream, address, place);
            }
            Err(error) => {
                // As when there are too many open files.
                tracing::warn!("no connection can be accepted now: {error}");
                evict();
                sleep(REST).await;
            }
        }
    }
}

async fn connection<H: Host>(
    service: Arc<Service<H>>,
    router: Router,
    stream: TcpStream,
    open: OpenGuard,
    _place: Option<OwnedSemaphorePermit>,
) {
    Metrics::add(&service.metrics.connections);
    // Answers are small and written whole: waiting for more would only make them late.
    let _ = stream.set_nodelay(true);
    let limits = &service.options.limits;
    let stream = Impatient::new(stream, limits.write_time);
    let (own, router) = (&open.connection, TowerToHyperService::new(router));
    let serve_request = service_fn(|mut request: Request<Incoming>| {
        let in_flight = own.begin_request();
        request.extensions_mut().insert(Arc::clone(own));
        let response = router.call(request);
        async move {
            let response = response.await?;
            Ok::<_, Infallible>(response.map(|body| ResponseBody { body, _in_flight: in_flight }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers_time)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEADERS_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), serve_request);
    tokio::pin!(connection);
    let mut draining = service.draining();
    let served = tokio::select! {
        biased;
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
        () = evicted(&service, own) => {
            connection.as_mut().graceful_shutdown();
            // What is in flight gets its response. Without it, and without a principal, nothing is owed.
            match own.is_busy() || own.is_admitted() {
                true => connection.await,
                false => Ok(()),
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!("a connection broke: {error}");
    }
}

/// A body that keeps its connection busy until it was sent. Evicting a connection with an event stream frees nothing.
struct ResponseBody {
    body: Body,
    _in_flight: InFlightGuard,
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Waits until a connection has to give way to others, or has gone without authentication for too long.
async fn evicted<H: Host>(service: &Service<H>, own: &OpenConnection) {
    let time = service.options.limits.unauthenticated_time;
    if timeout(time, own.evicted()).await.is_ok() {
        return;
    }
    match own.is_admitted() {
        true => own.evicted().await,
        false => service.metrics.evicted(Eviction::Unauthenticated),
    }
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
