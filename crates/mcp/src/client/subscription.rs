//! Subscriptions of the modern era: the notifications that a client requests, and those that the server agrees to send.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::message::ResponseId;
use super::{Incoming, Request, RequestId};
use crate::era::modern;
use crate::jsonrpc::Id;

/// The notifications of a `subscriptions/listen`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Filter {
    #[serde(skip_serializing_if = "is_false")]
    pub tools_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub prompts_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn request(&self) -> Request {
        let filter = serde_json::to_value(self).unwrap_or_default();
        Request::new("subscriptions/listen").with("notifications", filter)
    }

    /// Whether everything in this filter was requested.
    pub fn is_subset_of(&self, requested: &Self) -> bool {
        self.tools_list_changed <= requested.tools_list_changed
            && self.prompts_list_changed <= requested.prompts_list_changed
            && self.resources_list_changed <= requested.resources_list_changed
            && self
                .resource_subscriptions
                .iter()
                .all(|uri| requested.resource_subscriptions.contains(uri))
    }
}

pub(super) fn acknowledged<'m, T, R>(params: Option<&RawValue>) -> Incoming<'m, T, R> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Value,
        notifications: Filter,
    }
    let params = params.and_then(|params| serde_json::from_str::<Params>(params.get()).ok());
    let acknowledged = params
        .and_then(|Params { meta, notifications }| Some((subscription_id(&meta)?, notifications)));
    match acknowledged {
        Some((id, filter)) => Incoming::SubscriptionAcknowledged { id, filter },
        None => Incoming::Anomaly("an acknowledgement of no subscription of ours".to_owned()),
    }
}

/// The id of the subscription that a notification belongs to.
fn subscription_id(meta: &Value) -> Option<RequestId> {
    let id = Id::parse(&meta.get(modern::SUBSCRIPTION)?.to_string())?;
    match ResponseId::new(id) {
        ResponseId::Ours(id) => Some(id),
        ResponseId::Foreign(_) => None,
    }
}
