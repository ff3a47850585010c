//! Tools that take their time and say how it goes, and tools that change something others want to hear about.

use std::time::Duration;

use mcp::{Changed, Level, Log, Outcome, Progress};
use serde_json::json;
use tokio::time::sleep;
use transport::Context;

use super::{Answering, Entry, about, text};

/// Between two things that are said.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client may be away.
const AWAY: Duration = Duration::from_millis(200);

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "test_tool_with_logging",
        about: || about("Log", "Writes three lines for the client's log"),
        run: |_, request| Answering::Later(Box::pin(log(request.context))),
    },
    Entry {
        name: "test_logging_tool",
        about: || about("Log on request", "Writes lines for the client's log, if it wants any"),
        run: |_, request| Answering::Later(Box::pin(log(request.context))),
    },
    Entry {
        name: "test_tool_with_progress",
        about: || about("Progress", "Says how far it has come"),
        run: |_, request| Answering::Later(Box::pin(progress(request.context))),
    },
    Entry {
        name: "test_reconnection",
        about: || about("Reconnection", "Lets the client go, and answers when it is back"),
        run: |_, request| Answering::Later(Box::pin(let_go(request.context))),
    },
    Entry {
        name: "test_trigger_tool_change",
        about: || about("Change of tools", "Says that the list of tools has changed"),
        run: |fixture, _| {
            fixture.feed.tell(Changed { tools: true, ..Changed::default() });
            text("Whoever listens has been told.").into()
        },
    },
    Entry {
        name: "test_trigger_prompt_change",
        about: || about("Change of prompts", "Says that the list of prompts has changed"),
        run: |fixture, _| {
            fixture.feed.tell(Changed { prompts: true, ..Changed::default() });
            text("Whoever listens has been told.").into()
        },
    },
];

async fn log(context: Context) -> Outcome {
    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let logger = Some("conformance-fixture".to_owned());
        context.log(Log { level: Level::Info, logger, data: json!(text) });
        sleep(PAUSE).await;
    }
    text("Tool with logging executed successfully")
}

async fn progress(context: Context) -> Outcome {
    for done in [0.0, 50.0, 100.0] {
        let message = Some(format!("Completed step {done} of 100"));
        context.progress(Progress { done, total: Some(100.0), message });
        sleep(PAUSE).await;
    }
    text("Tool with progress executed successfully")
}

async fn let_go(context: Context) -> Outcome {
    context.hang_up();
    sleep(AWAY).await;
    text("Whoever reads this has come back for it.")
}
