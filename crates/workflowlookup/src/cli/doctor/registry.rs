//! Whether the registry of other servers can be used.

use std::path::Path;

use registry::place::Kind;
use registry::{Finding, Places, Registry, RegistryFile, Severity, Standing, State};

use super::permissions::is_readable_by_others;
use super::{Check, Level};
use crate::cli::next::quoted;
use service::trust::TrustRecord;
use service::words::plural;

const ABOUT: &str = "registry";
/// How many findings are listed.
const LISTED_MAX: usize = 20;

pub(super) fn look(places: &Places) -> Vec<Check> {
    let registry = Registry::load(places);
    let mut checks = Vec::new();
    let record = TrustRecord::in_state_folder();
    if let Some(Err(error)) = record.map(|record| record.read()) {
        checks.push(Check::new("trust", Level::Problem, error.to_string()));
    }
    let are_absent = registry.files.iter().all(|file| file.state == State::Absent);
    if are_absent && registry.findings.is_empty() {
        let message = "no registry names other MCP servers that could be called";
        let hint = "`workflowlookup mcp import` shows those that your clients know";
        checks.push(Check::new(ABOUT, Level::Note, message).hint(hint));
        return checks;
    }
    checks.extend(registry.files.iter().flat_map(file));
    let listed = registry.findings.iter().take(LISTED_MAX).map(|one| finding(one, &registry));
    checks.extend(listed);
    if let Some(more) = registry.findings.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        checks.push(Check::new(ABOUT, Level::Note, format!("{} more", plural(more, "finding"))));
    }
    checks.extend(registry.shadows.iter().map(|shadow| {
        let (by, hidden) = (shadow.by.display(), shadow.hidden.display());
        let message = format!("`{by}` hides `{}` of `{hidden}`", shadow.id);
        Check::new(ABOUT, Level::Note, message)
    }));
    checks
}

fn file(file: &RegistryFile) -> Vec<Check> {
    let path = file.path.display().to_string();
    let whose = match file.kind {
        Kind::Named => "the registry",
        Kind::Project => "the project's registry",
        Kind::User => "your registry",
    };
    let mut checks = Vec::new();
    if file.state == State::Read {
        let count = |standing| file.servers.iter().filter(|one| one.standing == standing).count();
        let used = plural(count(Standing::Used), "server");
        let rest = [
            (count(Standing::Disabled), "disabled"),
            (count(Standing::Hidden), "hidden"),
            (count(Standing::Unusable), "that cannot be used"),
            (count(Standing::Untrusted), "not trusted"),
        ];
        let rest = rest.into_iter().filter(|(number, _)| *number > 0);
        let rest: Vec<String> = rest.map(|(number, what)| format!(", {number} {what}")).collect();
        let message = format!("{whose} `{path}` names {used} that can be called{}", rest.concat());
        checks.push(Check::new(ABOUT, Level::Ok, message));
        if count(Standing::Untrusted) > 0 {
            let message =
                format!("servers of `{path}` take no effect, for nobody has trusted them");
            let hint = format!("`{}` shows what they would run, and asks", file.trust_command());
            checks.push(Check::new(ABOUT, Level::Warning, message).hint(hint));
        }
    }
    let has_secret = file.servers.iter().any(|one| one.draft.has_secret());
    if has_secret && is_readable_by_others(Path::new(&path)) {
        let message = format!("others on this machine can read `{path}`, and the secrets in it");
        let hint =
            format!("`chmod go-rwx {}`, or put them into variables: `${{NAME}}`", quoted(&path));
        checks.push(Check::new(ABOUT, Level::Warning, message).hint(hint));
    }
    checks
}

fn finding(finding: &Finding, registry: &Registry) -> Check {
    let level = match finding.severity {
        Severity::Error => Level::Problem,
        Severity::Warning => Level::Warning,
        Severity::Note => Level::Note,
    };
    let file = finding.file.as_deref().unwrap_or_default();
    let place = finding.place.map(|place| format!(":{}:{}", place.line, place.column));
    let server = registry.server_of(finding).map(|server| server.draft.id.as_str());
    let server = server.filter(|id| !id.is_empty()).map(|id| format!(" (`{id}`)"));
    let message = format!(
        "`{file}{}`{}: {}",
        place.unwrap_or_default(),
        server.unwrap_or_default(),
        finding.message
    );
    let check = Check::new(ABOUT, level, message);
    match &finding.hint {
        Some(hint) => check.hint(hint.to_string()),
        None => check,
    }
}
