//! Thirty records looked up and summed: what an agent reads and writes where it calls thirty times and adds up by itself, and where
//! it writes a program that does. Both through our server; how a tool is called is described to either.

use std::path::Path;

use serde_json::{Value, json};

use super::{agent, call, program};
use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit};
use crate::upstreams::id;
use crate::vocabularies::Vocabularies;

const RECORDS: usize = 30;
const FIRST: usize = 1_000;

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let vocabularies = Vocabularies::new();
    let mut agent = agent(programs, &home.join("aggregation"), "thread");
    let mut turn = |request: &Value| {
        let answer = agent.call(request);
        (vocabularies.count(&request.to_string()) + vocabularies.count(&answer), answer)
    };
    let (mut plain, mut total) = (0, 0);
    for number in FIRST..FIRST + RECORDS {
        let (tokens, answer) = turn(&call("order", &json!({"number": number})));
        let order: Value = serde_json::from_str(&answer).expect("an order");
        total += order["totalCents"].as_u64().expect("a sum");
        plain += tokens;
    }
    let (mut coded, answer) = turn(&program(&code()));
    let answer: Value = serde_json::from_str(&answer).expect("an outcome");
    assert_eq!(answer["result"]["totalCents"], total, "{answer}");
    assert_eq!(answer["calls"][0]["count"], RECORDS, "{answer}");
    let noted = vocabularies.count(&answer["calls"].to_string());
    plain += vocabularies.count_definitions(&mut agent, &["call_mcp_tool"]);
    let defined = vocabularies.count_definitions(&mut agent, &["execute_mcp_code"]);
    coded += defined;
    agent.server.end();
    details.code.push(format!(
        "{RECORDS} records are looked up and summed for {plain} tokens by calls and for {coded} by a program, of which {defined} \
         describe how programs are handed in and {noted} say how the calls went."
    ));
    vec![Row {
        what: "30 records looked up and summed by a program, tokens of requests, answers and the tool's description",
        yardstick: "30 times `call_mcp_tool`",
        figure: coded as f64 / plain as f64,
        unit: Unit::Ratio,
        limit: Limit::AtMost(0.5),
    }]
}

fn code() -> String {
    let server = id(0);
    format!(
        r#"import {{ order }} from "mcp-clients/{server}";

type Order = {{ customer: {{ country: string }}; totalCents: number; state: string }};

export async function main() {{
  const numbers = Array.from({{ length: {RECORDS} }}, (_, i) => {FIRST} + i);
  const orders = (await Promise.all(numbers.map((number) => order({{ number }})))) as Order[];
  const byCountry: Record<string, number> = {{}};
  for (const {{ customer, totalCents }} of orders) {{
    byCountry[customer.country] = (byCountry[customer.country] ?? 0) + totalCents;
  }}
  const totalCents = orders.reduce((sum, order) => sum + order.totalCents, 0);
  return {{ totalCents, byCountry, late: orders.filter((order) => order.state === "late").length }};
}}
"#
    )
}
