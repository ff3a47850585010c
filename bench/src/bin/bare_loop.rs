//! The yardstick below which no server gets: one loop over a line, `serde_json` and std, no runtime, one
//! tool that sends its text back. Given a file, it answers every call with what the file holds instead.
//! Every answer is written at once; with `--together` first, only when no complete line is here any more.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::os::fd::AsFd as _;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const BUFFER_BYTES: usize = 64 * 1024;
const HANDSHAKE: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bare-loop","version":"0.0.0"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}"#;

#[derive(Deserialize)]
struct Request<'a> {
    /// A notification has none.
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Serialize)]
struct Response<'a, T> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: T,
}

#[derive(Serialize)]
struct Echoed<'a> {
    content: [Text<'a>; 1],
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    let is_together = arguments.next_if(|argument| argument == "--together").is_some();
    let canned = match arguments.next() {
        None => None,
        Some(path) => Some(RawValue::from_string(std::fs::read_to_string(path)?)?),
    };
    // Not std's own handles: those look for line ends once more, and read in smaller pieces.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let mut output = BufWriter::with_capacity(BUFFER_BYTES, output);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        answer(&line, canned.as_deref(), &mut output)?;
        line.clear();
        if !is_together || !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
    output.flush()
}

fn answer(line: &[u8], canned: Option<&RawValue>, output: &mut impl Write) -> io::Result<()> {
    let request: Request<'_> = serde_json::from_slice(line)?;
    let (Some(id), method) = (request.id, &*request.method) else {
        return Ok(());
    };
    match (method, request.params) {
        ("initialize", _) => reply(id, fixed(HANDSHAKE)?, output),
        ("tools/list", _) => reply(id, fixed(TOOLS)?, output),
        ("tools/call", Some(params)) => {
            let call: Call<'_> = serde_json::from_str(params.get())?;
            match canned {
                Some(canned) => reply(id, canned, output),
                None if call.name == "echo" => {
                    let Arguments { text } = serde_json::from_str(call.arguments.get())?;
                    let text = Text { r#type: "text", text: &text };
                    reply(id, Echoed { content: [text] }, output)
                }
                None => Err(io::Error::other("no such tool")),
            }
        }
        _ => Err(io::Error::other("no such method")),
    }
}

fn reply(id: &RawValue, result: impl Serialize, output: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *output, &Response { jsonrpc: "2.0", id, result })?;
    output.write_all(b"\n")
}

fn fixed(json: &'static str) -> io::Result<&'static RawValue> {
    Ok(serde_json::from_str(json)?)
}
