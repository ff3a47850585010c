//! Tools that say something at once: each kind of content, and an error.

use mcp::content::{Block, Held, ResourceContents};
use serde_json::json;

use super::{Entry, about, blocks, failed, said};
use crate::samples::{picture, sound};

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "test_simple_text",
        about: || about("Text", "Says a text"),
        run: |_, _| said("This is a simple text response for testing."),
    },
    Entry {
        name: "test_image_content",
        about: || about("Picture", "Shows a picture"),
        run: |_, _| blocks(vec![picture()]),
    },
    Entry {
        name: "test_audio_content",
        about: || about("Sound", "Plays a sound"),
        run: |_, _| blocks(vec![sound()]),
    },
    Entry {
        name: "test_embedded_resource",
        about: || about("Resource", "Holds a resource"),
        run: |_, _| {
            let text = "This is an embedded resource content.".to_owned();
            blocks(vec![embedded("test://embedded-resource", "text/plain", text)])
        },
    },
    Entry {
        name: "test_multiple_content_types",
        about: || about("Everything", "Says a text, shows a picture and holds a resource"),
        run: |_, _| {
            let data = json!({"test": "data", "value": 123}).to_string();
            blocks(vec![
                Block::text("Multiple content types test:"),
                picture(),
                embedded("test://mixed-content-resource", "application/json", data),
            ])
        },
    },
    Entry {
        name: "test_error_handling",
        about: || about("Error", "Always fails"),
        run: |_, _| failed("This tool intentionally returns an error for testing"),
    },
];

fn embedded(uri: &str, mime_type: &'static str, text: String) -> Block {
    let held = Held::Text(text);
    Block::Embedded(ResourceContents { uri: uri.to_owned(), mime_type, held })
}
