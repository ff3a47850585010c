//! Carries out what a connection asks for: from memory and at once, or by work that takes its time.

use std::sync::Arc;

use mcp::{Call, Caller, More, Outcome, Reference, Server, Transport, Unfollowable};
use parking_lot::Mutex;
use transport::{Context, OutcomeFuture};

use super::observer::Observer;
use super::tools::{Asker, ToolCall};
use super::upstreams::{self, Upstreams, resources};
use super::{Toolset, catalogue, session_resources, tools, waiting};
use crate::access::{Right, Who};
use crate::app::App;

#[cfg(test)]
mod cost;

pub struct Host {
    app: App,
    server: Arc<Server>,
    observer: Arc<Observer>,
    upstreams: Arc<Upstreams>,
    /// Who is told when something changes.
    listeners: Listeners,
}

type Listener = Box<dyn Fn(mcp::Changed) + Send + Sync>;
type Listeners = Arc<Mutex<Vec<Listener>>>;

impl Host {
    pub fn new(app: App, observer: Observer, upstreams: Arc<Upstreams>, toolset: Toolset) -> Self {
        let mut server = Server::new(
            "workflowlookup",
            "Workflow Lookup",
            workflow::VERSION,
            "Workflow Orchestration System MCP Server",
            toolset.instructions(),
            tools::listed(false),
        );
        server.hidden = toolset.hidden();
        upstreams.set_toolset(toolset);
        server.traces = observer.is_told();
        let own = Arc::clone(&upstreams);
        let are_there = Box::new(move || own.are_there());
        let instructions = "There are other MCP servers behind this one: list_mcp_capabilities finds their tools, \
            describe_mcp tells what they take, and call_mcp_tool calls them.";
        server.more = Some(More { tools: tools::listed(true), instructions, are_there });
        let own = Arc::clone(&upstreams);
        server.unfollowable = Some(Unfollowable(Box::new(move |uri| own.why_not_follow(uri))));
        server.tools_change = true;
        let (server, observer) = (Arc::new(server), Arc::new(observer));
        let listeners = Listeners::default();
        let own = Arc::clone(&listeners);
        upstreams.tell_to(move |changed| tell(&own, &changed));
        Self { app, server, observer, upstreams, listeners }
    }

    pub(crate) fn upstreams(&self) -> &Arc<Upstreams> {
        &self.upstreams
    }

    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::clone(&self.server)
    }

    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Finishes what other threads write beside the calls: traces, and the anchor of the store.
    pub fn finish(&self) {
        if let Some(tracer) = &self.observer.tracer {
            tracer.end();
        }
        if let Some(open) = self.app.sessions().opened() {
            open.finish_anchor();
        }
    }

    /// From now on, changes are told to this one too.
    pub(crate) fn listen(&self, listener: impl Fn(mcp::Changed) + Send + Sync + 'static) {
        self.listeners.lock().push(Box::new(listener));
    }

    pub(crate) fn tell(&self, changed: &mcp::Changed) {
        tell(&self.listeners, changed);
    }

    /// Carries a call out.
    pub(crate) fn call(
        &self,
        call: Call,
        caller: Caller,
        via: Transport,
        context: Context,
    ) -> OutcomeFuture {
        let watched = self.observer.begin(&call, &caller, via);
        let (app, upstreams) = (self.app.clone(), Arc::clone(&self.upstreams));
        Box::pin(async move {
            let outcome = answer(app, upstreams, call, caller, context).await;
            watched.end(&outcome);
            outcome
        })
    }
}

