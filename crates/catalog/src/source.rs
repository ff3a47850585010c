//! Where workflows come from. Later sources win over earlier ones by id.

use std::fmt;
use std::path::PathBuf;

/// A definition inside the binary: its file name and its text.
pub type Bundled = (&'static str, &'static str);

#[derive(Debug, Clone)]
pub enum Source {
    Bundled(&'static [Bundled]),
    Folder { kind: Kind, path: PathBuf },
}

/// Why a folder is a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The user's own, in the platform's data folder.
    User,
    /// The project's, beside the working folder.
    Project,
    /// Named by `WORKFLOW_STORAGE_PATH`.
    Environment,
    /// Named by `--workflows`.
    Option,
}

impl Source {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bundled(_) => "bundled",
            Self::Folder { kind, .. } => kind.name(),
        }
    }

    /// Whether somebody asked for this very folder, and wants to know when it is not there.
    pub fn is_explicit(&self) -> bool {
        matches!(self, Self::Folder { kind: Kind::Environment | Kind::Option, .. })
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Environment => "environment",
            Self::Option => "option",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundled(_) => out.write_str("bundled"),
            Self::Folder { path, .. } => write!(out, "{}", path.display()),
        }
    }
}
