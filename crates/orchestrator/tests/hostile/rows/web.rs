//! Servers over HTTP.

use crate::row::Row;
use crate::web::Does;

pub(super) fn rows() -> Vec<Row> {
    let web = Row::web;
    vec![
        web("is not HTTP at all", Does::NotHttp).at_first(),
        web("hangs up on everybody", Does::HangUp).at_first(),
        web("answers 500 to everything", Does::Always500).at_first(),
        web("never sends a header, whatever is asked", Does::AlwaysSilent).at_first().in_vain(),
        web("sends events without an end, whatever is asked", Does::AlwaysEvents)
            .at_first()
            .in_vain(),
        web("answers a page of HTML to everything", Does::AlwaysHtml).at_first(),
        web("wants a password that nobody has", Does::Always401).at_first(),
        web("answers 500", Does::Status500),
        web("never sends a header", Does::Silent).in_vain().lets_go(),
        web("accepts the call with 202, and answers never", Does::Accepted),
        web("accepts everything with 202, and answers never", Does::AlwaysAccepted).at_first(),
        web("answers with a page of HTML", Does::Html),
        web("forgets its sessions at once (404)", Does::Forgets).at_first().only(&["legacy"]),
        web("forgets its session at every call (404)", Does::ForgetsAgain).only(&["legacy"]),
        web("sends half a body, and hangs up", Does::HalfABody),
        web("sends a body without an end", Does::EndlessBody),
        web("sends headers without an end", Does::EndlessHeaders),
        web("sends a byte of its body a second", Does::SlowBody).in_vain().lets_go(),
        web("sends a byte of its headers a second", Does::SlowHeaders).in_vain().lets_go(),
        web("sends a body that is compressed, though nobody asked for that", Does::Compressed),
        web("answers under another id", Does::WrongId),
        web("answers with half of JSON", Does::HalfJson),
        web("sends half an event, and hangs up", Does::HalfAnEvent),
        web("sends events without an end, and no answer", Does::EndlessEvents).in_vain().lets_go(),
        web("sends comments without an end, and no answer", Does::EndlessComments)
            .in_vain()
            .lets_go(),
        web("sends an event without an end", Does::EndlessEvent).lets_go(),
        web("sends garbage as events, and then the answer", Does::GarbageEvents),
        web("sends garbage as events, and hangs up", Does::OnlyGarbage),
        web("sends us elsewhere (307)", Does::Elsewhere),
        web("sends us to itself for ever (307)", Does::Circle),
        web("begins a session under a name that cannot be sent", Does::OddSession)
            .only(&["legacy"]),
        web("never answers to the stream beside", Does::SilentBeside).only(&["legacy"]),
        web("sends garbage on the stream beside, without an end", Does::GarbageBeside)
            .only(&["legacy"]),
        web("never answers to the end of its session", Does::SilentAtTheEnd).only(&["legacy"]),
    ]
}
