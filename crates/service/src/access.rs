//! Who asks, what they may do, and which sessions they may see. Over standard input and output, and where nobody has to
//! say who they are, that is the local user, who may do everything. Whoever may not see a session hears what they would
//! hear if there were none.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use mcp::Caller;
use serde::{Deserialize, Serialize};
use store::limits::PAGE_MAX;
use store::sessions::Session;
use store::{Filter, Meta, Status};

use crate::audit::{Audit, Line};
use crate::error::Refusal;
use crate::sessions::{Open, from_store, refusal, user};

/// What a token is good for: one of these, and never two, so that no program confirms what it did itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Agents: to work on sessions
    #[default]
    Use,
    /// People, and systems that decide: to look at sessions, and to decide what waits in them
    Approve,
    /// Operators: to look at all sessions, and to make and revoke tokens
    Admin,
}

impl Right {
    pub(crate) const ALL: [Self; 3] = [Self::Use, Self::Approve, Self::Admin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Use => "use",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }

    /// By this an issuer's tokens carry it.
    pub(crate) fn scope(self) -> &'static str {
        match self {
            Self::Use => "workflowlookup:use",
            Self::Approve => "workflowlookup:approve",
            Self::Admin => "workflowlookup:admin",
        }
    }

    pub(crate) fn is_use(&self) -> bool {
        *self == Self::Use
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.name() == name)
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Whoever runs us; by another name where anybody may call.
    Local(Option<Arc<str>>),
    Principal {
        name: Arc<str>,
        right: Right,
    },
}

impl Who {
    /// None where it cannot be said what they may do.
    pub(crate) fn of(caller: &Caller) -> Option<Self> {
        match (&caller.principal, &caller.scope) {
            (name, None) => Some(Self::Local(name.clone())),
            (Some(name), Some(scope)) => {
                let (name, right) = (Arc::clone(name), Right::parse(scope)?);
                Some(Self::Principal { name, right })
            }
            (None, Some(_)) => None,
        }
    }

    /// None for the local user, and with anonymous access.
    pub(crate) fn principal(&self) -> Option<&Arc<str>> {
        match self {
            Self::Local(_) => None,
            Self::Principal { name, .. } => Some(name),
        }
    }

    pub(crate) fn right(&self) -> Option<Right> {
        match self {
            Self::Local(_) => None,
            Self::Principal { right, .. } => Some(*right),
        }
    }

    /// What stands in the record of what they decide.
    pub(crate) fn name<'a>(&'a self, open: &'a Open) -> &'a str {
        match self {
            Self::Local(name) => name.as_deref().unwrap_or(&open.user),
            Self::Principal { name, .. } => name,
        }
    }

    /// The same where no sessions are open.
    pub(crate) fn known_as(&self) -> Arc<str> {
        match self {
            Self::Local(Some(name)) | Self::Principal { name, .. } => Arc::clone(name),
            Self::Local(None) => user().into(),
        }
    }

    /// Whose the sessions are that they begin.
    pub(crate) fn owner<'a>(&'a self, open: &'a Open) -> &'a str {
        match self {
            Self::Local(_) => &open.user,
            Self::Principal { name, .. } => name,
        }
    }

    /// Refuses what needs a right that they do not have, whatever it is about. The local user has all of them.
    pub(crate) fn needs(&self, needed: Right, wanted: &str, audit: &Audit) -> Result<(), Refusal> {
        self.needs_about(None, needed, wanted, audit)
    }

    /// The same where it is known which session they meant.
    pub(crate) fn needs_about(
        &self,
        session: Option<&str>,
        needed: Right,
        wanted: &str,
        audit: &Audit,
    ) -> Result<(), Refusal> {
        match self {
            Self::Principal { right, .. } if *right != needed => {
                let refusal = Refusal::Right { needed, has: Some(*right) };
                self.refused(wanted, session, &refusal.to_string(), audit);
                Err(refusal)
            }
            _ => Ok(()),
        }
    }

