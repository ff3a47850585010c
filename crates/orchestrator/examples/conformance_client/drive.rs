//! What is done with the suite's server: connect, look at everything that it has, call every tool.

use std::error::Error;
use std::sync::Arc;

use orchestrator::upstream::list::ToolList;
use orchestrator::{AskedBy, Call, Orchestrator};
use serde_json::{Map, Value};

use super::SERVER;
use super::context::{Context, ToolCall};
use super::person::{Person, arguments};

/// A tool that wants to be shown the schema of another one, as it came.
const ECHO: &str = "json_schema_echo";

pub(crate) async fn drive(
    orchestrator: &Orchestrator,
    context: &Context,
) -> Result<(), Box<dyn Error>> {
    let info = orchestrator.info(SERVER).await?;
    let offers = |what: &str| info.capabilities.get(what).is_some();
    if offers("resources") {
        let list = orchestrator.resources(SERVER).await?;
        for resource in &list.items {
            let resource = resource.value()?;
            orchestrator.read(SERVER, resource["uri"].as_str().unwrap_or_default()).await?;
        }
    }
    if offers("prompts") {
        orchestrator.prompts(SERVER).await?;
    }
    if offers("tools") {
        let tools = orchestrator.tools(SERVER).await?;
        let calls = match context.tool_calls() {
            Some(calls) => calls.to_vec(),
            None => calls(&tools)?,
        };
        for ToolCall { name, arguments } in calls {
            call(orchestrator, &name, arguments).await?;
        }
    }
    Ok(())
}

/// One of every tool; or where there is one that looks at others, of that.
fn calls(tools: &ToolList) -> serde_json::Result<Vec<ToolCall>> {
    if tools.get(ECHO).is_some() {
        let others = tools.tools.iter().filter(|tool| tool.name != ECHO);
        let calls = others.map(|tool| {
            let arguments = Map::from_iter([("schema".to_owned(), tool.input_schema.value()?)]);
            Ok(ToolCall { name: ECHO.to_owned(), arguments })
        });
        return calls.collect();
    }
    let calls = tools.tools.iter().map(|tool| {
        let arguments = arguments(&tool.input_schema.value()?);
        Ok(ToolCall { name: tool.name.clone(), arguments })
    });
    calls.collect()
}

async fn call(
    orchestrator: &Orchestrator,
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<(), Box<dyn Error>> {
    let mut call = Call::new(SERVER, tool, arguments);
    call.asked_by = AskedBy::Person;
    call.asker = Some(Arc::new(Person));
    orchestrator.call(call).await?;
    Ok(())
}
