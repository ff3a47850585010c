//! The registry: what files come to, what is found in them, and how it follows edits.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

mod cases;
mod clients;
mod places;
mod properties;
mod trusting;
mod watching;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use registry::clients::Client;
use registry::place::Kind;
use registry::{Code, Trust, TrustPolicy, Variables};

/// Somebody who trusts every file.
struct Trusting;

impl TrustPolicy for Trusting {
    fn trust(&self, _: Kind, _: &Path, _: &str) -> Trust {
        Trust::Given
    }

    fn revision(&self) -> u64 {
        0
    }

    fn record(&self) -> Option<PathBuf> {
        None
    }
}

fn trusting() -> Option<Arc<dyn TrustPolicy>> {
    Some(Arc::new(Trusting))
}

/// The variables that all cases have.
fn variables() -> Variables {
    let mut variables = Variables::given([
        ("GITHUB_TOKEN", "ghp_fromTheEnvironment123"),
        ("API_KEY", "key-of-the-environment"),
        ("MCP_HOST", "mcp.example.com"),
        ("EMPTY", ""),
    ]);
    variables.home = Some("/home/anna".into());
    variables.project = Some("/home/anna/project".into());
    variables
}

#[test]
fn the_document_has_every_finding_and_every_client() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/registry.md");
    let document = std::fs::read_to_string(path).unwrap();
    for code in Code::ALL {
        let row = format!("| `{}` | {} |", code.name(), code.meaning());
        assert!(document.contains(&row), "{row}");
    }
    for client in Client::ALL {
        let traits = client.traits();
        let row = format!("| {} | ", traits.name);
        let line = document.lines().find(|line| line.starts_with(&row)).unwrap();
        assert!(line.contains(&format!("`{}`", traits.servers)), "{line}");
        let file = traits.project_file.unwrap_or_default();
        assert!(line.contains(file), "{line}");
    }
}
