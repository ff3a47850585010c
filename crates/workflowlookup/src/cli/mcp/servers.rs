//! The servers that a command can reach: those of the registry, or the one that was described on the command line. Nothing
//! connects here.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use registry::{Entry, Listed, Places, Registry, Standing, State, Watched};

use super::Context;
use super::ad_hoc::{self, AdHoc};
use super::refused::Refused;
use crate::cli::next::quoted;
use crate::cli::{Failure, SourceOptions, trust};

/// How somebody adds a server.
pub(super) const HOW_TO_ADD: &str = "`workflowlookup mcp import` shows the servers that your clients know, and `--write` adds \
     them; `--stdio` and `--http` call one that is in no registry";
/// Which server, and how long it may take.
#[derive(Debug, Default, Args)]
pub(crate) struct Reaching {
    /// How long it may take, connecting included: `30s`, `2m`; otherwise what its entry says
    #[arg(long, value_name = "DURATION", value_parser = patience)]
    pub(super) timeout: Option<Duration>,
    #[command(flatten)]
    pub(super) ad_hoc: AdHoc,
}

pub(super) fn patience(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time.is_zero() => Err("nothing is done in no time".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(format!("{error}; write `30s` or `2m`")),
    }
}

impl Reaching {
    pub(super) fn open(&self, context: &Context<'_>) -> Result<Servers, Failure> {
        Servers::open(&self.ad_hoc, self.timeout, context.sources)
    }
}

pub(super) struct Servers {
    pub(super) registry: Registry,
    /// Where the registry was read; none where there is none.
    places: Option<Places>,
    timeout: Option<Duration>,
    is_ad_hoc: bool,
    /// What a command must say to reach the same ones, without what is secret.
    words: Vec<String>,
    /// What is odd about the command that was typed.
    unshelled: Option<String>,
}

impl Servers {
    /// A registry that cannot be read is a fault: what it hides might be meant.
    pub(super) fn open(
        ad_hoc: &AdHoc,
        timeout: Option<Duration>,
        sources: &SourceOptions,
    ) -> Result<Self, Failure> {
        let mut servers = Self::look(ad_hoc, sources)?;
        servers.complain()?;
        servers.timeout = timeout;
        servers.apply_timeout();
        Ok(servers)
    }

    fn apply_timeout(&mut self) {
        let Some(timeout) = self.timeout else { return };
        for entry in &mut self.registry.entries {
            let own_timeout = Some(timeout);
            *entry = Arc::new(Entry { own_timeout, ..Entry::clone(entry) });
        }
    }

    /// The same, whatever is wrong with it.
    pub(super) fn look(ad_hoc: &AdHoc, sources: &SourceOptions) -> Result<Self, Failure> {
        let places = sources.registry();
        if ad_hoc.is_given() {
            let registry = ad_hoc.registry(&places.variables)?;
            let words = ad_hoc.words().into_iter();
            let words = words.map(|word| quoted(&registry.masks().hide(&word))).collect();
            let (places, timeout, unshelled) = (None, None, ad_hoc.unshelled());
            return Ok(Self { registry, places, timeout, is_ad_hoc: true, words, unshelled });
        }
        let words = places.named.iter();
        let words =
            words.flat_map(|file| ["--registry".to_owned(), quoted(&file.display().to_string())]);
        let (registry, words) = (Registry::load(&places), words.collect());
        let (places, timeout) = (Some(places), None);
        Ok(Self { registry, places, timeout, is_ad_hoc: false, words, unshelled: None })
    }

    /// What keeps the registry from being read.
    pub(super) fn complain(&self) -> Result<(), Failure> {
        let broken = self.registry.files.iter().find(|file| {
            let is_missing = file.state == State::Absent;
            matches!(file.state, State::Broken)
                || is_missing && file.kind == registry::place::Kind::Named
        });
        let Some(broken) = broken else { return Ok(()) };
        let path = broken.path.display().to_string();
        let mut message = format!("the registry `{path}` cannot be read");
        let about = self.registry.findings.iter();
        for finding in about.filter(|finding| finding.file.as_deref() == Some(&path)) {
            let _ = write!(message, "\n{finding}");
        }
        Err(Failure::Fault(anyhow!(message)))
    }

    /// What may be why a command that was typed does not start.
    pub(super) fn unshelled(&self) -> Option<&str> {
        self.unshelled.as_deref()
    }

    /// How a server is reached, as the list has it.
    pub(super) fn reached(&self, id: &str) -> Option<String> {
        let mut listed = self.registry.files.iter().flat_map(|file| &file.servers);
        let listed =
            listed.find(|listed| listed.standing == Standing::Used && listed.draft.id == id);
        listed.map(|listed| listed.draft.shown())
    }

    pub(super) fn is_ad_hoc(&self) -> bool {
        self.is_ad_hoc
    }

