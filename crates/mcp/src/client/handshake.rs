//! How a connection begins: which revision the server speaks, and what it says about itself. A server that nobody has spoken
//! to is asked in the modern way first, and by `initialize` if it does not know that.
//!
//! A server that does not know the modern way should say so, but some are silent. Then we go on without its answer. If that
//! comes late and says that the server is modern, and `initialize` is refused, the server is modern.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::message::ErrorObject;
use super::request::{Request, Us};
use crate::era::modern;
use crate::revision::{Era, Revision};

/// The largest handshake: what a server says about itself is kept.
const HANDSHAKE_BYTES_MAX: usize = 1024 * 1024;
/// The revision that we propose to servers with a handshake.
const PROPOSED: Revision = Revision::V2025_11_25;
/// Errors that only a server of the modern era has: wrong headers, a capability that we lack, a revision that it lacks.
const HEADER_MISMATCH: i64 = -32020;
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;
const UNREADABLE: i64 = -32603;

/// What a server says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerInfo {
    pub revision: Revision,
    pub name: String,
    pub title: Option<String>,
    pub version: String,
    pub description: Option<String>,
    pub instructions: Option<String>,
    /// As the server words them, whatever that is.
    pub capabilities: Value,
}

/// A handshake under way.
#[derive(Debug)]
pub struct Handshake {
    us: Us,
    stage: Stage,
    /// Whether `initialize` is tried if the modern way is not known.
    may_fall_back: bool,
    discovered_late: Option<ServerInfo>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Discovering { has_repeated: bool },
    Initializing,
}

/// What comes next.
#[derive(Debug)]
pub enum Step {
    Ask(Request),
    /// If the server is of the legacy era, `notifications/initialized` goes out before any other request.
    Done(ServerInfo),
    Failed(HandshakeError),
}

#[derive(Debug, Clone, PartialEq)]
pub enum HandshakeError {
    Refused(ErrorObject),
    /// Only revisions that we do not know.
    NoCommonRevision(Vec<String>),
    /// The answer cannot be used.
    Unusable(String),
}

impl Handshake {
    /// `era` is the server's, if it is known from an earlier connection.
    pub fn begin(us: &Us, era: Option<Era>) -> (Self, Request) {
        let stage = match era {
            Some(Era::Legacy) => Stage::Initializing,
            Some(Era::Modern) | None => Stage::Discovering { has_repeated: false },
        };
        let us = us.clone();
        let handshake = Self { us, stage, may_fall_back: era.is_none(), discovered_late: None };
        let request = handshake.request();
        (handshake, request)
    }

    fn request(&self) -> Request {
        match self.stage {
            Stage::Discovering { .. } => Request::discover(&self.us, modern::REVISION),
            Stage::Initializing => Request::initialize(&self.us, PROPOSED),
        }
    }

    fn ask(&mut self, stage: Stage) -> Step {
        self.stage = stage;
        Step::Ask(self.request())
    }

    /// Whether it may go on without the answer that it waits for.
    pub fn may_give_up(&self) -> bool {
        self.may_fall_back && self.stage != Stage::Initializing
    }

    /// The server does not answer `server/discover`.
    pub fn give_up(&mut self) -> Step {
        self.ask(Stage::Initializing)
    }

    /// The answer to `server/discover`, after it was given up.
    pub fn hear_late(&mut self, result: &RawValue) {
        let discovered = Discovered::read(result).ok();
        self.discovered_late = discovered.and_then(Discovered::into_info);
    }

    /// The answer to the last request.
    pub fn hear(&mut self, answer: Result<&RawValue, ErrorObject>) -> Step {
        match self.stage {
            Stage::Discovering { has_repeated } => self.hear_discovered(answer, has_repeated),
            Stage::Initializing => match answer.map(read_initialized) {
                Ok(Ok(info)) => Step::Done(info),
                Ok(Err(why)) => Step::Failed(HandshakeError::Unusable(why)),
                Err(error) => match self.discovered_late.take() {
                    Some(info) => Step::Done(info),
                    None => Step::Failed(HandshakeError::Refused(error)),
                },
            },
        }
    }

