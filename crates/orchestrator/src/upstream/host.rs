//! Our side of a connection: who we are, and what we do for an upstream.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, CustomResult, ElicitationCapability, ErrorCode,
    ErrorData, FormElicitationCapability, Implementation, ProtocolVersion, RequestId,
    ServerNotification, ServerRequest, UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, Service};
use serde_json::Value;

use super::asking;
use super::ledger::Ledger;

pub(crate) struct Host {
    pub(crate) ledger: Arc<Ledger>,
}

/// Who calls, and what it can do for those that it calls.
pub(crate) fn client() -> ClientConfig {
    // What a person can be asked is known only when a call is made, but must be said now. Where nobody can be asked
    // then, the question is cancelled.
    let asking = ElicitationCapability::new()
        .with_form(FormElicitationCapability::default())
        .with_url(UrlElicitationCapability::default());
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = Some(asking);
    let us = Implementation::new("workflowlookup", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(capabilities, us)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

impl Host {
    async fn elicit(&self, params: Value, context: &RequestContext<RoleClient>) -> Value {
        let origin = context.extensions.get::<InboundStreamOrigin>();
        let request: Option<RequestId> = match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id.clone()),
            Some(InboundStreamOrigin::Unassociated) | None => None,
        };
        let whom = self.ledger.whom_to_ask(request.as_ref());
        tokio::select! {
            answer = asking::elicit(self.ledger.server(), params, &whom) => answer,
            () = context.ct.cancelled() => serde_json::json!({"action": "cancel"}),
        }
    }
}

impl Service<RoleClient> for Host {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            ServerRequest::ListRootsRequest(_) => Ok(no_roots()),
            ServerRequest::ElicitRequest(request) => {
                let params = serde_json::to_value(&request.params).unwrap_or_default();
                Ok(custom(self.elicit(params, &context).await))
            }
            ServerRequest::CustomRequest(request) => match request.method.as_str() {
                "roots/list" => Ok(no_roots()),
                "elicitation/create" => {
                    let params = request.params.unwrap_or_default();
                    Ok(custom(self.elicit(params, &context).await))
                }
                method => Err(not_offered(method)),
            },
            ServerRequest::CreateMessageRequest(_) => Err(not_offered("sampling/createMessage")),
            _ => Err(not_offered("this")),
        }
    }

    /// All that matters was heard already, and in order.
    async fn handle_notification(
        &self,
        _notification: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        client()
    }
}

fn no_roots() -> ClientResult {
    custom(serde_json::json!({"roots": []}))
}

fn custom(value: Value) -> ClientResult {
    ClientResult::CustomResult(CustomResult::new(value))
}

fn not_offered(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("`{method}` is not offered"), None)
}
