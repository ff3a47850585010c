//! The least that a call from the command line can be: rmcp's client starts the server, shakes hands, calls `echo`, prints what
//! comes back and ends with the server. No registry, no list of tools, no rules, and nobody who looks after the server.

use std::error::Error;
use std::io::Write as _;

use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;
use serde_json::{Map, Value};
use tokio::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(server), Some(text)) = (words.next(), words.next()) else {
        return Err("a server and a text".into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = ().serve(TokioChildProcess::new(Command::new(server))?).await?;
        let arguments = Map::from_iter([("text".to_owned(), Value::from(text))]);
        let call = CallToolRequestParams::new("echo").with_arguments(arguments);
        let result = client.call_tool(call).await?;
        let mut output = std::io::stdout().lock();
        for text in result.content.iter().filter_map(|block| block.as_text()) {
            writeln!(output, "{}", text.text)?;
        }
        client.cancel().await?;
        Ok(())
    })
}