    fn hear_discovered(
        &mut self,
        answer: Result<&RawValue, ErrorObject>,
        has_repeated: bool,
    ) -> Step {
        let discovered = answer.and_then(|result| {
            let unreadable = |message| ErrorObject { code: UNREADABLE, message, data: None };
            Discovered::read(result).map_err(unreadable)
        });
        let error = match discovered {
            Ok(discovered) => {
                let theirs = discovered.supported_versions.clone();
                let no_common = HandshakeError::NoCommonRevision(theirs);
                return discovered.into_info().map_or(Step::Failed(no_common), Step::Done);
            }
            Err(error) => error,
        };
        match error.code {
            UNSUPPORTED_VERSION => {
                let theirs = error.data.as_ref().and_then(|data| data.get("supported"));
                let theirs = theirs.and_then(|theirs| Vec::<String>::deserialize(theirs).ok());
                let theirs = theirs.unwrap_or_default();
                let knows_ours = theirs.iter().any(|revision| revision == modern::REVISION.name());
                match knows_ours && !has_repeated {
                    true => self.ask(Stage::Discovering { has_repeated: true }),
                    false => Step::Failed(HandshakeError::NoCommonRevision(theirs)),
                }
            }
            HEADER_MISMATCH | MISSING_CAPABILITY => Step::Failed(HandshakeError::Refused(error)),
            // Some old servers answer whatever they are asked.
            _ if self.may_fall_back => self.ask(Stage::Initializing),
            _ => Step::Failed(HandshakeError::Refused(error)),
        }
    }
}

/// The answer to `server/discover`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    supported_versions: Vec<String>,
    #[serde(default)]
    capabilities: Value,
    #[serde(default)]
    instructions: Value,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

impl Discovered {
    fn read(result: &RawValue) -> Result<Self, String> {
        check_size(result)?;
        serde_json::from_str(result.get())
            .map_err(|error| format!("its answer to `server/discover` cannot be read: {error}"))
    }

    /// None if the server does not speak the modern revision that we speak.
    fn into_info(self) -> Option<ServerInfo> {
        let revision = modern::REVISION;
        let is_common = self.supported_versions.iter().any(|theirs| theirs == revision.name());
        let Self { capabilities, instructions, meta, .. } = self;
        is_common.then(|| {
            ServerInfo::new(revision, &meta[modern::SERVER_INFO], capabilities, &instructions)
        })
    }
}

fn read_initialized(result: &RawValue) -> Result<ServerInfo, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Fields {
        protocol_version: String,
        #[serde(default)]
        capabilities: Value,
        #[serde(default)]
        server_info: Value,
        #[serde(default)]
        instructions: Value,
    }
    check_size(result)?;
    let fields: Fields = serde_json::from_str(result.get())
        .map_err(|_| "its answer to `initialize` names no `protocolVersion`".to_owned())?;
    let name = fields.protocol_version;
    let revision = Revision::parse(&name).ok_or_else(|| {
        format!("it speaks revision `{name}` of the protocol, which we do not know")
    })?;
    let Fields { capabilities, server_info, instructions, .. } = fields;
    Ok(ServerInfo::new(revision, &server_info, capabilities, &instructions))
}

fn check_size(result: &RawValue) -> Result<(), String> {
    match result.get().len() {
        0..=HANDSHAKE_BYTES_MAX => Ok(()),
        bytes => {
            Err(format!("its handshake has {bytes} bytes, and {HANDSHAKE_BYTES_MAX} are the most"))
        }
    }
}

impl ServerInfo {
    /// What is missing or of another type is left empty.
    fn new(
        revision: Revision,
        implementation: &Value,
        capabilities: Value,
        instructions: &Value,
    ) -> Self {
        let text = |name: &str| implementation.get(name).and_then(Value::as_str);
        let owned = |name: &str| text(name).map(str::to_owned);
        Self {
            revision,
            name: text("name").unwrap_or_default().to_owned(),
            title: owned("title"),
            version: text("version").unwrap_or_default().to_owned(),
            description: owned("description"),
            instructions: instructions.as_str().map(str::to_owned),
            capabilities,
        }
    }
}
