//! The set of tools that a server offers.

use clap::ValueEnum;
use mcp::HiddenTool;

/// Which workflow tools clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Toolset {
    /// Every tool
    #[default]
    All,
    /// Without `workflow_next` and `workflow_validate`, which record nothing
    Sessions,
}

/// The tools that keep no record. Gates do nothing there.
const STATELESS: [HiddenTool; 2] = [
    HiddenTool {
        name: "workflow_next",
        advice: "call `workflow_start`, which begins a session and returns its first step",
    },
    HiddenTool {
        name: "workflow_validate",
        advice: "call `workflow_start`; in its session `workflow_advance` checks each output",
    },
];

impl Toolset {
    pub(crate) fn hidden(self) -> &'static [HiddenTool] {
        match self {
            Self::All => &[],
            Self::Sessions => &STATELESS,
        }
    }

    pub(crate) fn has(self, tool: &str) -> bool {
        !self.hidden().iter().any(|hidden| hidden.name == tool)
    }

    /// For the model: how to use the tools.
    pub(super) fn instructions(self) -> &'static str {
        macro_rules! sessions {
            () => {
                "Workflows are tested ways to do a piece of work, step by step, with a check of each result. Begin \
                 with workflow_list; workflow_start begins a session and hands you its first step, and workflow_advance \
                 checks what you made of it and hands you the next. When you have lost track, workflow_status tells you \
                 where you are."
            };
        }
        match self {
            Self::All => concat!(
                sessions!(),
                " workflow_next and workflow_validate record nothing, and gates do nothing there."
            ),
            Self::Sessions => sessions!(),
        }
    }
}
