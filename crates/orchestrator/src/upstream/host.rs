//! Our side of a connection: what we do for a server that asks us.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::asking;
use super::channel::Channel;
use super::in_flight::Wanted;

/// Responds to what the server wants, each in a task of its own, until the connection is gone.
pub(super) async fn serve(channel: Arc<Channel>, mut wanted: mpsc::Receiver<Wanted>) {
    while let Some(wanted) = wanted.recv().await {
        channel.runtime.spawn(serve_one(channel.clone(), wanted));
    }
}

async fn serve_one(channel: Arc<Channel>, wanted: Wanted) {
    let Wanted { request, withdrawn, .. } = &wanted;
    let response = tokio::select! {
        response = respond(&channel, &wanted) => response,
        // Nobody wants to hear it.
        () = withdrawn.cancelled() => return,
    };
    let text = match response {
        Some(result) => request.result(&result),
        None => request.not_offered(),
    };
    if let Err(failure) = channel.send(text).await {
        let error = failure.into_error(channel.in_flight.server());
        tracing::debug!("a response does not arrive: {error}");
    }
    channel.in_flight.responded(&request.id);
}

/// The result; none if it is nothing that we offer.
async fn respond(channel: &Channel, wanted: &Wanted) -> Option<Value> {
    match wanted.request.method.as_str() {
        "ping" => Some(json!({})),
        "roots/list" => Some(json!({"roots": []})),
        "elicitation/create" => {
            let params = wanted.request.params.as_ref();
            let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
            let whom = channel.in_flight.whom_to_ask(wanted.origin);
            let server = channel.in_flight.server();
            Some(asking::elicit(server, params.unwrap_or_default(), &whom).await)
        }
        _ => None,
    }
}
