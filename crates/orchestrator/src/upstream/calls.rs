//! One call of one tool, from the rules that may forbid it to the result that may be too large.

use std::sync::Arc;

use mcp::client::Request;
use registry::policy::{Confirmation, Decision};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tool_schema::arguments::{NoSuchTool, Unchecked, Verdict};
use tool_schema::tool::Tool;

use super::asking;
use super::call_context::CallContext;
use super::connection::Connection;
use super::failure::{Failure, Repeat};
use super::list::{CollectTools, ToolList};
use super::result::Outline;
use super::shelf::Freshness;
use super::tries::Tries;
use super::{Upstream, context_of, result};
use crate::breaker::What;
use crate::call::{Call, CallResult, Party};
use crate::error::Error;
use crate::kept::Kept;
use crate::pool::Kind;

impl Upstream {
    pub(crate) async fn call(&self, mut call: Call) -> Result<CallResult, Error> {
        let (patience, policy) = {
            let terms = self.terms();
            (call.timeout.unwrap_or_else(|| terms.entry.timeout()), terms.policy.clone())
        };
        let context = context_of(&mut call, patience, self.shared.total_limit);
        let limit = call.result_limit.unwrap_or(self.shared.result_limit);
        // What is not there for us is not even looked for.
        policy.offers(&call.tool).map_err(Error::Denied)?;
        let mut entered = self.gate.enter(What::Calling)?;
        let list = match self.tools.get(Freshness::ForACall) {
            Some(list) => list,
            None => {
                match self.fetch::<CollectTools>(&self.tools, Freshness::ForACall, &context).await {
                    Ok(list) => list.ok_or_else(|| self.not_offered(Kind::Tools))?,
                    Err(failure) => {
                        entered.came_to(&Err::<(), _>(failure.clone()));
                        return Err(failure.into_error(&self.id));
                    }
                }
            }
        };
        let tool = list.get(&call.tool).ok_or_else(|| self.no_tool(&call.tool, &list))?;
        if tool.is_task_only() {
            let (server, tool) = (self.id.to_string(), tool.name.clone());
            return Err(Error::TaskOnly { server, tool });
        }
        let arguments = self.checked(tool, call.arguments, &context).await?;
        self.gate.may_call()?;
        match policy.decide(&tool.name, &tool.annotations, call.asked_by) {
            Decision::Allowed => {}
            Decision::Denied(denied) => return Err(Error::Denied(denied)),
            Decision::Confirm(confirmation) => {
                // Nobody else waits for what a person thinks about.
                drop(entered);
                self.confirmed(confirmation, &arguments, &context).await?;
                entered = self.gate.enter(What::Calling)?;
            }
        }
        self.gate.count_call()?;
        let outcome = self.carry_out(tool, arguments, &context).await;
        entered.came_to(&outcome);
        let raw = outcome.map_err(|failure| failure.into_error(&self.id))?;
        self.finish(tool, raw, limit, &context).await
    }

    fn no_tool(&self, name: &str, list: &Arc<ToolList>) -> Error {
        let offered = self.offered(list.clone());
        let names = offered.tools.iter().map(|tool| tool.name.as_str());
        Error::NoTool(NoSuchTool::new(&self.id, name, names))
    }

    async fn checked(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
        context: &CallContext,
    ) -> Result<Map<String, Value>, Error> {
        let arguments = Value::Object(arguments);
        let checked = self.shared.checks.check(&tool.input_schema, arguments, context).await;
        let (verdict, arguments) = checked.map_err(|failure| failure.into_error(&self.id))?;
        match verdict {
            Verdict::Fits => {}
            Verdict::Wrong(problems) => {
                let (server, tool) = (self.id.to_string(), tool.name.clone());
                return Err(Error::Arguments { server, tool, problems });
            }
            Verdict::Unchecked(Unchecked::TooMuchWork) => {
                let (server, tool) = (self.id.to_string(), tool.name.clone());
                return Err(Error::Uncheckable { server, tool });
            }
            Verdict::Unchecked(why) => {
                tracing::debug!(
                    server = &*self.id,
                    tool = tool.name,
                    "arguments are not checked: {why}"
                );
            }
        }
        let Value::Object(arguments) = arguments else { return Ok(Map::new()) };
        Ok(arguments)
    }

