//! A look at a server, written down as it goes.

use std::fmt::Write as _;
use std::sync::Arc;

use orchestrator::{Answer, Call, Error, Progress, Wanted, text};
use serde_json::Value;

use crate::world::{Says, World, call};

pub(crate) struct Tour<'w> {
    world: &'w World,
    pub(crate) text: String,
}

impl<'w> Tour<'w> {
    /// Begins with who it is.
    pub(crate) async fn begin(world: &'w World) -> Self {
        let info = world.orchestrator.info("test").await.unwrap();
        let title = info.title.as_deref().unwrap_or("no title");
        let mut tour = Self { world, text: String::new() };
        tour.say(&format!(
            "{}, {title}, version {}, revision {}",
            info.name, info.version, info.revision
        ));
        tour
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.text, "{line}").unwrap();
    }

    pub(crate) async fn tools(&mut self) {
        let list = self.world.orchestrator.tools("test").await.unwrap();
        let mut names: Vec<&str> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
        names.sort_unstable();
        self.say(&format!("tools: {}", names.join(", ")));
        for note in &list.notes {
            self.say(&format!("  note: {note}"));
        }
    }

    /// A call, and the text of what comes.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) {
        self.call_with(tool, arguments, |_| {}).await;
    }

    pub(crate) async fn call_with(
        &mut self,
        tool: &str,
        arguments: Value,
        change: impl FnOnce(&mut Call),
    ) {
        self.say(&format!("> {tool} {arguments}"));
        let mut call = call("test", tool, arguments);
        change(&mut call);
        let result = self.world.orchestrator.call(call).await;
        match result {
            Ok(result) => {
                if result.is_error {
                    self.say("  it is an error:");
                }
                let text = text::of(&result.raw).replace('\n', "\n  ");
                self.say(&format!("  {text}"));
                if let Some(structured) = result.raw.get("structuredContent") {
                    self.say(&format!("  structured: {structured}"));
                }
                for warning in result.warnings {
                    self.say(&format!("  warning: {warning}"));
                }
            }
            Err(error) => self.failed(&error),
        }
    }

    /// The same, with somebody who answers what the server asks.
    pub(crate) async fn asked(&mut self, tool: &str, arguments: Value, answer: Answer) {
        let says = Says::new(answer);
        let asker = says.clone();
        self.call_with(tool, arguments, |call| call.asker = Some(asker)).await;
        for form in says.forms() {
            self.say(&format!("  asked: {}", form.message));
            if let Wanted::Visit { url, id } = form.wanted {
                self.say(&format!("  to visit {url}, {id:?}"));
            }
        }
    }

    /// The same, and each step on the way.
    pub(crate) async fn followed(&mut self, tool: &str, arguments: Value) {
        let steps = Arc::new(std::sync::Mutex::new(Vec::new()));
        let heard = steps.clone();
        let hear = move |step: Progress| heard.lock().unwrap().push((step.done, step.total));
        self.call_with(tool, arguments, |call| call.progress = Some(Arc::new(hear))).await;
        let steps = steps.lock().unwrap().clone();
        self.say(&format!("  progress: {steps:?}"));
    }

    pub(crate) async fn read(&mut self, uri: &str) {
        self.say(&format!("> read {uri}"));
        match self.world.orchestrator.read("test", uri).await {
            Ok(result) => {
                for content in result["contents"].as_array().unwrap() {
                    let kind = if content.get("blob").is_some() { "bytes" } else { "text" };
                    self.say(&format!("  {kind} of {}, {}", content["uri"], content["mimeType"]));
                }
            }
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &Error) {
        let text = error.to_string().replace('\n', "\n  ");
        self.say(&format!("  {text}"));
        if let Error::Upstream { data: Some(data), .. } = error {
            self.say(&format!("  data: {data}"));
        }
    }
}
