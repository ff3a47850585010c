//! Answers requests of a server: ping, roots and elicitation.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::asking;
use super::channel::Channel;
use super::router::InboundRequest;

/// How long posting a response may take.
const POST_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers each request of the queue in its own task, until the queue closes.
pub(super) async fn serve(channel: Arc<Channel>, mut queue: mpsc::Receiver<InboundRequest>) {
    while let Some(inbound) = queue.recv().await {
        channel.runtime.spawn(respond(channel.clone(), inbound));
    }
}

async fn respond(channel: Arc<Channel>, inbound: InboundRequest) {
    let InboundRequest { request, cancelled, .. } = &inbound;
    let result = tokio::select! {
        result = handle(&channel, &inbound) => result,
        // A cancelled request gets no response.
        () = cancelled.cancelled() => return,
    };
    let text = match result {
        Some(result) => request.result(&result),
        None => request.not_offered(),
    };
    // A process that does not read its input delays only itself.
    let limit = if channel.has_process() { Duration::MAX } else { POST_TIMEOUT };
    if !matches!(timeout(limit, channel.send(text)).await, Ok(Ok(()))) {
        let server = channel.router.server();
        tracing::debug!(server, "failed to send the response to a request of the server");
    }
    channel.router.finish_response(&request.id);
}

/// The result. None if this client does not offer the method.
async fn handle(channel: &Channel, inbound: &InboundRequest) -> Option<Value> {
    match inbound.request.method.as_str() {
        "ping" => Some(json!({})),
        "roots/list" => Some(json!({"roots": []})),
        "elicitation/create" => {
            let params = inbound.request.params.as_ref();
            let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
            let target = channel.router.prompt_target(inbound.origin);
            let server = channel.router.server();
            Some(asking::elicit(server, params.unwrap_or_default(), &target).await)
        }
        _ => None,
    }
}
