//! What happened in a session. This is also the stored format: what was written once must be readable for
//! ever, so a field is only ever added, and has a default then. An event holds what was decided and not only
//! what was asked, so that a log means the same whatever later versions would decide.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow::Context;

use crate::loops::LoopState;
use crate::rules::Rules;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Event {
    /// The first one, and only that.
    Started {
        /// Which behavior the session follows, whatever later versions of the program do. A copy keeps the number of
        /// its original.
        #[serde(default, skip_serializing_if = "Rules::is_first")]
        rules: Rules,
        workflow_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
        #[serde(default)]
        context: Context,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<Origin>,
        /// Steps whose outputs a person has to confirm, as the session was copied from knew it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gated: Vec<String>,
        /// What waits for a person is decided with a token that may approve, and in no other way.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        strict: bool,
        /// The import that the original of a copy came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        imported: Option<ImportOrigin>,
        /// Texts of the workflow refer to outputs of earlier steps.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        references_outputs: bool,
        /// Where the outputs are that a copy continues with.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        outputs: BTreeMap<Arc<str>, OutputLocation>,
        place: Place,
    },
    /// The output was good, and no person had to confirm it.
    Accepted { submission: Submission, place: Place },
    /// The output was not good: the same step again.
    Returned { submission: Submission, issues: Vec<String>, suggestions: Vec<String> },
    /// The output was good, and a person has to confirm it.
    Submitted { submission: Submission },
    /// A person has confirmed what was submitted.
    Approved { decision: Decision, place: Place },
    /// A person has not: the same step again.
    Declined { decision: Decision },
    /// Back to where a step was current before.
    Rewound {
        reason: String,
        /// Everything after this version is superseded.
        version: u64,
        context: Context,
        /// Where the accepted outputs were at that version.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        outputs: BTreeMap<Arc<str>, OutputLocation>,
        place: Place,
    },
    /// A person has approved the loops that begin with the current step: it is handed out.
    LoopApproved { decision: Decision },
    /// A person has rejected them: the session stays before the loops until one is approved or it goes back.
    LoopDeclined { decision: Decision },
    /// Everything before this event was read from a file. The engine has decided it anew; people's decisions and the
    /// beginning of a copy are taken from the file as they are.
    Imported { origin: ImportOrigin },
}

/// The event that holds an accepted output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLocation {
    /// The session whose log has it, if it is the one that this was copied from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    pub version: u64,
}

/// What an agent hands in for a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    pub step: String,
    pub output: String,
    /// What it has learned.
    #[serde(default, skip_serializing_if = "Context::is_empty")]
    pub context: Context,
}

/// Where the session stands from here on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Place {
    /// The current step; none where everything is done.
    pub step: Option<String>,
    /// What is completed besides; after going back, all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub completed: Vec<String>,
    /// Where the loops stood when the current step was found.
    #[serde(flatten)]
    pub loops: LoopState,
    /// The loops that begin with the step, outermost first, where a person has to approve that before it is handed out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
}

/// What a person decided about a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub who: String,
    pub channel: Channel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// By which way a decision came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Channel {
    /// The agent's client asked its user. It vouches for that, and nobody has verified it.
    Client,
    /// Our command line.
    Cli,
    /// A token with the right to approve.
    Token,
}

/// The session that another one was copied from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub session: String,
    pub version: u64,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where an imported session came from, as its file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportOrigin {
    /// Its id there.
    pub session: String,
    pub owner: String,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// How many of the events before are taken from the file unverified.
    pub unverified: u64,
}
