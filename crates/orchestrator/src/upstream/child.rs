//! A child that speaks MCP, and how it came to its end.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use process_guard::stderr::{LastWords, drain};
use process_guard::{Guarded, SpawnError};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::connect::Settings;
use crate::wire::Tap;

/// A child that has closed its output ends as a rule; this is how long its status is waited for.
const STATUS: Duration = Duration::from_secs(1);
/// How long its last words may take to come through.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What there is to know and to do about a child, beside talking to it. One that is dropped ends at once.
pub(super) struct Kin {
    /// Nothing when its end has begun.
    guarded: Option<Guarded>,
    /// Where it ends. The upstream is not closed as long as this is there, whoever has it.
    tasks: TaskTrackerToken,
    runtime: Handle,
    status: Option<ExitStatus>,
    last_words: LastWords,
    drained: JoinHandle<()>,
}

/// Starts the command of an entry. Whoever gives up meanwhile leaves no child either.
pub(super) async fn start(
    settings: &Arc<Settings>,
    tap: Tap,
) -> Result<(ChildStdin, ChildStdout, Kin), SpawnError> {
    let started = start_now(settings.clone(), tap);
    let started = settings.tasks.spawn_on(started, &settings.runtime).await;
    started.unwrap_or(Err(SpawnError::Stopped))
}

async fn start_now(
    settings: Arc<Settings>,
    tap: Tap,
) -> Result<(ChildStdin, ChildStdout, Kin), SpawnError> {
    let spawn = settings.connect.to_spawn().ok_or(SpawnError::Stopped)?;
    let child = process_guard::spawn(&spawn, &settings.guard).await?;
    let last_words = LastWords::default();
    let tell = move |line: &str| tap.complained(line.as_bytes());
    let drained = tokio::spawn(drain(child.stderr, last_words.clone(), tell));
    let (tasks, runtime) = (settings.tasks.token(), settings.runtime.clone());
    let guarded = Some(child.guarded);
    let kin = Kin { guarded, tasks, runtime, status: None, last_words, drained };
    Ok((child.stdin, child.stdout, kin))
}

impl Kin {
    pub(super) fn last_words(&self) -> LastWords {
        self.last_words.clone()
    }

    /// Returns when the child has ended; never, where there is none.
    pub(super) async fn exited(kin: Option<&mut Self>) {
        let Some(kin) = kin else { return std::future::pending().await };
        if let Some(guarded) = &mut kin.guarded {
            kin.status = guarded.exited().await.ok();
        }
    }

    /// What is said of it once it does not speak any more; where it lives, what it has done instead.
    pub(super) async fn epitaph(&mut self, did: &str) -> String {
        if self.status.is_none()
            && let Some(guarded) = &mut self.guarded
            && let Ok(status) = timeout(STATUS, guarded.exited()).await
        {
            self.status = status.ok();
        }
        let _ = timeout(LAST_WORDS, &mut self.drained).await;
        match self.status {
            Some(status) => {
                format!(
                    "its process ended with {}{}",
                    process_guard::shown(status),
                    self.last_words
                )
            }
            None => format!("its process {did}{}", self.last_words),
        }
    }

    /// Ends it politely.
    pub(super) async fn end(mut self) {
        if let Some(guarded) = self.guarded.take() {
            guarded.end().await;
        }
    }

    pub(super) async fn end_at_once(mut self) {
        if let Some(guarded) = self.guarded.take() {
            guarded.end_at_once().await;
        }
    }
}

impl Drop for Kin {
    fn drop(&mut self) {
        if let Some(guarded) = self.guarded.take() {
            self.tasks.task_tracker().spawn_on(guarded.end_at_once(), &self.runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::task::TaskTracker;

    use super::*;

    /// As what a task leaves that nobody waits for any more.
    #[tokio::test]
    async fn nothing_is_closed_while_a_child_is_there() {
        let tasks = TaskTracker::new();
        let sleep = tokio::process::Command::new("sleep").arg("600").spawn().unwrap();
        let kin = Kin {
            guarded: Some(Guarded::new(sleep)),
            tasks: tasks.token(),
            runtime: Handle::current(),
            status: None,
            last_words: LastWords::default(),
            drained: tokio::spawn(async {}),
        };
        tasks.close();
        assert!(timeout(Duration::from_millis(20), tasks.wait()).await.is_err());
        drop(kin);
        timeout(Duration::from_secs(60), tasks.wait()).await.unwrap();
    }
}
