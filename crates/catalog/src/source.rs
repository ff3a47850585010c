//! Where workflows come from. Later sources win over earlier ones by id.

use std::fmt;
use std::path::{Path, PathBuf};

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

/// The SHA-256 of a file's content.
pub type Digest = [u8; 32];

/// Decides which files may take the place of a workflow of the same id that is trusted: one of the product's, of the
/// user's own, or of a file that may do so itself.
pub trait OverridePolicy: Send + Sync {
    fn may_override(&self, kind: Kind, path: &Path, digest: &Digest) -> bool;

    /// Called once for each change of a file whose earlier, trusted content stays in effect.
    fn on_withheld(&self, _: &Path) {}
}

/// Without anybody to ask, a project may not.
pub(crate) struct NoProject;

impl OverridePolicy for NoProject {
    fn may_override(&self, kind: Kind, _: &Path, _: &Digest) -> bool {
        kind != Kind::Project
    }
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
