//! Where sessions are kept: a file in the platform's state folder, or the one that `--store` names. The key is in the
//! state folder in either case, away from the file that it protects, unless somebody says where else: processes that
//! share a store, or one another's clients, share a key.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use etcetera::BaseStrategy;
use etcetera::base_strategy::choose_native_strategy;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) database: PathBuf,
    pub(crate) key: KeyPlace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// Made on first use.
    File(PathBuf),
    /// In [`KEY_VARIABLE`].
    Environment,
}

/// The key itself, as 64 hexadecimal digits.
pub(crate) const KEY_VARIABLE: &str = "WORKFLOWLOOKUP_KEY";

impl std::fmt::Display for KeyPlace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(out, "{}", path.display()),
            Self::Environment => out.write_str(KEY_VARIABLE),
        }
    }
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
    /// None where the platform has no folder for us, and one is needed.
    pub(crate) fn choose(url: Option<&StoreUrl>, key_file: Option<&Path>) -> Option<Self> {
        let folder = state_folder();
        let database = match url {
            Some(StoreUrl::Sqlite(path)) => path.clone(),
            None => folder.as_ref()?.join("sessions.db"),
        };
        let key = match key_file {
            Some(path) => KeyPlace::File(path.to_owned()),
            None if std::env::var_os(KEY_VARIABLE).is_some() => KeyPlace::Environment,
            None => KeyPlace::File(folder?.join("key")),
        };
        Some(Self { database, key })
    }
}

/// The platform's folder for what we keep.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let platform = choose_native_strategy().ok()?;
    let folder = platform.state_dir().unwrap_or_else(|| platform.data_dir());
    Some(folder.join("workflowlookup"))
}
