//! A server that wants a login, and the one that gives tokens for it, on one port. It does what it is told, right or wrong,
//! and writes down what it was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) type Fields = BTreeMap<String, String>;

/// Clones are the same.
#[derive(Clone)]
pub(crate) struct Issuer {
    pub(crate) base: String,
    state: Arc<Mutex<Inner>>,
    _server: Arc<Ends>,
}

struct Ends(JoinHandle<()>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How it behaves.
#[derive(Clone)]
pub(crate) struct Manners {
    /// It says nothing about itself, and registers nobody.
    pub(crate) is_silent: bool,
    pub(crate) registers: bool,
    /// Seconds.
    pub(crate) lifetime: Option<u64>,
    pub(crate) gives_refresh_tokens: bool,
    /// What it says about who it is when it sends a browser back.
    pub(crate) iss: Option<String>,
    pub(crate) says_iss: bool,
    pub(crate) refuses: Option<&'static str>,
    /// How long it thinks before it renews a token.
    pub(crate) thinks: Duration,
    /// It is broken.
    pub(crate) fails: bool,
    /// Scopes for `write`; without them it is 403.
    pub(crate) write_scope: Option<&'static str>,
    /// The address of its metadata does not say whose they are.
    pub(crate) hides_issuer: bool,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            is_silent: false,
            registers: true,
            lifetime: Some(3600),
            gives_refresh_tokens: true,
            iss: None,
            says_iss: false,
            refuses: None,
            thinks: Duration::ZERO,
            fails: false,
            write_scope: None,
            hides_issuer: false,
        }
    }
}

#[derive(Default)]
struct Inner {
    manners: Manners,
    count: usize,
    /// Codes, with what they were asked with.
    codes: BTreeMap<String, Fields>,
    /// Tokens that let one in, with their scopes.
    access: BTreeMap<String, String>,
    refresh: BTreeMap<String, String>,
    clients: BTreeSet<String>,
    /// `register`, `authorize`, `token authorization_code`…, with what came along.
    asked: Vec<(String, Fields)>,
    /// The tokens that came to the MCP server.
    shown: Vec<Option<String>>,
}

impl Issuer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(Inner::default()));
        let shared = Shared { base: base.clone(), state: state.clone() };
        let router = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/.well-known/elsewhere", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .route("/mcp", get(stream).post(mcp))
            .route("/other", post(mcp))
            .with_state(shared);
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { base, state, _server: Arc::new(Ends(server)) }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    pub(crate) fn behave(&self, change: impl FnOnce(&mut Manners)) {
        change(&mut self.lock().manners);
    }

    /// What was asked so far, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.lock().asked.iter().map(|(what, _)| what.clone()).collect()
    }

    pub(crate) fn asked_for(&self, what: &str) -> Vec<Fields> {
        let inner = self.lock();
        inner
            .asked
            .iter()
            .filter(|(asked, _)| asked == what)
            .map(|(_, fields)| fields.clone())
            .collect()
    }

    /// From now on no token that was given lets anybody in.
    pub(crate) fn revoke_access(&self) {
        self.lock().access.clear();
    }

    pub(crate) fn revoke_all(&self) {
        let mut inner = self.lock();
        inner.access.clear();
        inner.refresh.clear();
    }

    /// All tokens that came to the MCP server, and whether none did.
    pub(crate) fn shown(&self) -> Vec<Option<String>> {
        self.lock().shown.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap()
    }
}

#[derive(Clone)]
struct Shared {
    base: String,
    state: Arc<Mutex<Inner>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap()
    }

    fn note(&self, what: &str, fields: Fields) -> Manners {
        let mut inner = self.lock();
        inner.asked.push((what.to_owned(), fields));
        inner.manners.clone()
    }
}

async fn resource(State(shared): State<Shared>) -> Result<Json<Value>, StatusCode> {
    if shared.lock().manners.is_silent {
        return Err(StatusCode::NOT_FOUND);
    }
    let base = &shared.base;
    let issuer = match shared.lock().manners.hides_issuer {
        true => format!("{base}/.well-known/elsewhere"),
        false => base.clone(),
    };
    Ok(Json(json!({"resource": format!("{base}/mcp"), "authorization_servers": [issuer]})))
}

async fn metadata(State(shared): State<Shared>) -> Result<Json<Value>, StatusCode> {
    let base = &shared.base;
    let manners = shared.lock().manners.clone();
    if manners.is_silent {
        return Err(StatusCode::NOT_FOUND);
    }
    let mut metadata = json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "revocation_endpoint": format!("{base}/revoke"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": manners.says_iss,
    });
    if manners.registers {
        metadata["registration_endpoint"] = format!("{base}/register").into();
    }
    Ok(Json(metadata))
}

async fn register(State(shared): State<Shared>, Json(body): Json<Value>) -> Response {
    if shared.lock().manners.is_silent {
        return StatusCode::NOT_FOUND.into_response();
    }
    let redirect = body["redirect_uris"][0].as_str().unwrap_or_default().to_owned();
    shared.note("register", Fields::from([("redirect_uri".to_owned(), redirect.clone())]));
    let mut inner = shared.lock();
    inner.count += 1;
    let id = format!("client-{}", inner.count);
    inner.clients.insert(id.clone());
    let secret = format!("registered-secret-{}", inner.count);
    let answer = json!({"client_id": id, "client_secret": secret, "redirect_uris": [redirect]});
    (StatusCode::CREATED, Json(answer)).into_response()
}