    /// Notes that they asked for a session that is not there. What the local user mistypes is nobody's business.
    pub(crate) fn finds_none(&self, id: &str, wanted: &str, audit: &Audit) {
        if let Self::Principal { .. } = self {
            self.refused(wanted, Some(id), "no such session", audit);
        }
    }

    /// Notes that something was refused.
    pub(crate) fn refused(&self, wanted: &str, id: Option<&str>, reason: &str, audit: &Audit) {
        audit.refused(&Line {
            principal: Some(&self.known_as()),
            right: self.right(),
            wanted: Some(wanted),
            session: id.filter(|id| looks_like_an_id(id)),
            reason: Some(reason),
            ..Line::default()
        });
    }
}

/// Open sessions that somebody may see. Nobody is asked before a session is shared with them, so those that are shared never
/// displace their own.
#[derive(Debug, Default)]
pub(crate) struct OpenSessions {
    /// Their own, the newest first; for operators, everybody's.
    pub(crate) own: SessionList,
    /// Other owners', who take turns. For approvers, those that wait for a decision come first.
    pub(crate) shared: SessionList,
}

#[derive(Debug, Default)]
pub(crate) struct SessionList {
    pub(crate) sessions: Vec<Meta>,
    /// The list was cut.
    pub(crate) has_more: bool,
}

/// Orders shared sessions so that no owner displaces another: the newest of each owner, then the second of each, and so on.
/// They come the newest first.
fn take_turns(sessions: Vec<Meta>) -> Vec<Meta> {
    let mut turns: HashMap<String, usize> = HashMap::new();
    let mut ordered: Vec<_> = sessions
        .into_iter()
        .map(|meta| {
            let turn = turns.entry(meta.owner.clone()).or_default();
            *turn += 1;
            (*turn, meta)
        })
        .collect();
    ordered.sort_by_key(|(turn, _)| *turn);
    ordered.into_iter().map(|(_, meta)| meta).collect()
}

/// Lists at most `limit` open sessions of other owners. `find` returns one page of those that have a status. For approvers
/// it is asked for the waiting ones alone first, so that no number of running sessions displaces them from the page.
fn shared_sessions(
    (name, right): (&str, Right),
    limit: usize,
    find: impl Fn(&[Status]) -> Result<Vec<Meta>, store::Error>,
) -> Result<SessionList, store::Error> {
    let queries: &[&[Status]] = match right {
        Right::Approve => &[&[Status::Waiting], &[Status::Running]],
        Right::Use | Right::Admin => &[&[Status::Running, Status::Waiting]],
    };
    let mut sessions = Vec::new();
    for statuses in queries {
        if sessions.len() <= limit {
            let mut found = find(statuses)?;
            found.retain(|meta| meta.owner != name);
            sessions.extend(take_turns(found));
        }
    }
    let has_more = sessions.len() > limit;
    sessions.truncate(limit);
    Ok(SessionList { sessions, has_more })
}

/// What strangers call a session may be anything, and need not be kept.
fn looks_like_an_id(id: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=store::limits::ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_good)
}

impl Open {
    /// Goes on where they may see the session. Where they may not, there is none, as far as they know.
    pub(crate) fn see(&self, who: &Who, id: &str, wanted: &str) -> Result<(), Refusal> {
        let Who::Principal { name, right } = who else { return Ok(()) };
        let owner = self.sessions.owner(id).map_err(|error| refusal(id, error))?;
        let is_shared = || self.sessions.store().is_shared(id, name);
        let is_seen = match &owner {
            None => false,
            Some(owner) if **owner == **name || *right == Right::Admin => true,
            Some(_) => is_shared().map_err(|error| from_store(&error))?,
        };
        if is_seen {
            return Ok(());
        }
        match owner {
            Some(_) => who.refused(wanted, Some(id), "not theirs", &self.audit),
            None => who.finds_none(id, wanted, &self.audit),
        }
        Err(Refusal::SessionNotFound { id: id.to_owned() })
    }

