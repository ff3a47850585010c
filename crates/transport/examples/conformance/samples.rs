//! The smallest picture and the smallest sound.

use mcp::content::Block;

pub(crate) const PNG: &str = "image/png";

/// One red pixel.
pub(crate) fn pixel() -> Vec<u8> {
    include_bytes!("samples/pixel.png").to_vec()
}

pub(crate) fn picture() -> Block {
    Block::Image { bytes: pixel(), mime_type: PNG }
}

/// A millisecond of silence.
pub(crate) fn sound() -> Block {
    let bytes = include_bytes!("samples/silence.wav").to_vec();
    Block::Audio { bytes, mime_type: "audio/wav" }
}
