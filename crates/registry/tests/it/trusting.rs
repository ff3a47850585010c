//! A registry of a project counts as far as somebody has trusted it, also while it changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use registry::place::{FILE_NAME, Kind};
use registry::{Places, Registry, Standing, Trust, TrustPolicy, Watched};

/// Somebody who trusts one text at a time.
#[derive(Default)]
struct Careful {
    trusted: Mutex<Option<String>>,
    revision: AtomicU64,
}

impl Careful {
    fn trust_now(&self, text: &str) {
        *self.trusted.lock().unwrap() = Some(text.to_owned());
        self.revision.fetch_add(1, Ordering::Relaxed);
    }
}

impl TrustPolicy for Careful {
    fn trust(&self, kind: Kind, _: &Path, text: &str) -> Trust {
        match &*self.trusted.lock().unwrap() {
            _ if kind == Kind::User => Trust::Given,
            Some(trusted) if trusted == text => Trust::Given,
            Some(trusted) => Trust::Outdated { trusted: trusted.clone() },
            None => Trust::Missing,
        }
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }

    fn record(&self) -> Option<PathBuf> {
        None
    }
}

struct World {
    root: tempfile::TempDir,
    careful: Arc<Careful>,
    watched: Watched,
}

impl World {
    fn new(project: &str, user: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (folder, text) in [("project", project), ("user", user)] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join(FILE_NAME), text).unwrap();
        }
        let careful = Arc::new(Careful::default());
        let places = Places {
            named: None,
            project: Some(root.path().join("project")),
            user: Some(root.path().join("user")),
            variables: crate::variables(),
            trust: Some(careful.clone()),
        };
        Self { root, careful, watched: Watched::looking_every(places, Duration::ZERO) }
    }

    fn write(&self, text: &str) {
        let draft = self.root.path().join("draft");
        fs::write(&draft, text).unwrap();
        fs::rename(draft, self.root.path().join("project").join(FILE_NAME)).unwrap();
    }

    fn registry(&self) -> Arc<Registry> {
        self.watched.current()
    }
}

fn commands(registry: &Registry) -> Vec<String> {
    let entries = registry.entries.iter();
    entries.map(|entry| format!("{}: {:?}", entry.id, entry.connect)).collect()
}

#[test]
fn untrusted_entry_hides_nothing_and_is_listed() {
    let world = World::new(
        r#"[{"id": "files", "mcp": {"command": "theirs"}}, {"id": "evil", "mcp": {"command": "${API_KEY}"}},
            {"id": "off", "disabled": true, "mcp": {"command": "theirs"}}]"#,
        r#"[{"id": "files", "mcp": {"command": "mine"}}, {"id": "off", "mcp": {"command": "mine"}}]"#,
    );
    let registry = world.registry();
    let entries = commands(&registry);
    assert_eq!(entries.len(), 2, "{entries:?}");
    assert!(entries.iter().all(|entry| entry.contains("mine")), "{entries:?}");
    let standings: Vec<Standing> =
        registry.files[0].servers.iter().map(|server| server.standing).collect();
    assert_eq!(standings, [Standing::Untrusted, Standing::Untrusted, Standing::Disabled]);
    assert!(registry.shadows.is_empty());
    let folder = world.root.path().join("project");
    let command = format!("workflowlookup trust {}", folder.display());
    let (file, _) = registry.untrusted().find(|(_, server)| server.draft.id == "evil").unwrap();
    assert_eq!(file.trust_command(), command);
    assert!(!format!("{registry:?}").contains("key-of-the-environment"));
}

#[test]
fn consent_counts_while_running_and_only_for_what_it_was_given() {
    let text = r#"[{"id": "a", "mcp": {"command": "x"}, "tools": {"deny": ["p"]}}]"#;
    let world = World::new(text, "[]");
    assert!(world.registry().entries.is_empty());
    world.careful.trust_now(text);
    let registry = world.registry();
    assert_eq!(registry.entries.len(), 1);
    // Tighter.
    world.write(&text.replace(r#"["p"]"#, r#"["p", "q"]"#));
    assert_eq!(world.registry().get("a").unwrap().deny, ["p", "q"]);
    // Looser, and another command.
    for (from, to) in [(r#"["p"]"#, r#"["q"]"#), (r#""x""#, r#""y""#)] {
        world.write(&text.replace(from, to));
        assert!(world.registry().entries.is_empty(), "{to}");
        world.write(text);
        assert_eq!(world.registry().entries.len(), 1);
    }
    // One more does not come in with the others, and one that is gone is gone.
    world.write(&text.replace("}}]", r#"}}, {"id": "b", "mcp": {"command": "z"}}]"#));
    assert_eq!(world.registry().entries.len(), 1);
    assert_eq!(world.registry().untrusted().count(), 1);
    world.write("[]");
    assert!(world.registry().is_empty());
}

#[test]
fn broken_file_does_not_keep_what_is_trusted_no_more() {
    let text = r#"[{"id": "a", "mcp": {"command": "x"}}]"#;
    let world = World::new(text, "[]");
    world.careful.trust_now(text);
    assert_eq!(world.registry().entries.len(), 1);
    world.write("[");
    assert_eq!(world.registry().entries.len(), 1, "somebody may be in the middle of an edit");
    world.careful.trust_now("[]");
    assert!(world.registry().entries.is_empty());
}

#[test]
fn without_a_policy_no_project_is_trusted() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(FILE_NAME), r#"[{"id": "a", "mcp": {"command": "x"}}]"#).unwrap();
    let folder = Some(root.path().to_owned());
    let registry = Registry::load(&Places { project: folder.clone(), ..Places::default() });
    assert!(registry.entries.is_empty());
    let registry = Registry::load(&Places { user: folder, ..Places::default() });
    assert_eq!(registry.entries.len(), 1);
}