    async fn confirmed(
        &self,
        confirmation: Confirmation,
        arguments: &Map<String, Value>,
        context: &CallContext,
    ) -> Result<(), Error> {
        let message = format!("{confirmation}. May it be called?");
        let tool = &confirmation.tool;
        match asking::confirm(&self.id, tool, message, arguments, context).await {
            Some(true) => Ok(()),
            Some(false) => {
                Err(Error::NotConfirmed { server: self.id.to_string(), tool: tool.clone() })
            }
            None => Err(Error::Denied(confirmation.nobody_to_ask())),
        }
    }

    /// Sends the call, and again where that does no harm.
    async fn carry_out(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
        context: &Arc<CallContext>,
    ) -> Result<Box<RawValue>, Failure> {
        let repeat =
            if tool.annotations.may_run_twice() { Repeat::Harmless } else { Repeat::Never };
        let mut tries = Tries::new(repeat);
        loop {
            let attempt = async {
                let connection = self.link.connection(context).await?;
                self.ask(&connection, tool, &arguments, context).await
            };
            match attempt.await {
                Ok(result) => return Ok(result),
                Err(failure) => tries.again(failure, context).await?,
            }
        }
    }

    /// One attempt, with all the questions that the server may have.
    async fn ask(
        &self,
        connection: &Arc<Connection>,
        tool: &Tool,
        arguments: &Map<String, Value>,
        context: &Arc<CallContext>,
    ) -> Result<Box<RawValue>, Failure> {
        // Few tools want arguments as headers too, which only what goes over HTTP has.
        let schema = Some(&tool.input_schema).filter(|schema| {
            connection.mirrors_arguments() && schema.text().contains("x-mcp-header")
        });
        let schema = schema.and_then(|schema| schema.value().ok());
        let request = || Request::call_tool(&tool.name, arguments, schema.as_ref());
        asking::ask(connection, request, context).await
    }

    /// Looks at what came, and cuts it where it is too large.
    async fn finish(
        &self,
        tool: &Tool,
        raw: Box<RawValue>,
        limit: usize,
        context: &CallContext,
    ) -> Result<CallResult, Error> {
        if !raw.get().starts_with('{') {
            let why = "its result is no object".to_owned();
            return Err(Failure::Protocol { why }.into_error(&self.id));
        }
        let outline = Outline::of(&raw);
        let is_error = outline.is_error();
        let mut warnings = outline.broken_promises(&self.shared.checks, tool, context).await;
        warnings.extend(context.take_warnings());
        let took = context.deadline.elapsed();
        if raw.get().len() <= limit {
            let value = result::read(&raw).map_err(|failure| failure.into_error(&self.id))?;
            return Ok(CallResult {
                raw: value,
                sent: Some(raw),
                is_error,
                warnings,
                kept: None,
                took,
            });
        }
        let kept = self.keep(&raw, context).await;
        let word = cut_word(raw.get().len(), kept.as_ref());
        let short = result::cut(&raw, limit, &word);
        warnings.push(word);
        Ok(CallResult { raw: short, sent: None, is_error, warnings, kept, took })
    }

    async fn keep(&self, raw: &RawValue, context: &CallContext) -> Option<Kept> {
        let party = context.party.clone().unwrap_or_else(Party::alone);
        match self.shared.store.keep(raw.get().to_owned(), party).await {
            Ok(kept) => kept,
            Err(error) => {
                tracing::warn!(server = &*self.id, "a large result cannot be kept: {error}");
                None
            }
        }
    }
}

fn cut_word(bytes: usize, kept: Option<&Kept>) -> String {
    match kept {
        Some(kept) => format!(
            "[the result has {bytes} bytes and is cut below; the whole, as JSON, is the resource {}, and its first part {}]",
            kept.uri,
            kept.first_part()
        ),
        None => {
            format!("[the result has {bytes} bytes and is cut below; the rest could not be kept]")
        }
    }
}
