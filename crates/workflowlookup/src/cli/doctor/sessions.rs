//! Whether sessions can be kept, and whether nobody else can read them or forge their logs.

use super::permissions::is_readable_by_others;
use super::{Check, Level};
use crate::cli::next::quoted;
use service::app::App;
use service::sessions::{KeyPlace, Place, StoreUrl, from_store};

const ABOUT: &str = "sessions";

pub(super) fn look(app: &App) -> Vec<Check> {
    let Some(place) = app.sessions().place() else {
        let message = "there is no folder to keep sessions in";
        let hint = "set HOME, or name a file with `--store sqlite:PATH`";
        return vec![Check::new(ABOUT, Level::Problem, message).hint(hint)];
    };
    let Place { store, key, anchor: _ } = place;
    let shown = store.shown();
    // A server is only known to be there when it answers.
    let opened = app.sessions().get_if_any().and_then(|open| {
        let looked = open.as_ref().map(|open| open.sessions.store().mark());
        looked.transpose().map_err(|error| from_store(&error))?;
        Ok(open)
    });
    let mut checks = vec![match opened {
        Ok(Some(_)) => Check::new(ABOUT, Level::Ok, format!("sessions are kept in `{shown}`")),
        Ok(None) => {
            let message = format!("there are no sessions yet; they will be kept in `{shown}`");
            Check::new(ABOUT, Level::Ok, message)
        }
        Err(refusal) => {
            let check = Check::new(ABOUT, Level::Problem, refusal.to_string());
            match refusal.hint() {
                Some(hint) => check.hint(hint),
                None => check,
            }
        }
    }];
    let key = match key {
        KeyPlace::File(path) => Some((path, "forge the logs of sessions")),
        KeyPlace::Environment => None,
    };
    let file = match store {
        StoreUrl::Sqlite(path) => Some((path, "read what agents did")),
        StoreUrl::Postgres(_) => None,
    };
    for (path, what) in file.into_iter().chain(key) {
        if is_readable_by_others(path) {
            let path = path.display().to_string();
            let message = format!("others on this machine can read `{path}`, and so {what}");
            let hint = format!("`chmod go-rwx {}`", quoted(&path));
            checks.push(Check::new(ABOUT, Level::Warning, message).hint(hint));
        }
    }
    checks
}
