//! The spine: what can be asked of the product, whoever asks. A caller takes a snapshot, asks, and
//! reads the answer out of it; nothing is copied.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use catalog::{Beside, Catalog, Change, Shadow, Snapshot, Source, SourceState, Watch};
use engine::{Budget, Checker, Next, Progress, Verdict};
use serde::Serialize;
use workflow::limits::is_id;
use workflow::{Code, Context, Workflow};

use crate::audit::Audit;
use crate::error::Refusal;
use crate::sessions::{LazySessions, Place, Serving};
use crate::trust::WorkspaceTrust;

#[derive(Clone)]
pub struct App {
    catalog: Arc<Catalog>,
    trust: Arc<WorkspaceTrust>,
    checker: Arc<Checker>,
    sessions: Arc<LazySessions>,
}

/// What `workflow_list` returns.
#[derive(Debug, Serialize)]
pub struct Listing<'a> {
    pub workflows: Vec<Summary<'a>>,
}

#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub(crate) description: &'a str,
    pub category: &'a str,
    pub version: &'a str,
    /// Whose workflow of the same id it takes the place of: `bundled` or `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overrides: Option<&'static str>,
}

/// Which workflows to list. Without anything, all.
#[derive(Debug, Default)]
pub struct Filter {
    pub category: Option<String>,
    /// Each must occur in the id, the name, the description or the category, in any case.
    pub words: Vec<String>,
}

impl App {
    pub fn open(
        sources: Vec<Source>,
        trust: Arc<WorkspaceTrust>,
        place: Option<Place>,
        audit: Audit,
    ) -> Self {
        let app = Self::unloaded(sources, trust, place, audit, Serving::default());
        app.catalog.load();
        app.trust.end_start();
        app
    }

    /// Knows no workflow until its catalogue is loaded.
    pub fn unloaded(
        sources: Vec<Source>,
        trust: Arc<WorkspaceTrust>,
        place: Option<Place>,
        audit: Audit,
        serving: Serving,
    ) -> Self {
        let checker = Arc::<Checker>::default();
        let sessions = LazySessions::new(place, Arc::clone(&checker), audit, serving);
        let sessions = Arc::new(sessions);
        let catalog = Catalog::with_policy(sources, Arc::<WorkspaceTrust>::clone(&trust));
        Self { catalog: Arc::new(catalog), trust, checker, sessions }
    }

    /// The sessions of this user. They need no catalogue: each has its definition with it.
    pub fn sessions(&self) -> &LazySessions {
        &self.sessions
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.catalog.snapshot()
    }

    /// Loads the catalogue and keeps it current; to be carried out by whoever has the time. `loaded` is
    /// told once, `changed` what a reload changed; whoever keeps other files hears of those too.
    pub(crate) fn loading(
        &self,
        loaded: impl FnOnce(&Snapshot) + Send + 'static,
        changed: impl FnMut(&Change) + Send + 'static,
        beside: Beside,
    ) -> impl FnOnce() -> io::Result<Watch> + Send + 'static {
        let (catalog, trust) = (Arc::clone(&self.catalog), Arc::clone(&self.trust));
        move || {
            catalog.load();
            trust.end_start();
            loaded(&catalog.snapshot());
            Watch::start_with(catalog, changed, beside)
        }
    }

    pub fn next<'s>(
        &self,
        snapshot: &'s Snapshot,
        id: &str,
        progress: Progress<'s>,
        budget: &Budget,
    ) -> Result<Next<'s>, Refusal> {
        let workflow = find(snapshot, id)?;
        let next = self.checker.check_context(workflow, progress.context, budget);
        let next = next.and_then(|()| engine::next(workflow, progress, budget));
        next.map_err(|refusal| Refusal::engine(id, refusal))
    }

    pub fn check(
        &self,
        snapshot: &Snapshot,
        id: &str,
        step: &str,
        output: &str,
        context: Option<&Context>,
        budget: &Budget,
    ) -> Result<Verdict, Refusal> {
        let workflow = find(snapshot, id)?;
        let verdict = self.checker.check(workflow, step, output, context, budget);
        verdict.map_err(|refusal| {
            let is_schema = matches!(refusal, engine::Refusal::MalformedSchema { .. });
            let all = snapshot.get(id).map(|entry| &*entry.findings).unwrap_or_default();
            let behind = all.iter().filter(|finding| is_schema && finding.code == Code::BadSchema);
            let findings = behind.cloned().collect();
            Refusal::Engine { id: id.to_owned(), refusal, findings }
        })
    }
}

