//! The five revisions of MCP, and everything in which they differ for a server, in one table. Code
//! elsewhere asks for a difference by name and never compares revisions itself.

use std::fmt;

use serde::Serialize;

/// A revision, by its date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// The two ways of speaking MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// With a handshake: 2025-11-25 and before.
    Legacy,
    /// Every request stands for itself: since 2026-07-28.
    Modern,
}

/// What a revision has. One column of the table below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    pub name: &'static str,
    /// No handshake: every request carries its own version and capabilities, every result its type.
    pub is_modern: bool,
    /// Receiving several messages in one array is a duty.
    pub batches: bool,
    /// Tools carry annotations.
    pub annotations: bool,
    /// There is a capability for completion; where there is none, it is answered all the same.
    pub completions_capability: bool,
    /// Sounds can be said.
    pub audio: bool,
    /// Results of tools carry `structuredContent`.
    pub structured_content: bool,
    /// …which may be anything, and not only an object.
    pub structured_values: bool,
    /// A resource can be pointed at, without what it holds.
    pub resource_links: bool,
    /// Tools, resources and prompts carry a `title`.
    pub titles: bool,
    /// `serverInfo` may say more than name and version.
    pub described_info: bool,
    /// Arguments that a tool cannot use are a result that says so, not a protocol error.
    pub bad_arguments_are_results: bool,
    /// List-changed notifications are promised. (The product's first protocol promises none.)
    pub list_changed: bool,
    /// Progress is told to who wants to hear. (The product's first protocol tells none.)
    pub progress: bool,
    /// The client's user can be asked, if the client says so.
    pub elicitation: bool,
    /// There is more than one way to ask, and a request says which.
    pub elicitation_modes: bool,
    /// A stream begins with an event that only tells its id.
    pub sse_priming: bool,
    /// Tools carry `outputSchema`.
    pub output_schema: bool,
    /// Tools carry `examples`, as the product's first protocol has it.
    pub examples: bool,
}

impl Revision {
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The revisions that begin with a handshake.
    pub const LEGACY: [Self; 4] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];

    pub const fn traits(self) -> Traits {
        // What every revision since the first has, given the ones before it.
        const FIRST: Traits = Traits {
            name: "2024-11-05",
            is_modern: false,
            batches: false,
            annotations: false,
            completions_capability: false,
            audio: false,
            structured_content: false,
            structured_values: false,
            resource_links: false,
            titles: false,
            described_info: true,
            bad_arguments_are_results: false,
            list_changed: false,
            progress: false,
            elicitation: false,
            elicitation_modes: false,
            sse_priming: false,
            output_schema: true,
            examples: true,
        };
        const SECOND: Traits = Traits {
            name: "2025-03-26",
            batches: true,
            annotations: true,
            completions_capability: true,
            audio: true,
            list_changed: true,
            progress: true,
            described_info: false,
            output_schema: false,
            examples: false,
            ..FIRST
        };
        const THIRD: Traits = Traits {
            name: "2025-06-18",
            batches: false,
            structured_content: true,
            resource_links: true,
            titles: true,
            elicitation: true,
            output_schema: true,
            ..SECOND
        };
        const FOURTH: Traits = Traits {
            name: "2025-11-25",
            described_info: true,
            bad_arguments_are_results: true,
            elicitation_modes: true,
            sse_priming: true,
            ..THIRD
        };
        const MODERN: Traits = Traits {
            name: "2026-07-28",
            is_modern: true,
            structured_values: true,
            sse_priming: false,
            ..FOURTH
        };
        match self {
            Self::V2024_11_05 => FIRST,
            Self::V2025_03_26 => SECOND,
            Self::V2025_06_18 => THIRD,
            Self::V2025_11_25 => FOURTH,
            Self::V2026_07_28 => MODERN,
        }
    }

    pub fn era(self) -> Era {
        if self.traits().is_modern { Era::Modern } else { Era::Legacy }
    }

    pub fn name(self) -> &'static str {
        self.traits().name
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.name() == name)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
