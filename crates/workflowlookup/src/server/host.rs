//! Carries out what a connection asks for: from memory and at once, or by work that takes its time.

use std::sync::Arc;

use mcp::{Call, Caller, Server};

use super::workers::Carried;
use super::{catalogue, tools};
use crate::app::App;
use crate::server::tools::Asker;

pub(crate) struct Host {
    app: App,
    server: Arc<Server>,
}

impl Host {
    pub(crate) fn new(app: App) -> Self {
        let server = Server::new(
            "workflowlookup",
            "Workflow Lookup",
            workflow::VERSION,
            "Workflow Orchestration System MCP Server",
            "Workflows are tested ways to do a piece of work, step by step, with a check of each result. Begin \
             with workflow_list; then workflow_next hands you one step after the other, and workflow_validate \
             checks what you made of it.",
            tools::all(),
        );
        Self { app, server: Arc::new(server) }
    }

    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::clone(&self.server)
    }

    pub(crate) fn carry_out(&self, call: Call, _: Caller) -> Carried {
        let snapshot = || self.app.snapshot();
        let outcome = match call {
            Call::Tool { name, arguments, is_method } => {
                let asker = if is_method { Asker::Method } else { Asker::Call };
                return tools::call(&self.app, name, &arguments, asker);
            }
            Call::ListResources { cursor } => {
                catalogue::list_resources(&snapshot(), cursor.as_deref())
            }
            Call::ListTemplates => catalogue::list_templates(),
            Call::ReadResource { uri } => catalogue::read_resource(&snapshot(), uri),
            Call::ListPrompts { cursor } => catalogue::list_prompts(&snapshot(), cursor.as_deref()),
            Call::GetPrompt { name, arguments } => {
                catalogue::get_prompt(&snapshot(), &name, &arguments)
            }
            Call::Complete { reference, argument, typed } => {
                catalogue::complete(&snapshot(), &reference, &argument, &typed)
            }
        };
        outcome.into()
    }
}

/// What a change of the catalogue means for clients.
pub(crate) fn changed(change: &catalog::Change) -> mcp::Changed {
    let touched = change.added.iter().chain(&change.changed).chain(&change.removed);
    mcp::Changed { lists: change.lists, uris: touched.map(|id| catalogue::uri(id)).collect() }
}
