//! The clients whose files we read: where each keeps its servers, on Linux, macOS and Windows. One row a client. Whoever
//! writes into these files begins here, too.

use std::path::{Path, PathBuf};

use super::finding::Code;
use super::place;
use super::read::{Format, Reader, Reading};
use super::variables::Variables;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Windsurf,
    Codex,
    Zed,
}

/// What is to be known about a client to find its servers.
#[derive(Debug, Clone, Copy)]
pub struct Traits {
    /// The word by which a command line knows it.
    pub word: &'static str,
    /// As its makers write it.
    pub name: &'static str,
    pub format: Format,
    /// The key under which the servers are.
    pub servers: &'static str,
    /// The file in a project's folder.
    pub project_file: Option<&'static str>,
    user_file: (Base, &'static str),
}

/// Where a user's file is looked for.
#[derive(Debug, Clone, Copy)]
enum Base {
    Home,
    Application,
    Config,
    Claude,
    Codex,
}

/// The folders of a user. Which they are, the platform says.
#[derive(Debug, Clone)]
pub struct Folders {
    pub home: PathBuf,
    /// Where applications keep what they know: `~/.config`, `~/Library/Application Support`, `%APPDATA%`.
    pub application: PathBuf,
    /// Where command lines look: `~/.config` on macOS too.
    pub config: PathBuf,
    /// What `CLAUDE_CONFIG_DIR` says, and `CODEX_HOME`.
    pub claude: Option<PathBuf>,
    pub codex: Option<PathBuf>,
}

/// For whom a file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Project,
    User,
}

/// A client's file that has servers in it, or that cannot be read.
#[derive(Debug, Clone)]
pub struct Found {
    /// Nothing where the file was named.
    pub client: Option<Client>,
    pub path: PathBuf,
    pub scope: Scope,
    pub reading: Reading,
}

impl Client {
    pub const ALL: &[Self] = &[
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::Vscode,
        Self::Windsurf,
        Self::Codex,
        Self::Zed,
    ];

    pub const fn traits(self) -> Traits {
        const MAP: &str = "mcpServers";
        const JSON: Format = Format::Json;
        match self {
            Self::ClaudeCode => Traits {
                word: "claude-code",
                name: "Claude Code",
                format: JSON,
                servers: MAP,
                project_file: Some(".mcp.json"),
                user_file: (Base::Claude, ".claude.json"),
            },
            Self::ClaudeDesktop => Traits {
                word: "claude-desktop",
                name: "Claude Desktop",
                format: JSON,
                servers: MAP,
                project_file: None,
                user_file: (Base::Application, "Claude/claude_desktop_config.json"),
            },
            Self::Cursor => Traits {
                word: "cursor",
                name: "Cursor",
                format: JSON,
                servers: MAP,
                project_file: Some(".cursor/mcp.json"),
                user_file: (Base::Home, ".cursor/mcp.json"),
            },
            Self::Vscode => Traits {
                word: "vscode",
                name: "VS Code",
                format: JSON,
                servers: "servers",
                project_file: Some(".vscode/mcp.json"),
                user_file: (Base::Application, "Code/User/mcp.json"),
            },
            Self::Windsurf => Traits {
                word: "windsurf",
                name: "Windsurf",
                format: JSON,
                servers: MAP,
                project_file: None,
                user_file: (Base::Home, ".codeium/windsurf/mcp_config.json"),
            },
            Self::Codex => Traits {
                word: "codex",
                name: "Codex",
                format: Format::Toml,
                servers: "mcp_servers",
                project_file: Some(".codex/config.toml"),
                user_file: (Base::Codex, "config.toml"),
            },
            Self::Zed => Traits {
                word: "zed",
                name: "Zed",
                format: JSON,
                servers: "context_servers",
                project_file: Some(".zed/settings.json"),
                user_file: (Base::Config, "zed/settings.json"),
            },
        }
    }

    pub fn word(self) -> &'static str {
        self.traits().word
    }

    pub fn by_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|client| client.word() == word)
    }

    /// The file that holds for all of a user's projects.
    pub fn user_file(self, folders: &Folders) -> PathBuf {
        let Folders { home, application, config, claude, codex } = folders;
        let (base, file) = self.traits().user_file;
        let folder = match base {
            Base::Home => home.clone(),
            Base::Application => application.clone(),
            Base::Config => config.clone(),
            Base::Claude => claude.as_ref().unwrap_or(home).clone(),
            Base::Codex => codex.clone().unwrap_or_else(|| home.join(".codex")),
        };
        folder.join(file)
    }

    /// Its files that have servers in them: the project's first, as it counts first for the clients.
    pub fn found(
        self,
        folders: Option<&Folders>,
        project: &Path,
        variables: &Variables,
    ) -> Vec<Found> {
        let of_project =
            self.traits().project_file.map(|file| (Scope::Project, project.join(file)));
        let of_user = folders.map(|folders| (Scope::User, self.user_file(folders)));
        let files = of_project.into_iter().chain(of_user);
        let found = files.filter_map(|(scope, path)| {
            let base = if scope == Scope::Project { Some(project) } else { None };
            look(Some(self), path, scope, base, variables)
        });
        // A home folder may be a project, too.
        let real = |found: &Found| found.path.canonicalize().ok();
        found.fold(Vec::new(), |mut found, next| {
            let is_other = |earlier| real(earlier).is_none_or(|path| Some(path) != real(&next));
            if found.iter().all(is_other) {
                found.push(next);
            }
            found
        })
    }
}

/// Everything in all clients' files. Files are only read.
pub fn found(folders: Option<&Folders>, project: &Path, variables: &Variables) -> Vec<Found> {
    Client::ALL.iter().flat_map(|client| client.found(folders, project, variables)).collect()
}

/// One file, whoever's it is; nothing where it is not there, or has no place for servers.
pub fn named(path: &Path, variables: &Variables) -> Option<Found> {
    look(None, path.to_path_buf(), Scope::User, path.parent(), variables)
}

fn look(
    client: Option<Client>,
    path: PathBuf,
    scope: Scope,
    base: Option<&Path>,
    variables: &Variables,
) -> Option<Found> {
    let reading = match place::read(&path) {
        Ok(None) => return None,
        Ok(Some(content)) => {
            let file = path.display().to_string();
            let format = Format::of(&path);
            let reader = Reader { file: Some(&file), format, base, variables };
            reader.read(&content.text)
        }
        Err(finding) => Reading { findings: vec![finding], ..Reading::default() },
    };
    // Most of what clients keep has nothing to do with servers; an empty file has none either.
    let has_no_place = reading.findings.iter().any(|finding| finding.code == Code::Shape);
    if client.is_some() && !reading.is_whole && has_no_place {
        return None;
    }
    Some(Found { client, path, scope, reading })
}
