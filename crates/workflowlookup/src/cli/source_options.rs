//! Where workflows come from, where sessions are kept and where other servers are named, as the command line and the
//! environment say.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use catalog::{Catalog, Kind, Snapshot, Source};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args};
use etcetera::BaseStrategy;
use registry::Places;

use super::{Terminal, client, terminal::YELLOW};
use service::app::{self, App};
use service::audit::Audit;
use service::bundled::BUNDLED;
use service::error::Refusal;
use service::sessions::{Place, Serving, StoreUrl};
use service::trust::{TrustRecord, WorkspaceTrust, is_in_workspace};

/// Where sessions are kept, where no option says so: an address may have a password in it, which the list of processes
/// would show.
pub(crate) const STORE_VARIABLE: &str = "WORKFLOWLOOKUP_STORE";

/// Which servers can be called, where no option says so.
pub(crate) const REGISTRY_VARIABLE: &str = "WORKFLOWLOOKUP_REGISTRY";

/// Where the anchor of the store is, where no option says so.
pub(crate) const ANCHOR_VARIABLE: &str = "WORKFLOWLOOKUP_ANCHOR";

#[derive(Debug, Default, Args)]
pub(crate) struct SourceOptions {
    /// One more folder of workflows; may be given several times. It wins over all others
    #[arg(long, value_name = "DIR", global = true)]
    workflows: Vec<PathBuf>,
    /// Leave out the workflows that are part of the product
    #[arg(long, global = true)]
    no_bundled: bool,
    /// Where sessions are kept, as `sqlite:PATH` or `postgres://USER@HOST/DATABASE`; otherwise a file in the platform's
    /// state folder
    #[arg(long, value_name = "STORE", global = true, env = STORE_VARIABLE, hide_env = true, value_parser = StoreReader)]
    store: Option<StoreUrl>,
    /// The key that sessions and handshakes are sealed with; otherwise WORKFLOWLOOKUP_KEY, or a file in the state folder
    #[arg(long, value_name = "FILE", global = true)]
    key_file: Option<PathBuf>,
    /// A file away from the store that says how far it has come, so that a store that was rolled back is noticed;
    /// otherwise WORKFLOWLOOKUP_ANCHOR, or none
    #[arg(long, value_name = "FILE", global = true, env = ANCHOR_VARIABLE, hide_env = true)]
    anchor: Option<PathBuf>,
    /// Where decisions and refusals are noted; otherwise WORKFLOWLOOKUP_AUDIT_LOG, or a file in the state folder. `-` is
    /// standard error
    #[arg(long, value_name = "FILE", global = true)]
    audit_log: Option<PathBuf>,
    /// The file that names other MCP servers; otherwise WORKFLOWLOOKUP_REGISTRY, or `mcp.registry.json` in the current
    /// folder and then in the platform's configuration folder
    #[arg(long, value_name = "FILE", global = true, env = REGISTRY_VARIABLE, hide_env = true)]
    registry: Option<PathBuf>,
}

/// Reads `--store`. What cannot be read is not repeated: it may have a password in it.
#[derive(Debug, Clone, Copy)]
struct StoreReader;

impl TypedValueParser for StoreReader {
    type Value = StoreUrl;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<StoreUrl, clap::Error> {
        let text = value.to_str().ok_or_else(|| "it is not UTF-8".to_owned());
        text.and_then(str::parse).map_err(|why| {
            let message = format!("what `--store` names cannot be used: {why}");
            command.clone().error(ErrorKind::ValueValidation, message)
        })
    }
}

impl SourceOptions {
    /// The sources in their order: later ones win.
    fn sources(&self) -> Vec<Source> {
        self.sources_in(Path::new(""))
    }

