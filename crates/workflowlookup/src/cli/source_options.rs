//! Where workflows come from, as the command line and the environment say.

use std::path::PathBuf;

use catalog::{Kind, Source};
use clap::Args;
use etcetera::BaseStrategy;

use super::{Terminal, terminal::YELLOW};
use crate::app::{self, App};
use crate::bundled::BUNDLED;

#[derive(Debug, Args)]
pub(crate) struct SourceOptions {
    /// One more folder of workflows; may be given several times. It wins over all others
    #[arg(long, value_name = "DIR", global = true)]
    workflows: Vec<PathBuf>,
    /// Leave out the workflows that are part of the product
    #[arg(long, global = true)]
    no_bundled: bool,
}

impl SourceOptions {
    /// The sources in their order: later ones win.
    fn sources(&self) -> Vec<Source> {
        let folder = |kind, path: PathBuf| Source::Folder { kind, path };
        let mut sources = Vec::new();
        if !self.no_bundled {
            sources.push(Source::Bundled(BUNDLED));
        }
        // Without a home folder there are no workflows of the user's.
        if let Ok(platform) = etcetera::base_strategy::choose_native_strategy() {
            let path = platform.data_dir().join("workflowlookup").join("workflows");
            sources.push(folder(Kind::User, path));
        }
        for path in ["workflows", ".workflowlookup/workflows"] {
            sources.push(folder(Kind::Project, path.into()));
        }
        if let Some(paths) = std::env::var_os("WORKFLOW_STORAGE_PATH") {
            let paths = std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty());
            sources.extend(paths.map(|path| folder(Kind::Environment, path)));
        }
        sources.extend(self.workflows.iter().map(|path| folder(Kind::Option, path.clone())));
        without_repetition(sources)
    }

    /// The same options as they were typed, for a command that goes on from here.
    pub(crate) fn words(&self) -> Vec<String> {
        let folders = self
            .workflows
            .iter()
            .flat_map(|path| ["--workflows".to_owned(), path.display().to_string()]);
        let no_bundled = self.no_bundled.then(|| "--no-bundled".to_owned());
        no_bundled.into_iter().chain(folders).collect()
    }

    /// Leaves the loading for later.
    pub(crate) fn unloaded(&self) -> App {
        App::unloaded(self.sources())
    }

    /// Loads everything, and says on standard error which folder that was asked for is not there.
    pub(crate) fn open(&self, terminal: &mut Terminal) -> std::io::Result<App> {
        let app = App::open(self.sources());
        for message in app::missing_folders(&app.snapshot()) {
            terminal.complain(YELLOW, "warning", &message, None)?;
        }
        Ok(app)
    }
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
