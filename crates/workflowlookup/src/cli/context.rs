//! `--context k=v`: the value is read as JSON where it is JSON, and as text otherwise.

use clap::Args;
use serde_json::Value;
use workflow::Context;

use service::error::Refusal;

#[derive(Debug, Args)]
pub(crate) struct ContextOption {
    /// A context variable; may be given several times. The value is read as JSON where it is JSON,
    /// and as text otherwise
    #[arg(long = "context", value_name = "NAME=VALUE")]
    pairs: Vec<String>,
}

impl ContextOption {
    pub(crate) fn read(&self) -> Result<Context, Refusal> {
        let mut context = Context::new();
        for pair in &self.pairs {
            let (name, value) = read_pair(pair).ok_or_else(|| Refusal::InvalidParams {
                details: format!("`{pair}` is no context variable"),
                hint: Some("write `--context name=value`".to_owned()),
            })?;
            context.insert(name, value);
        }
        Ok(context)
    }
}

/// A variable as it is typed. None where there is no name, or no value.
pub(super) fn read_pair(pair: &str) -> Option<(String, Value)> {
    let (name, value) = pair.split_once('=').filter(|(name, _)| !name.is_empty())?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Some((name.to_owned(), value))
}
