//! The clients that `connect` and `doctor` know: where each keeps its configuration, and what a server
//! looks like in there. One row a client. Nothing here touches a file.

use std::path::PathBuf;

use clap::ValueEnum;
use etcetera::BaseStrategy;
use etcetera::base_strategy::{choose_base_strategy, choose_native_strategy};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Windsurf,
    Codex,
    Zed,
}

/// Everything in which clients differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traits {
    /// As its makers write it.
    pub(crate) name: &'static str,
    pub(crate) format: Format,
    /// The file in a project's folder, which `--write` knows.
    pub(crate) project_file: Option<&'static str>,
    user_file: (Base, &'static str),
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

/// Where a user's file is looked for.
#[derive(Debug, Clone, Copy)]
enum Base {
    Home,
    /// Where applications keep what they know: `~/.config`, `~/Library/Application Support`, `%APPDATA%`.
    Application,
    /// Where command lines look: `~/.config` on macOS too.
    Config,
    /// The folder in `CODEX_HOME`, or `~/.codex`.
    Codex,
}

/// How a client is to start us.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
}

impl Client {
    pub(crate) const fn traits(self) -> Traits {
        const MCP_SERVERS: Format = Format::Json { servers: "mcpServers", kind: None };
        match self {
            Self::ClaudeCode => Traits {
                name: "Claude Code",
                format: MCP_SERVERS,
                project_file: Some(".mcp.json"),
                user_file: (Base::Home, ".claude.json"),
                adds_by: Some("claude mcp add"),
                has_path: true,
            },
            Self::ClaudeDesktop => Traits {
                name: "Claude Desktop",
                format: MCP_SERVERS,
                project_file: None,
                user_file: (Base::Application, "Claude/claude_desktop_config.json"),
                adds_by: None,
                has_path: false,
            },
            Self::Cursor => Traits {
                name: "Cursor",
                format: MCP_SERVERS,
                project_file: Some(".cursor/mcp.json"),
                user_file: (Base::Home, ".cursor/mcp.json"),
                adds_by: None,
                has_path: true,
            },
            Self::Vscode => Traits {
                name: "VS Code",
                format: Format::Json { servers: "servers", kind: Some("stdio") },
                project_file: Some(".vscode/mcp.json"),
                user_file: (Base::Application, "Code/User/mcp.json"),
                adds_by: None,
                has_path: true,
            },
            Self::Windsurf => Traits {
                name: "Windsurf",
                format: MCP_SERVERS,
                project_file: None,
                user_file: (Base::Home, ".codeium/windsurf/mcp_config.json"),
                adds_by: None,
                has_path: false,
            },
            Self::Codex => Traits {
                name: "Codex",
                format: Format::Toml { servers: "mcp_servers" },
                project_file: None,
                user_file: (Base::Codex, "config.toml"),
                adds_by: Some("codex mcp add"),
                has_path: true,
            },
            Self::Zed => Traits {
                name: "Zed",
                format: Format::Json { servers: "context_servers", kind: None },
                project_file: None,
                user_file: (Base::Config, "zed/settings.json"),
                adds_by: None,
                has_path: false,
            },
        }
    }

    /// The word by which the command line knows it.
    pub(crate) fn word(self) -> String {
        let value = self.to_possible_value();
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The file that holds for all of a user's projects; none where there is no home folder.
    pub(crate) fn user_file(self) -> Option<PathBuf> {
        let native = choose_native_strategy().ok()?;
        let (base, file) = self.traits().user_file;
        let folder = match base {
            Base::Home => native.home_dir().to_path_buf(),
            Base::Application if cfg!(target_os = "macos") => native.data_dir(),
            Base::Application => native.config_dir(),
            Base::Config => choose_base_strategy().ok()?.config_dir(),
            Base::Codex => match std::env::var_os("CODEX_HOME").filter(|path| !path.is_empty()) {
                Some(path) => path.into(),
                None => native.home_dir().join(".codex"),
            },
        };
        Some(folder.join(file))
    }
}
