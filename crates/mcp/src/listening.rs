//! What a client wants to hear about, and telling it. With a handshake it subscribes to resources and hears of lists
//! without asking; in the modern era it opens streams, each with a filter.

use serde_json::{Value, json};

use crate::action::{Action, Audience, Changed, Ticket};
use crate::connection::{Connection, SUBSCRIPTIONS_MAX};
use crate::era::modern;
use crate::jsonrpc::{self, Id};

/// A stream of notifications.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) id: Id,
    pub(crate) filter: Value,
}

impl Connection {
    /// Tells who wants to know.
    pub fn changed(&mut self, changed: &Changed, actions: &mut Vec<Action>) {
        self.settled(changed, actions);
        let mut notify = |method: &str, params: Value| {
            actions.push(Action::Notify(jsonrpc::notification(method, &params)));
        };
        let by_handshake = self.hears_by_handshake();
        // What was not promised is not told.
        let tools = changed.tools && self.server.tools_change;
        if by_handshake && tools {
            notify("notifications/tools/list_changed", json!({}));
        }
        let hears =
            |audience: &Audience| audience.has(self.principal.as_deref(), self.scope.as_deref());
        let resources =
            changed.resources || changed.private.iter().any(|one| hears(&one.listed_by));
        let private = changed.private.iter().filter(|one| hears(&one.heard_by));
        let uris: Vec<&String> =
            changed.uris.iter().chain(private.map(|private| &private.uri)).collect();
        if by_handshake && resources {
            notify("notifications/resources/list_changed", json!({}));
        }
        if by_handshake && changed.prompts {
            notify("notifications/prompts/list_changed", json!({}));
        }
        for uri in uris.iter().filter(|uri| self.subscribed.contains(**uri)) {
            notify("notifications/resources/updated", json!({"uri": uri}));
        }
        for listener in &self.listeners {
            let meta = listener.meta();
            let wants = |name: &str| listener.filter[name] == true;
            if tools && wants("toolsListChanged") {
                notify("notifications/tools/list_changed", json!({"_meta": meta}));
            }
            if resources && wants("resourcesListChanged") {
                notify("notifications/resources/list_changed", json!({"_meta": meta}));
            }
            if changed.prompts && wants("promptsListChanged") {
                notify("notifications/prompts/list_changed", json!({"_meta": meta}));
            }
            for uri in uris.iter().filter(|uri| listener.follows().any(|own| own == **uri)) {
                notify("notifications/resources/updated", json!({"_meta": meta, "uri": uri}));
            }
        }
    }

    /// Takes back the questions that are settled. For who answers a call while another tells its client what changed.
    pub fn settled(&mut self, changed: &Changed, actions: &mut Vec<Action>) {
        let settled =
            self.asked_about().filter(|(_, uri)| changed.settled.iter().any(|s| s == uri));
        let settled: Vec<Ticket> = settled.map(|(ticket, _)| ticket).collect();
        for ticket in settled {
            self.give_up(ticket, actions);
        }
    }

    /// Whether the client follows a resource whose URI begins like this, or is asked about one.
    pub fn follows(&self, scheme: &str) -> bool {
        let subscribed = self.subscribed.iter().map(String::as_str);
        let opened = self.listeners.iter().flat_map(Listener::follows);
        let asked = self.asked_about().map(|(_, uri)| uri);
        subscribed.chain(opened).chain(asked).any(|uri| uri.starts_with(scheme))
    }

    /// The resources that the client follows whose URIs begin like this.
    pub fn followed<'a>(&'a self, scheme: &'a str) -> impl Iterator<Item = &'a str> {
        let subscribed = self.subscribed.iter().map(String::as_str);
        let opened = self.listeners.iter().flat_map(Listener::follows);
        subscribed.chain(opened).filter(move |uri| uri.starts_with(scheme))
    }

    /// Whether the client wants to know when the list of resources changes.
    pub fn hears_of_lists(&self) -> bool {
        let mut opened = self.listeners.iter();
        self.hears_by_handshake()
            || opened.any(|listener| listener.filter["resourcesListChanged"] == true)
    }

    /// What whoever listens may do.
    pub fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// Another number whenever the client may follow something else than before.
    pub fn subscriptions(&self) -> u64 {
        self.subscriptions
    }

    /// What the names of all resources that the client follows have together.
    pub fn followed_bytes(&self) -> usize {
        let listened = self.listeners.iter().flat_map(Listener::follows).map(str::len);
        self.subscribed.iter().map(String::len).chain(listened).sum()
    }

    fn hears_by_handshake(&self) -> bool {
        self.revision.is_some_and(|revision| revision.traits().list_changed)
    }

    /// Streams are bounded, and so are the resources that all of them together follow.
    pub(crate) fn has_room_for(&self, filter: &Value) -> bool {
        let followed =
            |filter: &Value| filter["resourceSubscriptions"].as_array().map_or(0, Vec::len);
        let open = self.listeners.iter().map(|listener| followed(&listener.filter));
        let all = open.sum::<usize>() + followed(filter);
        self.listeners.len() < SUBSCRIPTIONS_MAX && all <= SUBSCRIPTIONS_MAX
    }
}

impl Listener {
    fn follows(&self) -> impl Iterator<Item = &str> {
        let uris = self.filter["resourceSubscriptions"].as_array();
        uris.into_iter().flatten().filter_map(Value::as_str)
    }

    pub(crate) fn meta(&self) -> Value {
        let id: Value = serde_json::from_str(self.id.as_json()).unwrap_or_default();
        json!({modern::SUBSCRIPTION: id})
    }
}
