//! Which executable this is, and whether it is the one that others would start by its name.

use super::{Check, Level};
use crate::cli::program;

const ABOUT: &str = "executable";

pub(super) fn look() -> Vec<Check> {
    let own = match program::own_path() {
        Ok(own) => own,
        Err(error) => {
            let message = format!("cannot find out where this executable is: {error}");
            return vec![Check::new(ABOUT, Level::Problem, message)];
        }
    };
    let version = env!("CARGO_PKG_VERSION");
    let shown = own.display();
    let own_version = Check::new(ABOUT, Level::Ok, format!("this is version {version}, `{shown}`"));
    let on_path = match program::on_path(program::NAME) {
        Some(found) if program::is_same(&found, &own) => {
            Check::new(ABOUT, Level::Ok, "`workflowlookup` on your PATH is this one")
        }
        Some(found) => {
            let found = found.display();
            let message = format!("`workflowlookup` on your PATH is another one, `{found}`");
            Check::new(ABOUT, Level::Warning, message)
                .hint("remove one of them, or let agents start this one by its path")
        }
        None => {
            let folder = own.parent().map(|folder| folder.display().to_string());
            let hint = format!(
                "put `{}` on your PATH; until then `connect` gives agents the whole path",
                folder.unwrap_or_default()
            );
            let message = "`workflowlookup` is not on your PATH";
            Check::new(ABOUT, Level::Warning, message).hint(hint)
        }
    };
    vec![own_version, on_path]
}