/// The folders that somebody has asked for and that cannot be read, each in a sentence.
pub fn missing_folders(snapshot: &Snapshot) -> Vec<String> {
    let wanted = snapshot.sources.iter().filter(|report| report.source.is_explicit());
    let messages = wanted.filter_map(|report| match report.state {
        SourceState::Read => None,
        SourceState::Missing => Some(format!("the folder `{}` does not exist", report.source)),
        SourceState::Unreadable => Some(format!("the folder `{}` cannot be read", report.source)),
    });
    messages.collect()
}

pub fn list<'s>(snapshot: &'s Snapshot, filter: &Filter) -> Listing<'s> {
    let wanted = snapshot.workflows().filter(|workflow| filter.accepts(workflow));
    let overrides: HashMap<&str, &'static str> =
        snapshot.overrides().map(|shadow| (&*shadow.entry.id, whose(snapshot, shadow))).collect();
    let summary = |workflow: &'s Workflow| {
        let overrides = overrides.get(&*workflow.id).copied();
        Summary { overrides, ..Summary::of(workflow) }
    };
    Listing { workflows: wanted.map(summary).collect() }
}

fn whose(snapshot: &Snapshot, shadow: &Shadow) -> &'static str {
    snapshot.sources[shadow.entry.source].source.name()
}

/// Whose workflow another file takes the place of, where one does: `bundled` or `user`.
pub fn overridden(snapshot: &Snapshot, workflow: &Workflow) -> Option<&'static str> {
    let mut overrides = snapshot.overrides();
    let shadow = overrides.find(|shadow| *shadow.entry.id == *workflow.id)?;
    Some(whose(snapshot, shadow))
}

/// The workflow with this id, or why it cannot be used.
pub fn find<'s>(snapshot: &'s Snapshot, id: &str) -> Result<&'s Workflow, Refusal> {
    let Some(entry) = snapshot.get(id) else {
        if !is_id(id) {
            return Err(Refusal::MalformedId { id: id.to_owned() });
        }
        let nearest = snapshot.nearest(id).map(str::to_owned);
        return Err(Refusal::WorkflowNotFound { id: id.to_owned(), nearest });
    };
    match &entry.workflow {
        Some(workflow) => Ok(workflow),
        None => Err(Refusal::unusable(id, &entry.findings)),
    }
}

/// The first of the completed steps that an earlier one equals.
pub fn repeated_step(completed: &[String]) -> Option<&str> {
    let mut seen = HashSet::with_capacity(completed.len());
    completed.iter().map(String::as_str).find(|step| !seen.insert(*step))
}

impl<'a> Summary<'a> {
    fn of(workflow: &'a Workflow) -> Self {
        Self {
            id: &workflow.id,
            name: &workflow.name,
            description: &workflow.description,
            category: workflow.category(),
            version: &workflow.version,
            overrides: None,
        }
    }
}

impl Filter {
    fn accepts(&self, workflow: &Workflow) -> bool {
        let category = workflow.category().to_lowercase();
        let in_category =
            self.category.as_ref().is_none_or(|wanted| wanted.to_lowercase() == category);
        in_category
            && self.words.iter().all(|word| {
                let word = word.to_lowercase();
                let texts = [&*workflow.id, &*workflow.name, &*workflow.description, &*category];
                texts.iter().any(|text| text.to_lowercase().contains(&word))
            })
    }
}
