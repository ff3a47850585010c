//! The suite's resources: a text, a picture, one to follow, and a template.

use mcp::Outcome;
use mcp::content::{Held, Listed, Page, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::samples::{PNG, pixel};

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

pub(crate) fn list() -> Outcome {
    let resource = |uri: &str, title: &str, description: &str, mime_type| {
        Listed::Own(Resource {
            uri: uri.to_owned(),
            name: uri.trim_start_matches("test://").to_owned(),
            title: title.to_owned(),
            description: description.to_owned(),
            mime_type,
        })
    };
    let items = vec![
        resource("test://static-text", "Static text", "A text that never changes", TEXT),
        resource("test://static-binary", "Static picture", "A picture that never changes", PNG),
        resource("test://watched-resource", "Watched text", "A text that can be followed", TEXT),
    ];
    Outcome::Resources(Page { items, next: None, is_live: false })
}

pub(crate) fn templates() -> Outcome {
    Outcome::Templates(vec![ResourceTemplate {
        uri_template: "test://template/{id}/data".to_owned(),
        name: "template".to_owned(),
        title: "Data by id".to_owned(),
        description: "Says which id it was asked for".to_owned(),
        mime_type: JSON,
    }])
}

pub(crate) fn read(uri: String) -> Outcome {
    let text = |text: &str| Some((TEXT, Held::Text(text.to_owned())));
    let found = match &*uri {
        "test://static-text" => text("This is the content of the static text resource."),
        "test://static-binary" => Some((PNG, Held::Bytes(pixel()))),
        "test://watched-resource" => text("This text can be followed."),
        _ => id_of(&uri).map(|id| {
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            (JSON, Held::Text(data.to_string()))
        }),
    };
    match found {
        Some((mime_type, held)) => {
            let contents = ResourceContents { uri, mime_type, held };
            Outcome::Resource { contents, is_live: false }
        }
        None => Outcome::NoResource { uri },
    }
}

fn id_of(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}