/// Answers a call; on a thread of its own from the beginning if it may have to wait, or has much to check.
async fn answer(
    app: App,
    upstreams: Arc<Upstreams>,
    call: Call,
    caller: Caller,
    context: Context,
) -> Outcome {
    if let Some(outcome) = waiting::too_large(&call) {
        return outcome;
    }
    let may_wait = app.sessions().are_remote() && waiting::may_wait(&call);
    if !may_wait && !waiting::is_large(&call) {
        return carry_out(app, upstreams, call, caller, context).await;
    }
    let is_for_upstreams = waiting::is_for_upstreams(&call);
    let on_thread = move |context| -> OutcomeFuture {
        Box::pin(carry_out(app, upstreams, call, caller, context))
    };
    match is_for_upstreams {
        true => context.begin_call(on_thread).await,
        false => context.run_call(on_thread).await,
    }
}

async fn carry_out(
    app: App,
    upstreams: Arc<Upstreams>,
    call: Call,
    caller: Caller,
    context: Context,
) -> Outcome {
    let Some(who) = Who::of(&caller) else {
        tracing::error!("what a caller may do cannot be said");
        return Outcome::Fault;
    };
    let snapshot = || app.snapshot();
    match call {
        Call::Tool { name, arguments, is_method } => {
            let asker = if is_method { Asker::Method } else { Asker::Call };
            // Only listed tools are called.
            let Some(tool) = tools::find(name) else { return Outcome::Fault };
            let raw = arguments;
            ToolCall { tool, app, upstreams, raw, asker, caller, who, context }.run().await
        }
        // The call that it is for waits in another process, and hears there that nobody answered.
        Call::Settle { answers }
            if answers.state.as_deref().is_some_and(upstreams::is_question) =>
        {
            tracing::warn!("an answer came to another process than the one that asked");
            Outcome::Fault
        }
        Call::Settle { answers } => {
            tools::gate::settle(&app, answers, &caller, who, &context).await
        }
        Call::Forget { state } => {
            upstreams.forget(&state, caller.principal.as_deref());
            Outcome::Fault
        }
        Call::ListResources { cursor } => {
            let may_use = who.right().is_none_or(|right| right == Right::Use);
            let cursor = cursor.as_deref();
            if cursor.is_some_and(resources::is_cursor) && may_use {
                return upstreams.list_resources(None, cursor).await;
            }
            let sessions = || session_resources::list(&app, &who);
            match catalogue::list_resources(&snapshot(), cursor, sessions) {
                Outcome::Resources(page)
                    if page.next.is_none() && may_use && upstreams.are_there() =>
                {
                    upstreams.list_resources(Some(page), None).await
                }
                outcome => outcome,
            }
        }
        Call::ListTemplates => catalogue::list_templates(upstreams.are_there()),
        Call::ReadResource { uri } if resources::is_one(&uri) => {
            upstreams.read_resource(&app, &who, uri).await
        }
        Call::ReadResource { uri } if uri.starts_with(session_resources::SCHEME) => {
            session_resources::read(app, who, uri, &context).await
        }
        Call::ReadResource { uri } => catalogue::read_resource(&snapshot(), uri),
        Call::ListPrompts { cursor } => catalogue::list_prompts(&snapshot(), cursor.as_deref()),
        Call::GetPrompt { name, arguments } => {
            catalogue::get_prompt(&snapshot(), &name, &arguments)
        }
        Call::Complete { reference: Reference::Resource(template), argument, typed }
            if template.starts_with(session_resources::SCHEME) && argument == "id" =>
        {
            session_resources::complete(&app, &who, &typed, catalogue::COMPLETIONS_MAX)
        }
        Call::Complete { reference, argument, typed } => {
            catalogue::complete(&snapshot(), &reference, &argument, &typed)
        }
    }
}

fn tell(listeners: &Listeners, changed: &mcp::Changed) {
    listeners.lock().iter().for_each(|listener| listener(changed.clone()));
}

/// What a change of the catalogue means for clients.
pub(crate) fn changed(change: &catalog::Change) -> mcp::Changed {
    let touched = change.added.iter().chain(&change.changed).chain(&change.removed);
    let uris = touched.map(|id| catalogue::uri(id)).collect();
    let (resources, prompts) = (change.lists, change.lists);
    mcp::Changed { resources, prompts, uris, ..mcp::Changed::default() }
}
