//! An upstream that costs as little as one can: a loop over lines, as the bare loop is, that does what clients ask of a server.
//! Given a file, its tools are those that stand there, and it says of each that it is done. Else there are five: `echo`,
//! `park`, which is answered when somebody calls `release`, `hang`, after which it does nothing any more, and `order`, a record of
//! some size.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const BUFFER_BYTES: usize = 64 * 1024;
const HANDSHAKE: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo-upstream","version":"0.0.0"}}"#;
const TOOLS: &str = r#"[{"name":"echo","description":"Sends its text back","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},{"name":"park","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}},{"name":"release","inputSchema":{"type":"object"}},{"name":"hang","inputSchema":{"type":"object"}},{"name":"order","inputSchema":{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}}]"#;
const UNKNOWN: &str = r#"{"code":-32601,"message":"Method not found"}"#;
/// Longer than any measurement.
const FOR_EVER: Duration = Duration::from_secs(3600);

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
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Wanted {
    number: u64,
}

#[derive(Serialize)]
struct Response<'a, T> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: T,
}

#[derive(Serialize)]
struct Refusal<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: &'a RawValue,
}

#[derive(Serialize)]
struct Listed<'a> {
    tools: &'a RawValue,
}

#[derive(Serialize)]
struct Said<'a> {
    content: [Text<'a>; 1],
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

struct Upstream {
    tools: Box<RawValue>,
    has_own: bool,
    parked: Vec<Box<RawValue>>,
    output: File,
    line: Vec<u8>,
}

fn main() -> io::Result<()> {
    let own = std::env::args_os().nth(1).map(std::fs::read_to_string).transpose()?;
    let has_own = own.is_some();
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let mut upstream = Upstream {
        tools: RawValue::from_string(own.unwrap_or_else(|| TOOLS.to_owned()))?,
        has_own,
        parked: Vec::new(),
        output: File::from(io::stdout().as_fd().try_clone_to_owned()?),
        line: Vec::new(),
    };
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        upstream.hear(&line)?;
        line.clear();
    }
    Ok(())
}

impl Upstream {
    fn hear(&mut self, line: &[u8]) -> io::Result<()> {
        let request: Request<'_> = serde_json::from_slice(line)?;
        let Some(id) = request.id else { return Ok(()) };
        match (&*request.method, request.params) {
            ("initialize", _) => self.reply(id, serde_json::from_str::<&RawValue>(HANDSHAKE)?),
            ("ping", _) => self.reply(id, serde_json::from_str::<&RawValue>("{}")?),
            ("tools/list", _) => {
                let tools = self.tools.clone();
                self.reply(id, Listed { tools: &tools })
            }
            ("tools/call", Some(params)) => self.call(id, serde_json::from_str(params.get())?),
            _ => {
                let error = serde_json::from_str(UNKNOWN)?;
                self.write(&Refusal { jsonrpc: "2.0", id, error })
            }
        }
    }

    fn call(&mut self, id: &RawValue, call: Call<'_>) -> io::Result<()> {
        match &*call.name {
            _ if self.has_own => self.say(id, "done"),
            "echo" => {
                let arguments = call.arguments.map_or("{}", RawValue::get);
                let Arguments { text } = serde_json::from_str(arguments)?;
                self.say(id, &text)
            }
            "order" => {
                let Wanted { number } =
                    serde_json::from_str(call.arguments.map_or("{}", RawValue::get))?;
                self.say(id, &order(number))
            }
            "park" => {
                self.parked.push(id.to_owned());
                Ok(())
            }
            "release" => {
                for parked in std::mem::take(&mut self.parked) {
                    self.say(&parked, "released")?;
                }
                self.say(id, "released")
            }
            _ => {
                std::thread::sleep(FOR_EVER);
                Ok(())
            }
        }
    }

    fn say(&mut self, id: &RawValue, text: &str) -> io::Result<()> {
        self.reply(id, Said { content: [Text { r#type: "text", text }] })
    }

    fn reply(&mut self, id: &RawValue, result: impl Serialize) -> io::Result<()> {
        self.write(&Response { jsonrpc: "2.0", id, result })
    }

    fn write(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, message)?;
        self.line.push(b'\n');
        self.output.write_all(&self.line)
    }
}

/// A record as such servers have them.
fn order(number: u64) -> String {
    let pick = |of: &[&'static str]| of[number as usize % of.len()];
    let cents = number * 7_919 % 90_000 + 1_000;
    serde_json::json!({
        "number": number,
        "placedAt": format!("2026-05-{:02}T09:{:02}:00Z", number % 28 + 1, number % 60),
        "customer": {
            "id": format!("cus_{}", number * 31),
            "name": pick(&["Ada Fischer", "Noor Haddad", "Mika Salo", "Inês Prado"]),
            "email": format!("customer{number}@example.com"),
            "country": pick(&["DE", "FI", "PT", "LB", "SE"]),
        },
        "items": [
            {"sku": format!("A-{}", number % 17), "title": "Desk lamp, brass", "quantity": number % 3 + 1, "cents": cents / 2},
            {"sku": format!("B-{}", number % 13), "title": "Notebook, ruled, A5", "quantity": 2, "cents": cents / 4},
        ],
        "totalCents": cents,
        "currency": "EUR",
        "state": pick(&["shipped", "late", "packed"]),
        "shipping": {"carrier": pick(&["DHL", "Posti", "CTT"]), "tracking": format!("JD{:012}", number * 104_729)},
        "notes": "Leave at the side door if nobody answers",
    })
    .to_string()
}
