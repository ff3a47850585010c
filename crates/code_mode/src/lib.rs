//! Code mode: a program of an agent calls tools of upstreams. [`Tools`] is what it may import, a module for each server that it may
//! use, with a function for each tool; what it calls goes the way of every other call, with the same rules, limits and deadlines.

mod value;

use std::sync::Arc;
use std::time::{Duration, Instant};

use orchestrator::{Answer, AskedBy, Asker, Call, CallResult, Error, Form, Orchestrator, Party};
use sandbox::host::{Boxed, Clock, Function, Host, Module};
use sandbox::{Kind, Thrown};
use serde_json::json;
use serde_json::value::RawValue;
use tool_schema::types::function_names;

/// What an upstream's module is called: this and its id.
pub const PREFIX: &str = "mcp-clients/";
/// The largest result that a program gets of one call.
const RESULT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What one program may use.
pub struct Tools {
    pub orchestrator: Orchestrator,
    /// The ids of the servers that it may import.
    pub allowed: Vec<String>,
    pub asked_by: AskedBy,
    pub party: Party,
    /// Who can answer for a person. While somebody is asked, the program's time stands still.
    pub asker: Option<Arc<dyn Asker>>,
    /// What the host itself offers.
    pub own: Option<Arc<dyn Own>>,
    /// What a resource of a server's is called by the host.
    pub renamed: Option<fn(&str, &str) -> String>,
    pub listener: Option<Arc<dyn Listener>>,
}

/// Who hears how a program goes.
pub trait Listener: Send + Sync {
    /// A call of an upstream is over.
    fn over(&self, _over: Over<'_>) {}
    /// So many calls have begun, and so many of them are over.
    fn progress(&self, _begun: usize, _over: usize) {}
    /// It has written a line to its console.
    fn line(&self, _line: &str) {}
}

/// A module of the host's own, beside those of upstreams.
pub trait Own: Send + Sync {
    fn specifier(&self) -> &str;
    /// Names that are good in JavaScript.
    fn functions(&self) -> Vec<String>;
    fn call<'a>(
        &'a self,
        function: &'a str,
        arguments: Box<RawValue>,
    ) -> Boxed<'a, Result<Box<RawValue>, Thrown>>;
}

/// A call as it went.
pub struct Over<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    pub called: &'a Result<CallResult, Error>,
    pub took: Duration,
}

impl Tools {
    async fn upstream(&self, server: &str) -> Result<Module, String> {
        if !self.allowed.iter().any(|id| id == server) {
            return Err(format!(
                "`{PREFIX}{server}` cannot be imported: `{server}` is not in allowedMcpIds, which has {}",
                listed(&self.allowed)
            ));
        }
        let masks = self.orchestrator.registry();
        let list = self.orchestrator.tools(server).await.map_err(|error| {
            let why = error.to_string();
            format!("`{PREFIX}{server}` cannot be imported: {}", masks.masks().hide(&why))
        })?;
        let names = function_names(list.tools.iter().map(|tool| tool.name.as_str()));
        let functions = names.into_iter().zip(list.tools.iter());
        let functions =
            functions.map(|(name, tool)| Function { name, tool: tool.name.clone() }).collect();
        Ok(Module { server: server.to_owned(), functions })
    }

    /// What cannot be imported, and what can be.
    fn unknown(&self, specifier: &str) -> String {
        let own = self.own.as_ref().map(|own| format!("`{}`, ", own.specifier()));
        format!(
            "`{specifier}` cannot be imported; there are `{PREFIX}{{id}}` for the servers in allowedMcpIds ({}), {}and the \
             program's own files as `./name`",
            listed(&self.allowed),
            own.unwrap_or_default()
        )
    }

