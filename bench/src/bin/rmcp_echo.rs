//! The yardstick beside us: the echo tool on rmcp, over its `stdio()` or, with `pipes`, over its
//! `stdio_pipes()`. One thread runs it: on one core, a runtime of several is no faster.

use std::error::Error;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
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

fn main() -> Result<(), Box<dyn Error>> {
    let is_pipes = std::env::args().nth(1).is_some_and(|argument| argument == "pipes");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let service =
            if is_pipes { Echo.serve(stdio_pipes()).await? } else { Echo.serve(stdio()).await? };
        service.waiting().await?;
        Ok(())
    })
}
