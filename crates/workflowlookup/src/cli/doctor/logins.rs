//! Whether the logins to other servers are good.

use registry::entry::{Auth, Connect};
use registry::{Entry, Places, Registry};

use super::{Check, Level};
use service::words::plural;

const ABOUT: &str = "logins";

pub(super) fn look(places: &Places) -> Vec<Check> {
    let Some(logins) = service::logins::logins() else { return Vec::new() };
    let (mut good, mut checks) = (0, Vec::new());
    for entry in Registry::load(places).entries {
        match logins.state(&entry.id, &entry.connect) {
            // What is wrong with the file is wrong for all of them, and the message says what to try.
            Err(error) => return vec![Check::new(ABOUT, Level::Problem, error.to_string())],
            Ok(Some(state)) if state.seconds_left == Some(0) && !state.is_renewable => {
                checks.push(missing(&entry, Level::Warning, "has ended"));
            }
            Ok(Some(_)) => good += 1,
            Ok(None) if wants_login(&entry) => {
                checks.push(missing(&entry, Level::Note, "is missing"))
            }
            Ok(None) => {}
        }
    }
    if good > 0 {
        checks.insert(0, Check::new(ABOUT, Level::Ok, format!("{} kept", plural(good, "login"))));
    }
    checks
}

fn missing(entry: &Entry, level: Level, what: &str) -> Check {
    let message = format!("the login to `{}` {what}", entry.id);
    Check::new(ABOUT, level, message).hint(format!("`workflowlookup mcp login {}`", entry.id))
}

/// Others may want one too, and tell when they are called.
fn wants_login(entry: &Entry) -> bool {
    matches!(&entry.connect, Connect::Http { auth: Some(Auth::OAuth { .. }), .. })
}
