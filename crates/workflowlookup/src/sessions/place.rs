//! Where sessions are kept: a file in the platform's state folder, or the one that `--store` names. The key is in the
//! state folder in either case, away from the file that it protects.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use etcetera::BaseStrategy;
use etcetera::base_strategy::choose_native_strategy;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) database: PathBuf,
    pub(crate) key: PathBuf,
}

/// What `--store` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    Sqlite(PathBuf),
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            _ => Err("a store is `sqlite:` and the path of a file".to_owned()),
        }
    }
}

impl StoreUrl {
    /// The same for a process that starts in another folder.
    pub(crate) fn absolute(&self) -> io::Result<Self> {
        match self {
            Self::Sqlite(path) => Ok(Self::Sqlite(std::path::absolute(path)?)),
        }
    }
}

impl std::fmt::Display for StoreUrl {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(out, "sqlite:{}", path.display()),
        }
    }
}

impl Place {
    /// None where the platform has no folder for us.
    pub(crate) fn choose(url: Option<&StoreUrl>) -> Option<Self> {
        let platform = choose_native_strategy().ok()?;
        let folder = platform.state_dir().unwrap_or_else(|| platform.data_dir());
        let folder = folder.join("workflowlookup");
        let database = match url {
            Some(StoreUrl::Sqlite(path)) => path.clone(),
            None => folder.join("sessions.db"),
        };
        Some(Self { database, key: folder.join("key") })
    }
}
