//! The document by which a client finds the issuer (RFC 9728), and where it is found.

use serde_json::{Value, json};

use super::oauth::ResourceServer;
use crate::access::Right;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

pub(super) fn document(resource: &str, oauth: &ResourceServer) -> Value {
    let mut document = json!({
        "resource": resource,
        "authorization_servers": [oauth.issuer()],
        "bearer_methods_supported": ["header"],
        "resource_name": "workflowlookup",
    });
    // A client that is not told in a challenge which scopes to ask for asks for all that stand here, and a token with two
    // rights is refused. So they only stand here where a challenge names others.
    if !oauth.scopes().is_empty() {
        let rights = Right::ALL.map(Right::scope);
        let required = oauth.scopes().iter().map(String::as_str);
        let others = rights.into_iter().filter(|right| !required.clone().any(|own| own == *right));
        document["scopes_supported"] = required.clone().chain(others).collect();
    }
    document
}

/// The path of the document about what is at a path: its own path goes behind the well-known one.
pub fn metadata_path(resource_path: &str) -> String {
    format!("{WELL_KNOWN}{}", resource_path.trim_end_matches('/'))
}

/// The address of the document about what is at an address, `https://mcp.example/mcp`.
pub fn metadata_url(resource: &str) -> String {
    let host_at = resource.find("://").map_or(0, |at| at + "://".len());
    let path_at = resource[host_at..].find('/').map_or(resource.len(), |at| host_at + at);
    let (origin, path) = resource.split_at(path_at);
    format!("{origin}{}", metadata_path(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_where_clients_look_for_it() {
        assert_eq!(metadata_path("/mcp"), "/.well-known/oauth-protected-resource/mcp");
        assert_eq!(metadata_path("/"), "/.well-known/oauth-protected-resource");
        for (resource, url) in [
            ("https://a.example/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp"),
            ("http://[::1]:80/mcp", "http://[::1]:80/.well-known/oauth-protected-resource/mcp"),
            ("https://a.example/", "https://a.example/.well-known/oauth-protected-resource"),
            ("https://a.example", "https://a.example/.well-known/oauth-protected-resource"),
        ] {
            assert_eq!(metadata_url(resource), url);
        }
    }
}
