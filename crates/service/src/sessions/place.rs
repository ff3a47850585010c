//! Where sessions are kept: a file in the platform's state folder, or what `--store` names. The key is in the
//! state folder in either case, away from what it protects, unless somebody says where else: processes that
//! share a store, or one another's clients, share a key.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use etcetera::BaseStrategy;
use etcetera::base_strategy::choose_native_strategy;
use store::Address;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub store: StoreUrl,
    pub key: KeyPlace,
    /// The file, away from the store, that says how far it had come.
    pub anchor: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
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

/// What `--store` names. It is shown without a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    Sqlite(PathBuf),
    Postgres(Box<Address>),
}

/// The password of a PostgreSQL whose address has none, as its own programs take it.
const PASSWORD_VARIABLE: &str = "PGPASSWORD";

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("postgres" | "postgresql", _)) => {
                let address = Address::parse(url)?;
                let password = std::env::var(PASSWORD_VARIABLE).ok();
                Ok(Self::Postgres(Box::new(match password {
                    Some(password) => address.or_password(&password),
                    None => address,
                })))
            }
            _ => Err("a store is `sqlite:` and the path of a file, or \
                `postgres://USER@HOST:PORT/DATABASE`"
                .to_owned()),
        }
    }
}

impl StoreUrl {
    /// The same for a process that starts in another folder.
    pub fn absolute(&self) -> io::Result<Self> {
        match self {
            Self::Sqlite(path) => Ok(Self::Sqlite(std::path::absolute(path)?)),
            Self::Postgres(address) => Ok(Self::Postgres(address.clone())),
        }
    }
}

impl std::fmt::Display for StoreUrl {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(out, "sqlite:{}", path.display()),
            Self::Postgres(address) => write!(out, "{address}"),
        }
    }
}

impl StoreUrl {
    /// Whether there is something that could be opened without making it.
    pub(crate) fn exists(&self) -> bool {
        match self {
            Self::Sqlite(path) => path.exists(),
            Self::Postgres(_) => true,
        }
    }

    /// For messages: a file by its path alone.
    pub fn shown(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(address) => address.to_string(),
        }
    }
}

impl Place {
    /// None where the platform has no folder for us, and one is needed.
    pub fn choose(
        url: Option<&StoreUrl>,
        key_file: Option<&Path>,
        anchor: Option<&Path>,
    ) -> Option<Self> {
        let folder = state_folder();
        let store = match url {
            Some(url) => url.clone(),
            None => StoreUrl::Sqlite(folder.as_ref()?.join("sessions.db")),
        };
        let key = match key_file {
            Some(path) => KeyPlace::File(path.to_owned()),
            None if std::env::var_os(KEY_VARIABLE).is_some() => KeyPlace::Environment,
            None => KeyPlace::File(folder?.join("key")),
        };
        Some(Self { store, key, anchor: anchor.map(Path::to_owned) })
    }
}

/// The platform's folder for what we keep.
pub fn state_folder() -> Option<PathBuf> {
    let platform = choose_native_strategy().ok()?;
    let folder = platform.state_dir().unwrap_or_else(|| platform.data_dir());
    Some(folder.join("workflowlookup"))
}