    /// The same for another project.
    fn sources_in(&self, project: &Path) -> Vec<Source> {
        let folder = |kind, path: PathBuf| Source::Folder { kind, path };
        let mut sources = Vec::new();
        if !self.no_bundled {
            sources.push(Source::Bundled(BUNDLED));
        }
        // Without a home folder there are no workflows of the user's.
        if let Ok(platform) = etcetera::base_strategy::choose_native_strategy() {
            let path = platform.data_dir().join("workflowlookup").join("workflows");
            // What lies inside the workspace is not the user's own.
            let kind = if is_in_workspace(&path) { Kind::Project } else { Kind::User };
            sources.push(folder(kind, path));
        }
        for path in ["workflows", ".workflowlookup/workflows"] {
            sources.push(folder(Kind::Project, project.join(path)));
        }
        if let Some(paths) = std::env::var_os("WORKFLOW_STORAGE_PATH") {
            let paths = std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty());
            sources.extend(paths.map(|path| folder(Kind::Environment, path)));
        }
        sources.extend(self.workflows.iter().map(|path| folder(Kind::Option, path.clone())));
        without_repetition(sources)
    }

    fn place(&self) -> Option<Place> {
        Place::choose(self.store.as_ref(), self.key_file.as_deref(), self.anchor.as_deref())
    }

    /// The same options as they were typed, for a command that goes on from here.
    pub(crate) fn words(&self) -> Vec<String> {
        let folders = self
            .workflows
            .iter()
            .flat_map(|path| ["--workflows".to_owned(), path.display().to_string()]);
        let no_bundled = self.no_bundled.then(|| "--no-bundled".to_owned());
        let registry = self.registry.iter();
        let registry =
            registry.flat_map(|file| ["--registry".to_owned(), file.display().to_string()]);
        no_bundled.into_iter().chain(folders).chain(registry).chain(self.store_words()).collect()
    }

    /// Of these, what a command needs that goes on with a session: it has its definition with it.
    pub(crate) fn store_words(&self) -> Vec<String> {
        let store = self.store.iter().flat_map(|store| ["--store".to_owned(), store.to_string()]);
        let key = self.key_file.iter();
        let key = key.flat_map(|key| ["--key-file".to_owned(), key.display().to_string()]);
        let anchor = self.anchor.iter();
        let anchor = anchor.flat_map(|file| ["--anchor".to_owned(), file.display().to_string()]);
        let audit = self.audit_log.iter();
        let audit = audit.flat_map(|file| ["--audit-log".to_owned(), file.display().to_string()]);
        store.chain(key).chain(anchor).chain(audit).collect()
    }

    /// The same options for a process that starts in another folder.
    pub(crate) fn absolute(&self) -> io::Result<Self> {
        let workflows = self.workflows.iter().map(|path| absolute(path));
        Ok(Self {
            workflows: workflows.collect::<io::Result<_>>()?,
            no_bundled: self.no_bundled,
            store: self.store.as_ref().map(StoreUrl::absolute).transpose()?,
            key_file: self.key_file.as_deref().map(std::path::absolute).transpose()?,
            anchor: self.anchor.as_deref().map(std::path::absolute).transpose()?,
            audit_log: match self.audit_log.as_deref() {
                Some(path) if path != Path::new("-") => Some(std::path::absolute(path)?),
                as_it_is => as_it_is.map(Path::to_owned),
            },
            registry: self.registry.as_deref().map(std::path::absolute).transpose()?,
        })
    }

    /// Refuses options that were typed and not taken: given on both sides of a command, only the later ones are.
    pub(crate) fn check(&self, typed: impl Iterator<Item = OsString>) -> Result<(), Refusal> {
        let is_one = |word: &OsString| {
            word == "--workflows" || word.to_string_lossy().starts_with("--workflows=")
        };
        let typed = typed.take_while(|word| word != "--").filter(is_one).count();
        if typed <= self.workflows.len() {
            return Ok(());
        }
        Err(Refusal::InvalidParams {
            details: "`--workflows` stands before the command and behind it".to_owned(),
            hint: Some("give all of them on one side".to_owned()),
        })
    }

    /// The folders that were typed.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.workflows
    }

    /// Where other servers are named.
    pub(crate) fn registry(&self) -> Places {
        // As it would be typed: findings name the file.
        self.registry_in(Path::new(""))
    }

    /// The same for another project, as far as it is trusted by the record alone.
    pub(crate) fn registry_to_review(&self, project: &Path) -> Places {
        Places { trust: Some(recorded_trust()), ..self.registry_in(project) }
    }

    fn registry_in(&self, project: &Path) -> Places {
        let user = etcetera::base_strategy::choose_native_strategy().ok();
        Places {
            named: self.registry.clone(),
            project: Some(project.to_owned()),
            user: user.map(|platform| platform.config_dir().join("workflowlookup")),
            variables: client::variables(),
            trust: Some(self.trust()),
        }
    }

    /// The workflows that another project has, as far as they are trusted by the record alone.
    pub(crate) fn snapshot_to_review(&self, project: &Path) -> Arc<Snapshot> {
        let catalog = Catalog::with_policy(self.sources_in(project), recorded_trust());
        catalog.load();
        catalog.snapshot()
    }

    /// What is trusted, with the content that named files have now.
    fn trust(&self) -> Arc<WorkspaceTrust> {
        WorkspaceTrust::new(TrustRecord::in_state_folder(), self.registry.as_deref())
    }

    /// Leaves the loading for later.
    pub(crate) fn unloaded(&self) -> App {
        self.serving(Serving::default())
    }

    /// The same for a server.
    pub(crate) fn serving(&self, serving: Serving) -> App {
        App::unloaded(self.sources(), self.trust(), self.place(), self.audit(), serving)
    }

    pub(crate) fn audit(&self) -> Audit {
        Audit::choose(self.audit_log.as_deref())
    }

    /// Loads everything, and leaves it to the caller to say what is missing.
    pub(crate) fn load(&self) -> App {
        App::open(self.sources(), self.trust(), self.place(), self.audit())
    }

    /// Loads everything, and says on standard error which folder that was asked for is not there.
    pub(crate) fn open(&self, terminal: &mut Terminal) -> io::Result<App> {
        let app = self.load();
        for message in app::missing_folders(&app.snapshot()) {
            terminal.complain(YELLOW, "warning", &message, None)?;
        }
        Ok(app)
    }
}

fn recorded_trust() -> Arc<WorkspaceTrust> {
    WorkspaceTrust::by_record(TrustRecord::in_state_folder())
}

/// The path from the root. Steps upward are followed, where there is something to follow; a link in the
/// path stays one otherwise, since its owner may turn it elsewhere.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    if path.components().any(|part| part == Component::ParentDir)
        && let Ok(path) = std::fs::canonicalize(path)
    {
        return Ok(path);
    }
    std::path::absolute(path)
}

/// A folder that is named twice counts once, where it is named last: otherwise its files would hide
/// themselves.
fn without_repetition(sources: Vec<Source>) -> Vec<Source> {
    let place = |source: &Source| match source {
        Source::Folder { path, .. } => std::fs::canonicalize(path).ok(),
        Source::Bundled(_) => None,
    };
    let places: Vec<Option<PathBuf>> = sources.iter().map(place).collect();
    let numbered = sources.into_iter().enumerate();
    let kept = numbered.filter(|(at, _)| {
        let place = &places[*at];
        place.is_none() || !places[at + 1..].contains(place)
    });
    kept.map(|(_, source)| source).collect()
}
