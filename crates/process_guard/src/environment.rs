//! The environment of a child: a few variables of ours, what its entry says, and how deep we are. Nothing else of
//! ours, for keys and tokens are kept in variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::SpawnError;

/// Counts how many of us there are above a process. A server that calls itself, through whatever others, ends there.
pub(super) const DEPTH_VARIABLE: &str = "WORKFLOWLOOKUP_DEPTH";
pub(super) const MAX_DEPTH: u32 = 4;

/// What every child has of ours, where we have it. On Windows case means nothing, and elsewhere only proxies are
/// spelled both ways; so case is not looked at.
const INHERITED: &[&str] = &[
    // Who and where it is.
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    // Its language; `LC_` is below.
    "LANG",
    "LANGUAGE",
    // How to reach the network, without which `npx` and `uvx` fetch nothing in many companies.
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    // Whom to trust there.
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // Which engine `docker` and `podman` speak with.
    "CONTAINER_HOST",
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    // macOS: the encoding of the user's texts.
    "__CF_USER_TEXT_ENCODING",
    // Windows.
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];
const INHERITED_BEGINNINGS: &[&str] = &["LC_", "XDG_"];

/// What makes a program run code that is not its own, before its own. No child gets them, even where its entry asks
/// for it. Paths that a program searches for what it asks for itself (`PYTHONPATH`, `NODE_PATH`, `CLASSPATH`) are no
/// such variables: they are not handed on from us, but an entry may set them.
const LOADERS: &[&str] = &[
    // Shells.
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    // The C library's.
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    // Languages.
    "CORECLR_ENABLE_PROFILING",
    "CORECLR_PROFILER",
    "CORECLR_PROFILER_PATH",
    "COR_ENABLE_PROFILING",
    "COR_PROFILER",
    "COR_PROFILER_PATH",
    "DOTNET_STARTUP_HOOKS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "LUA_INIT",
    "NODE_OPTIONS",
    "NODE_REPL_EXTERNAL_MODULE",
    "NPM_CONFIG_NODE_OPTIONS",
    "PERL5DB",
    "PERL5OPT",
    "PYTHONSTARTUP",
    "RUBYOPT",
];
const LOADER_BEGINNINGS: &[&str] = &["LD_", "DYLD_", "BASH_FUNC_"];

/// What a child gets.
#[derive(Debug)]
pub(super) struct Clean {
    pub(super) kept: BTreeMap<OsString, OsString>,
    /// What its entry asked for in vain.
    pub(super) dropped: Vec<String>,
}

/// Whether a variable loads code into a program. No child gets one, whoever sets it.
pub fn is_loader(name: &str) -> bool {
    is_among(name, LOADERS, LOADER_BEGINNINGS)
}

pub(super) fn clean(
    ours: impl Iterator<Item = (OsString, OsString)>,
    own: &BTreeMap<String, String>,
) -> Result<Clean, SpawnError> {
    let mut kept = BTreeMap::new();
    let mut depth = None;
    for (name, value) in ours {
        let Some(text) = name.to_str() else { continue };
        if text == DEPTH_VARIABLE {
            depth = Some(value);
        } else if is_among(text, INHERITED, INHERITED_BEGINNINGS) && !is_function(&value) {
            kept.insert(name, value);
        }
    }
    let mut dropped = Vec::new();
    for (name, value) in own {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(SpawnError::Variable { name: name.escape_debug().to_string() });
        }
        if is_loader(name) {
            dropped.push(name.clone());
        } else {
            kept.insert(name.into(), value.into());
        }
    }
    // Last, so that no entry begins to count anew.
    kept.insert(DEPTH_VARIABLE.into(), deeper(depth.as_deref())?.to_string().into());
    Ok(Clean { kept, dropped })
}

