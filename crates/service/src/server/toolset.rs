//! The set of tools that a server offers.

use clap::ValueEnum;
use mcp::HiddenTool;

use super::tools::{TOOLS, Tool};

/// Which workflow tools clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Toolset {
    /// Every tool
    #[default]
    All,
    /// Without `workflow_next` and `workflow_validate`, which record nothing
    Sessions,
}

impl Toolset {
    pub(crate) fn hidden(self) -> Vec<HiddenTool> {
        let hidden = TOOLS.iter().filter(|tool| !self.has(tool));
        let hidden = hidden.filter_map(|tool| tool.instead.map(|advice| (tool.name, advice)));
        hidden.map(|(name, advice)| HiddenTool { name, advice }).collect()
    }

    /// Gates do nothing in tools that keep no record.
    pub(crate) fn has(self, tool: &Tool) -> bool {
        match self {
            Self::All => true,
            Self::Sessions => tool.instead.is_none(),
        }
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