    /// The one server that was described on the command line, or the one that was named. Where its entry is not trusted,
    /// the person at the terminal is asked.
    pub(super) fn entry(&mut self, named: Option<&str>) -> Result<Arc<Entry>, Failure> {
        let id = if self.is_ad_hoc { ad_hoc::ID } else { named.unwrap_or_default() };
        self.ask_for_trust(id)?;
        self.find(named)
    }

    /// The same, asking nobody.
    pub(super) fn find(&self, named: Option<&str>) -> Result<Arc<Entry>, Failure> {
        let id = if self.is_ad_hoc { ad_hoc::ID } else { named.unwrap_or_default() };
        self.registry.get(id).cloned().ok_or_else(|| self.missing(id).into())
    }

    /// Asks for consent to a server that has none, where somebody sits at a terminal.
    pub(super) fn ask_for_trust(&mut self, id: &str) -> Result<(), Failure> {
        let Some(places) = self.places.as_ref().filter(|_| self.is_untrusted(id)) else {
            return Ok(());
        };
        trust::ask_for_registry(places)?;
        self.registry = Registry::load(places);
        self.apply_timeout();
        Ok(())
    }

    /// Whether only untrusted entries have an id, so that consent would help.
    fn is_untrusted(&self, id: &str) -> bool {
        let servers = self.registry.files.iter().flat_map(|file| &file.servers);
        let mut same = servers.filter(|server| server.draft.id == id).peekable();
        same.peek().is_some() && same.all(|server| server.standing == Standing::Untrusted)
    }

    fn missing(&self, id: &str) -> Refused {
        if self.is_untrusted(id) {
            return orchestrator::Error::no_server(id, &self.registry).into();
        }
        let is_meant =
            |server: &&Listed| server.draft.id == id && server.standing != Standing::Untrusted;
        let listed = self.registry.files.iter().flat_map(|file| {
            file.servers.iter().filter(is_meant).map(move |server| (file, server))
        });
        if let Some((file, server)) = listed.into_iter().next() {
            let path = file.path.display().to_string();
            if server.standing == Standing::Disabled {
                return Refused::invalid(
                    format!("`{id}` is disabled in `{path}`"),
                    "enable it there to use it",
                );
            }
            return self.unusable(&path, server);
        }
        if self.registry.is_empty() {
            let message = format!("there is no server `{id}`, for no registry names any");
            return Refused::invalid(message, HOW_TO_ADD);
        }
        orchestrator::Error::no_server(id, &self.registry).into()
    }

    /// Those that stand in the registry and cannot be used, or are not trusted, and why.
    pub(super) fn all_unusable(&self) -> Vec<(String, Refused)> {
        let files = self.registry.files.iter();
        let listed = files.flat_map(|file| file.servers.iter().map(move |server| (file, server)));
        let unusable = listed.filter(|(_, server)| server.standing == Standing::Unusable);
        let unusable = unusable.map(|(file, server)| {
            let path = file.path.display().to_string();
            (server.draft.id.clone(), self.unusable(&path, server))
        });
        let untrusted = self.registry.untrusted().map(|(_, server)| server.draft.id.clone());
        let untrusted = untrusted.filter(|id| self.is_untrusted(id));
        let untrusted = untrusted.map(|id| {
            let why = orchestrator::Error::no_server(&id, &self.registry).into();
            (id, why)
        });
        unusable.chain(untrusted).collect()
    }

    /// What is wrong with one server, and not with its neighbours.
    fn unusable(&self, path: &str, server: &Listed) -> Refused {
        let mut message = format!("`{}` in `{path}` cannot be used", server.draft.id);
        let errors = self.registry.findings.iter().filter(|finding| {
            finding.is_error()
                && self.registry.server_of(finding).is_some_and(|about| std::ptr::eq(about, server))
        });
        for finding in errors {
            let _ = write!(message, "\n{finding}");
        }
        Refused::invalid(message, "`workflowlookup mcp list` shows all that is wrong")
    }

    /// The command that calls a tool, up to its arguments.
    pub(super) fn call_to_paste(&self, server: &str, tool: &str) -> String {
        let words = match self.words.as_slice() {
            [] => String::new(),
            words => format!("{} ", words.join(" ")),
        };
        let target = match self.is_ad_hoc {
            true => quoted(tool),
            false => quoted(&format!("{server}.{tool}")),
        };
        format!("workflowlookup mcp call {words}{target}")
    }

    /// The command that logs in to a server that was described on the command line.
    pub(super) fn login_to_paste(&self) -> String {
        format!("`workflowlookup mcp login {}`", self.words.join(" "))
    }

    pub(super) fn watched(&self) -> Arc<Watched> {
        Arc::new(Watched::fixed(self.registry.clone()))
    }
}