async fn authorize(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Response {
    let asked = fields(&query.unwrap());
    let manners = shared.note("authorize", asked.clone());
    let mut answer = format!("{}?state={}", asked["redirect_uri"], asked["state"]);
    match manners.refuses {
        Some(error) => answer += &format!("&error={error}&error_description=not%20today"),
        None => {
            let mut inner = shared.lock();
            inner.count += 1;
            let code = format!("secret-code-{}", inner.count);
            answer += &format!("&code={code}");
            inner.codes.insert(code, asked);
        }
    }
    if let Some(iss) = manners.iss {
        answer += &format!("&iss={iss}");
    }
    (StatusCode::FOUND, [(LOCATION, answer)]).into_response()
}

/// As forms and addresses write them.
fn fields(text: &str) -> Fields {
    reqwest::Url::parse(&format!("http://x/?{text}")).unwrap().query_pairs().into_owned().collect()
}

fn no(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": error, "error_description": "so it is"})))
        .into_response()
}

async fn token(State(shared): State<Shared>, headers: HeaderMap, body: String) -> Response {
    let mut asked = fields(&body);
    if let Some(shown) = headers.get(AUTHORIZATION) {
        let pair = shown.to_str().unwrap().strip_prefix("Basic ").unwrap();
        let pair = String::from_utf8(STANDARD.decode(pair).unwrap()).unwrap();
        let (id, secret) = pair.split_once(':').unwrap();
        asked.insert("client_id".to_owned(), id.to_owned());
        asked.insert("shown secret".to_owned(), secret.to_owned());
    }
    let grant = asked["grant_type"].clone();
    let manners = shared.note(&format!("token {grant}"), asked.clone());
    if manners.fails {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    tokio::time::sleep(manners.thinks).await;
    let mut inner = shared.lock();
    let scope = match grant.as_str() {
        "authorization_code" => {
            let Some(begun) = inner.codes.remove(&asked["code"]) else {
                return no("invalid_grant");
            };
            let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(asked["code_verifier"].as_bytes()));
            let is_same = |name: &str| begun.get(name) == asked.get(name);
            if begun["code_challenge"] != proof
                || !is_same("client_id")
                || !is_same("redirect_uri")
                || !is_same("resource")
            {
                return no("invalid_grant");
            }
            begun.get("scope").cloned().unwrap_or_default()
        }
        // Good for one time.
        "refresh_token" => match inner.refresh.remove(&asked["refresh_token"]) {
            Some(scope) => scope,
            None => return no("invalid_grant"),
        },
        _ => return no("unsupported_grant_type"),
    };
    inner.count += 1;
    let (access, refresh) =
        (format!("access-token-{}", inner.count), format!("refresh-token-{}", inner.count));
    inner.access.insert(access.clone(), scope.clone());
    let mut answer =
        json!({"access_token": access, "token_type": "Bearer", "id_token": "an-id-token"});
    if !scope.is_empty() {
        answer["scope"] = scope.clone().into();
    }
    if let Some(lifetime) = manners.lifetime {
        answer["expires_in"] = lifetime.into();
    }
    if manners.gives_refresh_tokens {
        inner.refresh.insert(refresh.clone(), scope);
        answer["refresh_token"] = refresh.into();
    }
    Json(answer).into_response()
}

async fn revoke(State(shared): State<Shared>, body: String) -> StatusCode {
    let asked = fields(&body);
    shared.lock().refresh.remove(&asked["token"]);
    shared.note("revoke", asked);
    StatusCode::OK
}

/// What it tells on its own never ends, and is nothing.
async fn stream() -> Response {
    let body =
        axum::body::Body::from_stream(futures::stream::pending::<Result<String, std::io::Error>>());
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

async fn mcp(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let shown =
        headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", shared.base);
    let (scope, manners) = {
        let mut inner = shared.lock();
        inner.shown.push(shown.map(str::to_owned));
        (shown.and_then(|token| inner.access.get(token).cloned()), inner.manners.clone())
    };
    let Some(scope) = scope else {
        if manners.is_silent {
            return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response();
        }
        let challenge = format!(
            "Bearer error=\"invalid_token\", scope=\"read\", resource_metadata=\"{metadata}\""
        );
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]).into_response();
    };
    let answer =
        |result: Value| Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => answer(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"},
        }))
        .into_response(),
        "tools/list" => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            answer(json!({"tools": [tool("read"), tool("write")]})).into_response()
        }
        "tools/call" => {
            let is_write = message["params"]["name"] == "write";
            if let Some(wanted) = manners.write_scope
                && is_write
                && !scope.split(' ').any(|scope| scope == wanted)
            {
                let challenge = format!(
                    "Bearer error=\"insufficient_scope\", scope=\"{wanted}\", resource_metadata=\"{metadata}\""
                );
                return (StatusCode::FORBIDDEN, [(WWW_AUTHENTICATE, challenge)]).into_response();
            }
            // A server that tells everybody what it was shown.
            let text = format!("you showed {}", shown.unwrap_or_default());
            answer(json!({"content": [{"type": "text", "text": text}]})).into_response()
        }
        method if method.starts_with("notifications/") => StatusCode::ACCEPTED.into_response(),
        _ => Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "what?"}}))
            .into_response(),
    }
}
