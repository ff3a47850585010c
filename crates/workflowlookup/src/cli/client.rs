//! The clients that `connect`, `doctor` and `mcp import` know. Where each keeps its servers is the table of
//! `registry::clients`; here is what else there is to know for who writes there.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use etcetera::BaseStrategy;
use etcetera::base_strategy::{choose_base_strategy, choose_native_strategy};
pub(crate) use registry::clients::Client;
use registry::clients::Folders;
use registry::{self, Variables};

/// The command that serves an agent. Its sessions keep a record, so the tools that keep none are hidden.
pub(crate) const SERVE: [&str; 3] = ["serve", "--tools", "sessions"];

/// How a server is put into a client's configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connecting {
    pub(crate) format: Format,
    /// The file in a project's folder, which `--write` knows.
    pub(crate) project_file: Option<&'static str>,
    /// The client's own command that adds a server.
    pub(crate) adds_by: Option<&'static str>,
    /// It is started from a shell, or its file goes with a project to other machines: a name on the PATH
    /// will do. An application that is started from a dock often has another PATH.
    pub(crate) has_path: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, perhaps with comments: the servers under this key, each with this `type`, if any.
    Json { servers: &'static str, kind: Option<&'static str> },
    /// TOML: each server is a table in this one.
    Toml { servers: &'static str },
}

/// How a client is to start us.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
}

pub(crate) fn connecting(client: Client) -> Connecting {
    let (kind, writes_project, adds_by, has_path) = match client {
        Client::ClaudeCode => (None, true, Some("claude mcp add"), true),
        Client::ClaudeDesktop | Client::Windsurf | Client::Zed => (None, false, None, false),
        Client::Cursor => (None, true, None, true),
        Client::Vscode => (Some("stdio"), true, None, true),
        Client::Codex => (None, false, Some("codex mcp add"), true),
    };
    let traits = client.traits();
    let format = match (traits.format, traits.servers) {
        (registry::Format::Json, servers) => Format::Json { servers, kind },
        (registry::Format::Toml, servers) => Format::Toml { servers },
    };
    let project_file = traits.project_file.filter(|_| writes_project);
    Connecting { format, project_file, adds_by, has_path }
}

/// Reads the word of a client.
pub(crate) fn parser() -> impl TypedValueParser<Value = Client> {
    let words = PossibleValuesParser::new(Client::ALL.iter().map(|client| client.word()));
    words.try_map(|word| Client::by_word(&word).ok_or("there is no such client"))
}

/// The folders in which clients keep their files; none where there is no home folder.
pub(crate) fn folders() -> Option<Folders> {
    let native = choose_native_strategy().ok()?;
    let named = |name: &str| {
        let path = std::env::var_os(name).filter(|path| !path.is_empty());
        path.map(PathBuf::from)
    };
    Some(Folders {
        home: native.home_dir().to_path_buf(),
        application: if cfg!(target_os = "macos") {
            native.data_dir()
        } else {
            native.config_dir()
        },
        config: choose_base_strategy().ok()?.config_dir(),
        claude: named("CLAUDE_CONFIG_DIR"),
        codex: named("CODEX_HOME"),
    })
}

/// The file that holds for all of a user's projects; none where there is no home folder.
pub(crate) fn user_file(client: Client) -> Option<PathBuf> {
    folders().map(|folders| client.user_file(&folders))
}

/// What variables in such files mean.
pub(crate) fn variables() -> Variables {
    let home = choose_native_strategy().ok().map(|native| native.home_dir().to_path_buf());
    Variables::of_process(home, std::env::current_dir().ok())
}