    /// Notes that a session is shared with somebody from now on, or is not any more.
    pub fn note_share(&self, who: &Who, id: &str, with: &str, is_on: bool) {
        self.audit.write(&Line {
            event: if is_on { "shared" } else { "unshared" },
            principal: Some(who.name(self)),
            right: who.right(),
            session: Some(id),
            with: Some(with),
            ..Line::default()
        });
    }

    /// The sessions that are not complete and that they may see, at most `limit` in each list.
    pub(crate) fn open_sessions(
        &self,
        who: &Who,
        limit: usize,
    ) -> Result<OpenSessions, store::Error> {
        let (store, statuses) = (self.sessions.store(), [Status::Running, Status::Waiting]);
        let owner = (!self.is_all(who)).then(|| who.owner(self).to_owned());
        let filter = Filter { owner, statuses: statuses.to_vec(), limit, ..Filter::default() };
        let page = store.list(&filter)?;
        let own = SessionList { has_more: page.next.is_some(), sessions: page.sessions };
        let Who::Principal { name, right: right @ (Right::Use | Right::Approve) } = who else {
            return Ok(OpenSessions { own, shared: SessionList::default() });
        };
        let find = |statuses: &[Status]| store.shared_with(name, statuses, PAGE_MAX);
        Ok(OpenSessions { own, shared: shared_sessions((name, *right), limit, find)? })
    }

    /// Their sessions that have these words.
    pub(crate) fn search(
        &self,
        who: &Who,
        words: &str,
        limit: usize,
    ) -> Result<Vec<Meta>, store::Error> {
        let owner = (!self.is_all(who)).then(|| who.owner(self));
        self.sessions.store().search(words, owner, limit)
    }

    /// Whether lists are about everybody's.
    fn is_all(&self, who: &Who) -> bool {
        who.right() == Some(Right::Admin)
    }
}

