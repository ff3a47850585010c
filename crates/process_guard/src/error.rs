//! Why a command was not started.

use std::io;
use std::path::PathBuf;

use super::environment::{DEPTH_VARIABLE, MAX_DEPTH};

#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("there is no command to start: `command` is empty")]
    Empty,
    #[error(
        "there is no program `{command}` in the folders of `PATH`: {looked}\n\
         install it, or give its whole path as `command`"
    )]
    NotInPath { command: String, looked: String },
    #[error("there is no program `{}`, which `command` names", program.display())]
    NoProgram { program: PathBuf },
    #[error("`{}`, which `command` names, is a folder and not a program", program.display())]
    IsFolder { program: PathBuf },
    #[error(
        "`{}`, which `command` names, may not be executed\n\
         if it is a program, `chmod +x` allows it", program.display()
    )]
    NotExecutable { program: PathBuf },
    #[error("there is no folder `{}`, which `cwd` names", folder.display())]
    NoFolder { folder: PathBuf },
    #[error("`{}`, which `cwd` names, is not a folder", folder.display())]
    NotFolder { folder: PathBuf },
    #[error("`{}` cannot be looked at: {source}", path.display())]
    Unseen { path: PathBuf, source: io::Error },
    #[error("`{name}` cannot be the name of a variable in `env`")]
    Variable { name: String },
    #[error(
        "this program was started by itself, through other servers, {depth} times; {MAX_DEPTH} is the most\n\
         look for an entry whose command leads back here; `{DEPTH_VARIABLE}` counts"
    )]
    TooDeep { depth: String },
    #[error(
        "too many files are open to start `{}`: {limit} are allowed (`ulimit -n`)", program.display()
    )]
    OpenFiles { program: PathBuf, limit: u64 },
    #[error(
        "the arguments and variables of `{}` are too long for the system", program.display()
    )]
    TooLong { program: PathBuf },
    #[error("the guard of `{}` could not be started from `{}`: {source}", program.display(), guard.display())]
    Guard { program: PathBuf, guard: PathBuf, source: io::Error },
    /// The runtime is going down.
    #[error("nothing is started any more: this process is ending")]
    Stopped,
}
