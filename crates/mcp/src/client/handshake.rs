//! Negotiates the protocol revision. An unknown server first gets `server/discover`, and `initialize` if it does not know
//! that method.
//!
//! Some legacy servers do not respond to unknown methods. If discovery times out, the handshake continues with `initialize`.
//! If the server rejects that and its late response to `server/discover` has arrived by then, the late response counts.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::message::ErrorObject;
use super::request::{ClientInfo, Request};
use crate::era::modern;
use crate::revision::{Era, Revision};

/// The largest handshake response. Its contents are kept.
const HANDSHAKE_BYTES_MAX: usize = 1024 * 1024;
/// The revision that `initialize` proposes.
const PROPOSED: Revision = Revision::V2025_11_25;
/// Error codes that only modern servers use.
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

/// A handshake in progress.
#[derive(Debug)]
pub struct Handshake {
    client: ClientInfo,
    stage: Stage,
    /// Whether to try `initialize` if discovery fails.
    can_fall_back: bool,
    late_discovery: Option<ServerInfo>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Discovering { has_repeated: bool },
    Initializing,
}

/// The next step of a handshake.
#[derive(Debug)]
pub enum HandshakeStep {
    Send(Request),
    /// A legacy server expects `notifications/initialized` before any other request.
    Done(ServerInfo),
    Failed(HandshakeError),
}

#[derive(Debug, Clone, PartialEq)]
pub enum HandshakeError {
    Refused(ErrorObject),
    /// The server supports only these revisions, and this client none of them.
    NoCommonRevision(Vec<String>),
    /// The response cannot be used.
    Unusable(String),
}

impl Handshake {
    /// `era` is known if an earlier connection succeeded.
    pub fn begin(client: &ClientInfo, era: Option<Era>) -> (Self, Request) {
        let stage = match era {
            Some(Era::Legacy) => Stage::Initializing,
            Some(Era::Modern) | None => Stage::Discovering { has_repeated: false },
        };
        let client = client.clone();
        let handshake = Self { client, stage, can_fall_back: era.is_none(), late_discovery: None };
        let request = handshake.request();
        (handshake, request)
    }

    fn request(&self) -> Request {
        match self.stage {
            Stage::Discovering { .. } => Request::discover(&self.client, modern::REVISION),
            Stage::Initializing => Request::initialize(&self.client, PROPOSED),
        }
    }

    fn ask(&mut self, stage: Stage) -> HandshakeStep {
        self.stage = stage;
        HandshakeStep::Send(self.request())
    }

    /// Whether the handshake can continue without the response that it waits for.
    pub fn can_expire(&self) -> bool {
        self.can_fall_back && self.stage != Stage::Initializing
    }

    /// Continues without the response to `server/discover`.
    pub fn expire_discovery(&mut self) -> HandshakeStep {
        self.ask(Stage::Initializing)
    }

    /// Records a response to `server/discover` that came after its timeout.
    pub fn receive_late_discovery(&mut self, result: &RawValue) {
        let discovered = Discovered::read(result).ok();
        self.late_discovery = discovered.and_then(Discovered::into_info);
    }

    /// Takes the response to the last request.
    pub fn receive(&mut self, answer: Result<&RawValue, ErrorObject>) -> HandshakeStep {
        match self.stage {
            Stage::Discovering { has_repeated } => self.receive_discovered(answer, has_repeated),
            Stage::Initializing => match answer.map(read_initialized) {
                Ok(Ok(info)) => HandshakeStep::Done(info),
                Ok(Err(why)) => HandshakeStep::Failed(HandshakeError::Unusable(why)),
                Err(error) => match self.late_discovery.take() {
                    Some(info) => HandshakeStep::Done(info),
                    None => HandshakeStep::Failed(HandshakeError::Refused(error)),
                },
            },
        }
    }

    fn receive_discovered(
        &mut self,
        answer: Result<&RawValue, ErrorObject>,
        has_repeated: bool,
    ) -> HandshakeStep {
        let discovered = answer.and_then(|result| {
            let unreadable = |message| ErrorObject { code: UNREADABLE, message, data: None };
            Discovered::read(result).map_err(unreadable)
        });
        let error = match discovered {
            Ok(discovered) => {
                let theirs = discovered.supported_versions.clone();
                return match discovered.into_info() {
                    Some(info) => HandshakeStep::Done(info),
                    None => self.without_discovery(theirs),
                };
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
                    false => self.without_discovery(theirs),
                }
            }
            HEADER_MISMATCH | MISSING_CAPABILITY => {
                HandshakeStep::Failed(HandshakeError::Refused(error))
            }
            // Some legacy servers respond to every method with a result.
            _ if self.can_fall_back => self.ask(Stage::Initializing),
            _ => HandshakeStep::Failed(HandshakeError::Refused(error)),
        }
    }

    /// The server supports these revisions, and not ours of the modern era.
    fn without_discovery(&mut self, theirs: Vec<String>) -> HandshakeStep {
        let is_legacy = |name: &String| {
            Revision::parse(name).is_some_and(|revision| revision.era() == Era::Legacy)
        };
        match theirs.iter().any(is_legacy) {
            true => self.ask(Stage::Initializing),
            false => HandshakeStep::Failed(HandshakeError::NoCommonRevision(theirs)),
        }
    }
}

/// The result of `server/discover`.
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

    /// None if the server does not support the revision that this client speaks.
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
    if revision.era() == Era::Modern {
        return Err(format!("it answers `initialize` with revision `{name}`, which has none"));
    }
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
    /// Fields that are missing or have another type stay empty.
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
