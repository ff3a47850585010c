//! `--context k=v`: the value is read as JSON where it is JSON, and as text otherwise.

use clap::Args;
use serde_json::Value;
use workflow::Context;

use crate::error::Refusal;

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
            let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                return Err(Refusal::InvalidParams {
                    details: format!("`{pair}` is no context variable"),
                    hint: Some("write `--context name=value`".to_owned()),
                });
            };
            let value =
                serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            context.insert(name.to_owned(), value);
        }
        Ok(context)
    }
}
