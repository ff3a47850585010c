//! Files that somebody has made up: an exported log is changed, and its plain chain is computed anew, as anybody can.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Computes all hashes of an exported log again, the definition's included.
pub(crate) fn reseal(log: &mut Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let definition = text(&log["definition"]["text"]);
    log["definition"]["hash"] = hex(&Sha256::digest(&definition)).into();
    let session = &log["session"];
    let mut sum = Sum::new("root");
    sum.text(&text(&session["id"]));
    sum.optional(session["key"].as_str().map(str::as_bytes));
    for field in ["owner", "workflow", "goal"] {
        sum.text(&text(&session[field]));
    }
    sum.text(&text(&log["definition"]["hash"]));
    sum.text(&definition);
    sum.number(session["created"].as_u64().unwrap());
    let (id, mut last) = (text(&session["id"]), sum.end());
    let events = log["events"].as_array_mut().unwrap();
    for (version, event) in (1..).zip(&mut *events) {
        let mut sum = Sum::new("event");
        sum.bytes(&last);
        sum.text(&id);
        sum.number(version);
        sum.number(event["time"].as_u64().unwrap());
        sum.text(&text(&event["kind"]));
        sum.optional(event["revision"].as_u64().map(u64::to_le_bytes).as_ref().map(|it| &it[..]));
        sum.optional(None);
        sum.text(&event["body"].to_string());
        last = sum.end();
        event["version"] = version.into();
        event["hash"] = hex(&last).into();
    }
    let count = events.len() as u64;
    log["head"]["version"] = count.into();
    let head = &log["head"];
    let mut sum = Sum::new("head");
    sum.bytes(&last);
    sum.text(&id);
    sum.number(count);
    let statuses = ["running", "waiting", "complete"];
    let status = statuses.iter().position(|status| head["status"] == **status).unwrap();
    sum.number(status as u64);
    sum.optional(head["step"].as_str().map(str::as_bytes));
    sum.number(head["revision"].as_u64().unwrap());
    sum.number(head["touched"].as_u64().unwrap());
    log["seal"] = hex(&sum.end()).into();
}

struct Sum(Sha256);

impl Sum {
    fn new(domain: &str) -> Self {
        let mut sum = Self(Sha256::new());
        sum.text("workflowlookup log 1");
        sum.text(domain);
        sum
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    fn optional(&mut self, bytes: Option<&[u8]>) {
        self.number(u64::from(bytes.is_some()));
        if let Some(bytes) = bytes {
            self.bytes(bytes);
        }
    }

    fn end(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
