//! Who carries out what the suite calls. Tools, prompts and resources are each in a file of their own.

use std::future::ready;
use std::sync::Arc;

use mcp::{Call, Caller, Outcome, Reference, Server};
use transport::{Context, Feed, Host, OutcomeFuture};

use crate::state::Signer;
use crate::tools::Answering;
use crate::{prompts, resources, tools};

pub(crate) struct Fixture {
    server: Arc<Server>,
    pub(crate) feed: Feed,
    pub(crate) signer: Signer,
}

impl Fixture {
    pub(crate) fn new(key: [u8; 32], feed: Feed) -> Self {
        let mut server = Server::new(
            "conformance-fixture",
            "Conformance fixture",
            env!("CARGO_PKG_VERSION"),
            "Everything that the conformance suite calls",
            "For the conformance suite, and nobody else.",
            tools::list(),
        );
        server.logs = true;
        server.tools_change = true;
        Self { server: Arc::new(server), feed, signer: Signer::new(key) }
    }
}

impl Host for Fixture {
    fn server(&self) -> Arc<Server> {
        Arc::clone(&self.server)
    }

    fn call(&self, call: Call, caller: Caller, context: Context) -> OutcomeFuture {
        match self.answer(call, caller, context) {
            Answering::Now(outcome) => Box::pin(ready(outcome)),
            Answering::Later(outcome) => outcome,
        }
    }
}

impl Fixture {
    fn answer(&self, call: Call, caller: Caller, context: Context) -> Answering {
        match call {
            Call::Tool { name, arguments, .. } => {
                tools::run(self, tools::Request { name, arguments, caller, context })
            }
            Call::ListResources { cursor: None } => resources::list().into(),
            Call::ListTemplates => resources::templates().into(),
            Call::ReadResource { uri } => resources::read(uri).into(),
            Call::ListPrompts { cursor: None } => prompts::list().into(),
            Call::GetPrompt { name, arguments } => prompts::get(name, arguments, &caller).into(),
            Call::Complete { reference: Reference::Prompt(_), typed, .. } => {
                prompts::complete(&typed).into()
            }
            Call::Complete { .. } => Outcome::Completion { values: Vec::new(), total: 0 }.into(),
            Call::ListResources { .. } | Call::ListPrompts { .. } => {
                Outcome::BadParams("there is one page only".to_owned()).into()
            }
            // Nobody asks here for a call that waits elsewhere.
            Call::Settle { .. } | Call::Forget { .. } => Outcome::Fault.into(),
        }
    }
}
