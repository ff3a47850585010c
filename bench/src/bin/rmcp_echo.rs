//! The yardstick beside us: the echo tool on rmcp, over its `stdio()`, with `pipes` over its `stdio_pipes()`, and
//! with `http` over its Streamable HTTP as it comes, with `http-json` with plain answers. One thread runs it over stdio: on one core, a runtime of several is no faster.

use std::error::Error;
use std::sync::Arc;

use axum::serve::ListenerExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::transport::{stdio, stdio_pipes};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::json;

struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        });
        let schema = schema.as_object().cloned().unwrap_or_default();
        let tool = Tool::new("echo", "Sends its text back", Arc::new(schema));
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        match arguments.get("text").and_then(|text| text.as_str()) {
            Some(text) if request.name == "echo" => {
                Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
            }
            _ => Err(ErrorData::invalid_params("echo needs a text", None)),
        }
    }
}

/// With plain answers it is fastest; as it comes, every answer is a stream.
fn serve_http(is_plain: bool) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(is_plain);
        let sessions = Arc::new(NeverSessionManager::default());
        let service = StreamableHttpService::new(|| Ok(Echo), sessions, config);
        let router = axum::Router::new().route_service("/mcp", service);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening on http://{}/mcp", listener.local_addr()?);
        // Without this, every stream waits for the other side's delayed acknowledgement.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await?;
        Ok(())
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let way = std::env::args().nth(1);
    if let Some(way @ ("http" | "http-json")) = way.as_deref() {
        return serve_http(way == "http-json");
    }
    let is_pipes = way.as_deref() == Some("pipes");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let service =
            if is_pipes { Echo.serve(stdio_pipes()).await? } else { Echo.serve(stdio()).await? };
        service.waiting().await?;
        Ok(())
    })
}
