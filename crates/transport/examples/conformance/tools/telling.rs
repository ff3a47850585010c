//! Tools that take their time and say how it goes, and tools that change something others want to hear about.

use std::time::Duration;

use mcp::{Carried, Changed, Finish, Level, Log, Progress};
use serde_json::json;
use tokio::time::sleep;

use super::{Entry, about, said};

/// Between two things that are said.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client may be away.
const AWAY: Duration = Duration::from_millis(200);

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "test_tool_with_logging",
        about: || about("Log", "Writes three lines for the client's log"),
        run: |_, _| begun(log),
    },
    Entry {
        name: "test_logging_tool",
        about: || about("Log on request", "Writes lines for the client's log, if it wants any"),
        run: |_, _| begun(log),
    },
    Entry {
        name: "test_tool_with_progress",
        about: || about("Progress", "Says how far it has come"),
        run: |_, _| begun(progress),
    },
    Entry {
        name: "test_reconnection",
        about: || about("Reconnection", "Lets the client go, and answers when it is back"),
        run: |_, _| begun(let_go),
    },
    Entry {
        name: "test_trigger_tool_change",
        about: || about("Change of tools", "Says that the list of tools has changed"),
        run: |fixture, _| {
            fixture.feed.tell(Changed { tools: true, ..Changed::default() });
            said("Whoever listens has been told.")
        },
    },
    Entry {
        name: "test_trigger_prompt_change",
        about: || about("Change of prompts", "Says that the list of prompts has changed"),
        run: |fixture, _| {
            fixture.feed.tell(Changed { prompts: true, ..Changed::default() });
            said("Whoever listens has been told.")
        },
    },
];

/// Goes on beside the request.
fn begun<F: Future<Output = ()> + Send + 'static>(work: fn(Finish) -> F) -> Carried {
    Carried::Told(Box::new(move |finish| drop(tokio::spawn(work(finish)))))
}

async fn log(finish: Finish) {
    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let logger = Some("conformance-fixture".to_owned());
        finish.log(Log { level: Level::Info, logger, data: json!(text) });
        sleep(PAUSE).await;
    }
    finish.done(said("Tool with logging executed successfully"));
}

async fn progress(finish: Finish) {
    for done in [0.0, 50.0, 100.0] {
        let message = Some(format!("Completed step {done} of 100"));
        finish.progress(Progress { done, total: Some(100.0), message });
        sleep(PAUSE).await;
    }
    finish.done(said("Tool with progress executed successfully"));
}

async fn let_go(finish: Finish) {
    finish.hang_up();
    sleep(AWAY).await;
    finish.done(said("Whoever reads this has come back for it."));
}