/// What an agent does while a person has to decide, and what it shows them. No tool of an agent's decides it.
pub(crate) fn how_it_is_decided(who: &Who, session: &Session, shown: &str) -> Cow<'static, str> {
    let (is_strict, version, session) = (session.state.strict, session.version, &session.id);
    let by_token = format!(
        "`POST /sessions/{session}/approve` or `/reject` with `{{\"version\": {version}}}`"
    );
    let by_command = format!(
        "`workflowlookup session approve {session}` or `workflowlookup session reject {session} --reason \"…\"`"
    );
    match who {
        Who::Principal { right: Right::Approve, .. } => {
            format!("Your token may decide it: {by_token}, to this server.").into()
        }
        Who::Principal { right: Right::Admin, .. } => {
            "Somebody decides it whose token may approve, and whom the session is shared with.".into()
        }
        _ if is_strict => format!(
            "You cannot do that yourself, and neither can your user without a token that may approve. Tell them that \
             it waits; whoever has such a token, and the session shared with them, sends {by_token} to the server."
        )
        .into(),
        Who::Local(_) => format!(
            "You cannot do that yourself. Tell your user that it waits, show them {shown}, and ask them to run \
             {by_command}."
        )
        .into(),
        Who::Principal { .. } => format!(
            "You cannot do that yourself. Tell your user that it waits, and show them {shown}: somebody whom the \
             session is shared with, and whose token may approve, sends {by_token} to the server; or whoever runs it \
             uses {by_command} there."
        )
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use store::Head;

    use super::*;

    fn session(id: usize, status: Status) -> Meta {
        let head = Head { revision: 0, status, step: None };
        Meta {
            id: id.to_string(),
            key: None,
            owner: "owner".to_owned(),
            workflow: "letter".to_owned(),
            goal: String::new(),
            definition: String::new(),
            created: 0,
            touched: 0,
            version: 1,
            head,
            is_imported: false,
        }
    }

    #[test]
    fn no_page_of_running_sessions_hides_waiting_ones() {
        let page = 3;
        // The newest first.
        let mut shared: Vec<Meta> = (0..page).map(|id| session(id, Status::Running)).collect();
        shared.push(session(page, Status::Waiting));
        let find = |statuses: &[Status]| {
            let has_status = |meta: &&Meta| statuses.contains(&meta.head.status);
            Ok(shared.iter().filter(has_status).take(page).cloned().collect())
        };
        let listed = |right, limit| {
            let list = shared_sessions(("approver", right), limit, find).unwrap();
            let ids: Vec<String> = list.sessions.into_iter().map(|meta| meta.id).collect();
            (ids.join(" "), list.has_more)
        };
        assert_eq!(listed(Right::Approve, 2), ("3 0".to_owned(), true));
        assert_eq!(listed(Right::Approve, 4), ("3 0 1 2".to_owned(), false));
        assert_eq!(listed(Right::Use, 2), ("0 1".to_owned(), true));
    }

    fn principal(right: Right) -> Who {
        Who::Principal { name: "anna".into(), right }
    }

    #[test]
    fn caller_is_known_by_principal_and_scope() {
        let who = |principal: Option<&str>, scope: Option<&str>| {
            let (principal, scope) = (principal.map(Into::into), scope.map(Into::into));
            Who::of(&Caller { principal, scope, ..Caller::default() })
        };
        assert_eq!(who(None, None), Some(Who::Local(None)));
        assert_eq!(who(Some("anna"), None), Some(Who::Local(Some("anna".into()))));
        for right in Right::ALL {
            assert_eq!(who(Some("anna"), Some(right.name())), Some(principal(right)));
            assert_eq!(who(None, Some(right.name())), None, "a right of nobody");
        }
        for odd in ["", "Use", "use ", "root", "use,admin"] {
            assert_eq!(who(Some("anna"), Some(odd)), None, "{odd}");
        }
    }

    /// A right is exactly one, and the local user has all of them.
    #[test]
    fn only_needed_right_lets_pass() {
        let directory = tempfile::tempdir().unwrap();
        let audit = Audit::choose(Some(&directory.path().join("audit.jsonl")));
        let lines = || {
            let text = std::fs::read_to_string(directory.path().join("audit.jsonl"));
            text.unwrap_or_default().lines().count()
        };
        let mut refused = 0;
        for needed in Right::ALL {
            assert!(Who::Local(None).needs(needed, "a tool", &audit).is_ok());
            assert!(Who::Local(Some("anna".into())).needs(needed, "a tool", &audit).is_ok());
            for has in Right::ALL {
                let passes = principal(has).needs(needed, "a tool", &audit);
                assert_eq!(passes.is_ok(), has == needed, "{has} for {needed}");
                refused += usize::from(passes.is_err());
                assert_eq!(lines(), refused, "each refusal is in the audit log, and nothing else");
            }
        }
        assert_eq!(refused, 6);
    }

    #[test]
    fn owners_of_shared_sessions_take_turns() {
        let owned = |id: usize, owner: &str| Meta {
            owner: owner.to_owned(),
            ..session(id, Status::Running)
        };
        let sessions =
            vec![owned(0, "a"), owned(1, "a"), owned(2, "a"), owned(3, "b"), owned(4, "b")];
        let ids: Vec<String> = take_turns(sessions).into_iter().map(|meta| meta.id).collect();
        assert_eq!(ids, ["0", "3", "1", "4", "2"]);
    }

    #[test]
    fn only_what_looks_like_an_id_is_kept() {
        let longest = "x".repeat(store::limits::ID_BYTES_MAX);
        for id in ["s-1", "01J:a_b.c", &longest] {
            assert!(looks_like_an_id(id), "{id}");
        }
        for odd in ["", "a b", "ä", "a\nb", "../x", &format!("{longest}x")] {
            assert!(!looks_like_an_id(odd), "{odd}");
        }
    }
}
