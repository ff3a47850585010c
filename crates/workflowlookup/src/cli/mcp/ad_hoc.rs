//! A server that stands in no registry: how it is reached is said on the command line. It becomes an entry like any other,
//! so that the same is checked, filled in and hidden.

use clap::Args;
use registry::{Format, Reader, Registry, Variables};
use serde_json::{Map, Value, json};

use service::error::Refusal;

/// What such a server is called in messages.
pub(super) const ID: &str = "server";
/// Programs are often fetched first (`npx`, `uvx`), and nobody has said how long this one may take.
const PATIENCE_MS: u64 = 60_000;

/// Under which its options stand in the help.
pub(super) const HEADING: &str = "A server that is in no registry";

#[derive(Debug, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct AdHoc {
    /// Start this command and speak to it over its standard input and output. It is split into words as a shell does, and
    /// no shell is run; `${NAME}` is filled in from the environment
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["http", "header", "bearer_env"])]
    stdio: Option<String>,
    /// With --stdio: a variable for the command; may be given several times
    #[arg(long, value_name = "NAME=VALUE", requires = "stdio")]
    env: Vec<String>,
    /// Speak to this address over HTTP; `${NAME}` is filled in from the environment
    #[arg(long, value_name = "URL")]
    http: Option<String>,
    /// With --http: a header for every request; may be given several times
    #[arg(long, value_name = "'NAME: VALUE'", requires = "http")]
    header: Vec<String>,
    /// With --http: send the token in this variable of the environment
    #[arg(long, value_name = "NAME", requires = "http")]
    bearer_env: Option<String>,
}

impl AdHoc {
    /// One that is only started.
    pub(super) fn started(stdio: Option<String>, env: Vec<String>) -> Self {
        Self { stdio, env, ..Self::default() }
    }

    /// One that is only spoken to at an address.
    pub(super) fn at(http: Option<String>, header: Vec<String>) -> Self {
        Self { http, header, ..Self::default() }
    }

    pub(super) fn is_given(&self) -> bool {
        self.stdio.is_some() || self.http.is_some()
    }

    /// What a shell would have done with the command, and nobody does.
    pub(super) fn unshelled(&self) -> Option<String> {
        let words = shlex::split(self.stdio.as_deref()?)?;
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_')
        };
        let (name, _) = words.first()?.split_once('=').unwrap_or_default();
        if is_name(name) {
            return Some(format!("no shell is run: `--env {name}=…` sets a variable"));
        }
        let sign = words.iter().find(|word| {
            matches!(word.as_str(), "|" | "||" | "&" | "&&" | ";") || word.starts_with(['<', '>'])
        })?;
        Some(format!(
            "no shell is run, and `{sign}` is handed to the program; `--stdio \"sh -c '…'\"` runs one"
        ))
    }

    /// The options as they were typed.
    pub(super) fn words(&self) -> Vec<String> {
        let option = |name: &str, value: &String| [name.to_owned(), value.clone()];
        let mut words = Vec::new();
        words.extend(self.stdio.iter().flat_map(|value| option("--stdio", value)));
        words.extend(self.env.iter().flat_map(|value| option("--env", value)));
        words.extend(self.http.iter().flat_map(|value| option("--http", value)));
        words.extend(self.header.iter().flat_map(|value| option("--header", value)));
        words.extend(self.bearer_env.iter().flat_map(|value| option("--bearer-env", value)));
        words
    }

    /// A registry of this one server.
    pub(super) fn registry(&self, variables: &Variables) -> Result<Registry, Refusal> {
        let reached = match (&self.stdio, &self.http) {
            (Some(command), _) => self.command(command)?,
            (None, url) => self.address(url.as_deref().unwrap_or_default(), variables)?,
        };
        let server = json!({"id": ID, "timeoutMs": PATIENCE_MS, "mcp": reached});
        let text = json!({"servers": [server]}).to_string();
        let reader = Reader { file: None, format: Format::Json, base: None, variables };
        let reading = reader.read(&text);
        if reading.servers.iter().any(|server| server.entry.is_some()) {
            return Ok(Registry::of(reading));
        }
        let mut wrong = reading.findings.iter().filter(|finding| finding.is_error());
        let (details, hint) = match wrong.next() {
            Some(finding) => {
                (finding.message.to_string(), finding.hint.as_ref().map(ToString::to_string))
            }
            None => ("the server cannot be used".to_owned(), None),
        };
        Err(Refusal::InvalidParams { details, hint })
    }

    fn command(&self, command: &str) -> Result<Value, Refusal> {
        let Some(mut words) = shlex::split(command) else {
            return Err(refused(
                "the command behind `--stdio` has a quote that is not closed",
                "close it, or put a backslash in front of it",
            ));
        };
        if words.is_empty() {
            return Err(refused(
                "there is no command behind `--stdio`",
                "`--stdio 'npx -y PACKAGE'`",
            ));
        }
        let program = words.remove(0);
        let mut env = Map::new();
        for pair in &self.env {
            let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                return Err(refused(
                    // It may be a secret, so it is not repeated.
                    "what follows `--env` has no name and no `=`",
                    "`--env NAME=VALUE`",
                ));
            };
            env.insert(name.to_owned(), value.into());
        }
        Ok(json!({"transport": "stdio", "command": program, "args": words, "env": env}))
    }

    fn address(&self, url: &str, variables: &Variables) -> Result<Value, Refusal> {
        if !url.contains("://") && !url.starts_with("${") {
            return Err(refused(
                "what follows `--http` has no scheme",
                "write `https://` or `http://` in front",
            ));
        }
        if let Some(name) = self.bearer_env.as_deref().filter(|name| !variables.has(name)) {
            let details = format!("the variable `{name}` of `--bearer-env` is not set");
            let hint = "export it, and give the name of the variable alone";
            return Err(refused(&details, hint));
        }
        let mut headers = Map::new();
        for header in &self.header {
            let Some((name, value)) = header.split_once(':') else {
                return Err(refused(
                    "what follows `--header` has no `:`",
                    "`--header 'NAME: VALUE'`",
                ));
            };
            headers.insert(name.trim().to_owned(), value.trim().into());
        }
        let mut reached = json!({"transport": "http", "url": url, "headers": headers});
        if let Some(name) = &self.bearer_env {
            reached["auth"] = json!({"type": "bearer", "token": format!("${{{name}}}")});
        }
        Ok(reached)
    }
}

fn refused(details: &str, hint: &str) -> Refusal {
    Refusal::InvalidParams { details: details.to_owned(), hint: Some(hint.to_owned()) }
}