    async fn call_upstream(&self, called: sandbox::host::Call) -> Result<Box<RawValue>, Thrown> {
        let sandbox::host::Call { server, tool, arguments, cancelled, clock, notes, .. } = called;
        let arguments = serde_json::from_str(arguments.get());
        let arguments = arguments.map_err(|error| thrown(Kind::Arguments, error.to_string()))?;
        let mut call = Call::new(&server, &tool, arguments);
        call.result_limit = Some(RESULT_BYTES_MAX);
        call.asked_by = self.asked_by;
        call.party = self.party.clone();
        call.cancelled = cancelled;
        let asker = self.asker.clone();
        call.asker = asker.map(|asker| Arc::new(Holding { asker, clock }) as Arc<dyn Asker>);
        let began = Instant::now();
        let called = self.orchestrator.call(call).await;
        if let Some(listener) = &self.listener {
            let took = began.elapsed();
            listener.over(Over { server: &server, tool: &tool, called: &called, took });
        }
        match called {
            Ok(result) => {
                // Of one that was cut, an error says more.
                for warning in result.warnings.iter().filter(|_| result.sent.is_some()) {
                    notes.add(format!("{server}.{tool}: {warning}"));
                }
                value::of(&server, &tool, &result, self.renamed)
            }
            Err(error) => {
                let kind = match &error {
                    Error::Arguments { .. } => Kind::Arguments,
                    _ => Kind::Tool,
                };
                let why = error.to_string();
                let registry = self.orchestrator.registry();
                let message = registry.masks().hide(&why).into_owned();
                Err(Thrown { kind, message, data: data(&error) })
            }
        }
    }
}

impl Host for Tools {
    fn module<'a>(&'a self, specifier: &'a str) -> Boxed<'a, Result<Module, String>> {
        Box::pin(async move {
            if let Some(server) = specifier.strip_prefix(PREFIX) {
                return self.upstream(server).await;
            }
            match self.own.as_ref().filter(|own| own.specifier() == specifier) {
                Some(own) => {
                    let names = own.functions().into_iter();
                    let functions = names.map(|name| Function { tool: name.clone(), name });
                    Ok(Module { server: specifier.to_owned(), functions: functions.collect() })
                }
                None => Err(self.unknown(specifier)),
            }
        })
    }

    fn call<'a>(&'a self, call: sandbox::host::Call) -> Boxed<'a, Result<Box<RawValue>, Thrown>> {
        Box::pin(async move {
            // No id of an upstream is our own name and in the list at once: the module decides.
            match self.own.as_ref().filter(|own| call.module == own.specifier()) {
                Some(own) => own.call(&call.tool, call.arguments).await,
                None => self.call_upstream(call).await,
            }
        })
    }

    fn progress(&self, begun: usize, over: usize) {
        if let Some(listener) = &self.listener {
            listener.progress(begun, over);
        }
    }

    fn line(&self, line: &str) {
        if let Some(listener) = &self.listener {
            listener.line(line);
        }
    }
}

/// Asks, while the program's time stands still.
struct Holding {
    asker: Arc<dyn Asker>,
    clock: Clock,
}

impl Asker for Holding {
    fn ask(&self, form: Form) -> Boxed<'_, Answer> {
        Box::pin(async move {
            let _held = self.clock.hold();
            self.asker.ask(form).await
        })
    }
}

/// What a program can go by: which arguments are wrong, or whether to try again.
fn data(error: &Error) -> Option<String> {
    let data = match error {
        Error::Arguments { problems, .. } => {
            let problems: Vec<_> = problems
                .iter()
                .map(|problem| json!({"pointer": problem.pointer, "message": problem.to_string()}))
                .collect();
            json!({"problems": problems})
        }
        error => {
            let wait = error.retry_after().map(|wait| wait.as_millis());
            match wait.and_then(|ms| u64::try_from(ms).ok()) {
                Some(ms) => json!({"retryable": error.retryable(), "retryAfterMs": ms}),
                None => json!({"retryable": error.retryable()}),
            }
        }
    };
    Some(data.to_string())
}

fn thrown(kind: Kind, message: String) -> Thrown {
    Thrown { kind, message, data: None }
}

fn listed(ids: &[String]) -> String {
    match ids {
        [] => "none".to_owned(),
        ids => format!("`{}`", ids.join("`, `")),
    }
}
