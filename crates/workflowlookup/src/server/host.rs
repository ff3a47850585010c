//! Carries out what a connection asks for: from memory and at once, or by work that takes its time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp::{Call, Caller, Outcome, Reference, Server, Transport};

use super::observer::Observer;
use super::{catalogue, session_resources, tools, waiting};
use crate::access::Who;
use crate::app::App;
use crate::server::tools::Asker;
use mcp::Carried;

pub(crate) struct Host {
    app: App,
    server: Arc<Server>,
    observer: Arc<Observer>,
    /// Who is told when the catalogue changes.
    listeners: Mutex<Vec<Listener>>,
}

type Listener = Box<dyn Fn(mcp::Changed) + Send>;

impl Host {
    pub(crate) fn new(app: App, observer: Observer) -> Self {
        let mut server = Server::new(
            "workflowlookup",
            "Workflow Lookup",
            workflow::VERSION,
            "Workflow Orchestration System MCP Server",
            "Workflows are tested ways to do a piece of work, step by step, with a check of each result. Begin \
             with workflow_list; workflow_start begins a session and hands you its first step, and workflow_advance \
             checks what you made of it and hands you the next. When you have lost track, workflow_status tells you \
             where you are. workflow_next and workflow_validate do the same without keeping a record.",
            tools::all(),
        );
        server.traces = observer.is_told();
        let (server, observer) = (Arc::new(server), Arc::new(observer));
        Self { app, server, observer, listeners: Mutex::default() }
    }

    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::clone(&self.server)
    }

    pub(crate) fn observer(&self) -> &Observer {
        &self.observer
    }

    /// From now on, changes of the catalogue are told to this one too.
    pub(crate) fn listen(&self, listener: impl Fn(mcp::Changed) + Send + 'static) {
        self.listeners().push(Box::new(listener));
    }

    pub(crate) fn tell(&self, changed: &mcp::Changed) {
        self.listeners().iter().for_each(|listener| listener(changed.clone()));
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn carry_out(&self, call: Call, caller: Caller, via: Transport) -> Carried {
        let watched = self.observer.begin(&call, &caller, via);
        let carried = self.answer(call, caller);
        watched.over(&self.observer, carried)
    }

    fn answer(&self, call: Call, caller: Caller) -> Carried {
        if self.app.sessions().are_remote() && waiting::may_wait(&call) {
            let app = self.app.clone();
            return Carried::Later(Box::new(move || waiting::ended(carry_out(&app, call, caller))));
        }
        carry_out(&self.app, call, caller)
    }
}

fn carry_out(app: &App, call: Call, caller: Caller) -> Carried {
    let Some(who) = Who::of(&caller) else {
        tracing::error!("what a caller may do cannot be said");
        return Outcome::Fault.into();
    };
    let snapshot = || app.snapshot();
    let outcome = match call {
        Call::Tool { name, arguments, is_method } => {
            let asker = if is_method { Asker::Method } else { Asker::Call };
            return tools::call(app, name, &arguments, asker, caller, who);
        }
        Call::Settle { answers } => return tools::gate::settle(app, &answers, &caller, &who),
        Call::ListResources { cursor } => {
            let sessions = || session_resources::list(app, &who);
            catalogue::list_resources(&snapshot(), cursor.as_deref(), sessions)
        }
        Call::ListTemplates => catalogue::list_templates(),
        Call::ReadResource { uri } if uri.starts_with(session_resources::SCHEME) => {
            session_resources::read(app, &who, uri)
        }
        Call::ReadResource { uri } => catalogue::read_resource(&snapshot(), uri),
        Call::ListPrompts { cursor } => catalogue::list_prompts(&snapshot(), cursor.as_deref()),
        Call::GetPrompt { name, arguments } => {
            catalogue::get_prompt(&snapshot(), &name, &arguments)
        }
        Call::Complete { reference: Reference::Resource(template), argument, typed }
            if template.starts_with(session_resources::SCHEME) && argument == "id" =>
        {
            session_resources::complete(app, &who, &typed, catalogue::COMPLETIONS_MAX)
        }
        Call::Complete { reference, argument, typed } => {
            catalogue::complete(&snapshot(), &reference, &argument, &typed)
        }
    };
    outcome.into()
}

/// What a change of the catalogue means for clients.
pub(crate) fn changed(change: &catalog::Change) -> mcp::Changed {
    let touched = change.added.iter().chain(&change.changed).chain(&change.removed);
    let uris = touched.map(|id| catalogue::uri(id)).collect();
    let (resources, prompts) = (change.lists, change.lists);
    mcp::Changed { resources, prompts, uris, ..mcp::Changed::default() }
}
