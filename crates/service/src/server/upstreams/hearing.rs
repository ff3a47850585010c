//! What upstreams tell on their own, for clients of ours: resources that are others than they were, lists that are.

use std::sync::{Arc, Weak};

use mcp::{Audience, Changed, Private};
use orchestrator::pool::{Event, Kind};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::following::Knows;
use super::{Upstreams, resource_uri};
use crate::access::Right;

/// Passes it on for as long as there is somebody.
pub(super) async fn hear(upstreams: Weak<Upstreams>, mut events: Receiver<Event>) {
    loop {
        let event = match events.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => return,
        };
        let Some(upstreams) = upstreams.upgrade() else { return };
        match event {
            Some(event) => upstreams.heard(event),
            // Whatever it was, whoever looks again sees it.
            None => {
                let private = upstreams.followed.all().into_iter().map(updated).collect();
                upstreams.tell(Changed { resources: true, private, ..Changed::default() });
            }
        }
    }
}

impl Upstreams {
    fn heard(self: &Arc<Self>, event: Event) {
        match event {
            Event::Updated { server, uri } => {
                let private = vec![updated(resource_uri(&server, &uri))];
                self.tell(Changed { private, ..Changed::default() });
            }
            Event::Changed { server, list: Kind::Resources } if self.has_listed(&server) => {
                self.tell_of_resources(None);
            }
            // Nobody has seen a list with those.
            Event::Changed { list: Kind::Resources, .. } => {}
            Event::Changed { server, list: Kind::Tools } => self.look_into(&server),
            // They are not ours to list.
            Event::Changed { list: Kind::Templates | Kind::Prompts, .. } => {}
            Event::Connected { server } => {
                self.look_into(&server);
                self.follow_again(&server, Knows::WhatItWasAsked);
                self.meet(server);
            }
            Event::Gone { server } => drop(self.connected().remove(&server)),
        }
    }

    /// Whether its resources are in our list.
    fn has_listed(&self, server: &str) -> bool {
        self.registry().get(server).is_some_and(|entry| self.is_listed(entry))
    }

    /// The list of resources is another now, for everybody.
    fn tell_of_resources(&self, new: Option<&str>) {
        if self.is_news_of_resources(new) {
            self.tell(Changed { resources: true, ..Changed::default() });
        }
    }

    /// A server is there. What it has is in our list of resources from now on, if it has anything.
    fn meet(self: &Arc<Self>, server: String) {
        let Ok(orchestrator) = self.orchestrator() else { return };
        let (orchestrator, own) = (orchestrator.clone(), Arc::clone(self));
        self.connected().insert(server.clone(), None);
        tokio::spawn(async move {
            let Ok(info) = orchestrator.info(&server).await else { return };
            let has_resources = info.capabilities.get("resources").is_some();
            // It may be gone again.
            if let Some(known) = own.connected().get_mut(&server) {
                *known = Some(info);
            }
            if has_resources && own.has_listed(&server) {
                own.tell_of_resources(Some(&server));
            }
        });
    }
}

/// For those who may use upstreams.
fn updated(uri: String) -> Private {
    let scopes = vec![Right::Use.name().into()];
    let heard_by = Audience { unnamed: true, principals: Vec::new(), scopes };
    Private { uri, heard_by, listed_by: Audience::default() }
}