/// One more than ours.
fn deeper(ours: Option<&OsStr>) -> Result<u32, SpawnError> {
    let Some(ours) = ours else { return Ok(1) };
    // What is no number was not written by us, and is taken for the worst.
    match ours.to_str().and_then(|text| text.parse::<u32>().ok()) {
        Some(depth) if depth < MAX_DEPTH => Ok(depth + 1),
        _ => Err(SpawnError::TooDeep { depth: ours.display().to_string() }),
    }
}

fn is_among(name: &str, names: &[&str], beginnings: &[&str]) -> bool {
    let begins = |beginning: &&str| {
        name.get(..beginning.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(beginning))
    };
    names.iter().any(|other| other.eq_ignore_ascii_case(name)) || beginnings.iter().any(begins)
}

/// Old versions of bash put functions into variables, and run what follows them.
fn is_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn cleaned(ours: &[(&str, &str)], own: &[(&str, &str)]) -> Result<Clean, SpawnError> {
        let own = own.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        clean(variables(ours).into_iter(), &own)
    }

    #[test]
    fn few_variables_are_handed_on() {
        let ours = [
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("GITHUB_TOKEN", "secret"),
            ("HOME", "/home/user"),
            ("LC_ALL", "C"),
            ("LD_PRELOAD", "/evil.so"),
            ("LOGNAME", "() { :; }; echo run"),
            ("PATH", "/bin"),
            ("PYTHONPATH", "/ours"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
            ("https_proxy", "http://proxy:1"),
        ];
        let own = [
            ("API_KEY", "given"),
            ("DYLD_INSERT_LIBRARIES", "/evil.dylib"),
            ("NODE_OPTIONS", "--require=/evil.js"),
            ("PATH", "/its/own"),
            ("PYTHONPATH", "/its"),
            ("WORKFLOWLOOKUP_DEPTH", "0"),
            ("npm_config_node_options", "--require=/evil.js"),
        ];
        insta::assert_debug_snapshot!(cleaned(&ours, &own).unwrap(), @r#"
        Clean {
            kept: {
                "API_KEY": "given",
                "HOME": "/home/user",
                "LC_ALL": "C",
                "PATH": "/its/own",
                "PYTHONPATH": "/its",
                "WORKFLOWLOOKUP_DEPTH": "1",
                "XDG_RUNTIME_DIR": "/run/user/1",
                "https_proxy": "http://proxy:1",
            },
            dropped: [
                "DYLD_INSERT_LIBRARIES",
                "NODE_OPTIONS",
                "npm_config_node_options",
            ],
        }
        "#);
    }

    #[test]
    fn depth_is_counted_to_an_end() {
        for (ours, deeper) in [("0", Some("1")), ("3", Some("4")), ("4", None), ("many", None)] {
            let clean = cleaned(&[(DEPTH_VARIABLE, ours)], &[]);
            let counted = clean.ok().map(|clean| clean.kept[OsStr::new(DEPTH_VARIABLE)].clone());
            assert_eq!(counted.as_deref(), deeper.map(OsStr::new), "{ours}");
        }
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        for name in ["", "A=B", "A\0"] {
            let error = cleaned(&[], &[(name, "")]).unwrap_err();
            assert!(matches!(error, SpawnError::Variable { .. }), "{name:?}");
        }
    }

    /// What people read about it is all of it.
    #[test]
    fn the_document_names_what_is_inherited() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/registry.md");
        let document = std::fs::read_to_string(path).unwrap();
        let whole = INHERITED.iter().map(|name| format!("`{name}`"));
        let beginnings = INHERITED_BEGINNINGS.iter().map(|beginning| format!("`{beginning}…`"));
        for name in whole.chain(beginnings).chain([format!("`{DEPTH_VARIABLE}`")]) {
            assert!(document.contains(&name), "{name}");
        }
    }

    /// What is handed on from us must never be what is dropped from an entry.
    #[test]
    fn no_loader_is_inherited() {
        for name in INHERITED.iter().chain(INHERITED_BEGINNINGS) {
            assert!(!is_loader(name), "{name}");
        }
    }
}
