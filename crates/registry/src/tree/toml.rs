//! TOML with places, as Codex keeps it.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Field, Kind, Node, Unreadable};

pub(crate) fn parse(text: &str) -> Result<Node, Unreadable> {
    match DeTable::parse(text) {
        Ok(table) => Ok(Node { range: table.span(), kind: object(table.get_ref()) }),
        Err(error) => {
            let message = error.message().lines().next().unwrap_or("is not TOML").to_owned();
            Err(Unreadable { range: error.span().unwrap_or(0..1), message })
        }
    }
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let kind = match value.get_ref() {
        DeValue::String(text) => Kind::Text(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(&number.as_str().replace('_', ""), number.radix())
                .map_or(Kind::Other, |number| Kind::Number(number as f64))
        }
        DeValue::Float(number) => {
            number.as_str().replace('_', "").parse().map_or(Kind::Other, Kind::Number)
        }
        DeValue::Boolean(flag) => Kind::Flag(*flag),
        DeValue::Datetime(_) => Kind::Other,
        DeValue::Array(items) => Kind::List(items.iter().map(node).collect()),
        DeValue::Table(table) => object(table),
    };
    Node { range: value.span(), kind }
}

/// In the order of the text, which the table does not keep.
fn object(table: &DeTable<'_>) -> Kind {
    let fields = table.iter().map(|(key, value)| Field {
        key: key.get_ref().to_string(),
        key_range: key.span(),
        value: node(value),
    });
    let mut fields: Vec<Field> = fields.collect();
    fields.sort_by_key(|field| field.key_range.start);
    Kind::Object(fields)
}
