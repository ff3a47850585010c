//! All that is secret at the moment: what stands in the registry, and the tokens of those who logged in.

use std::sync::Arc;

use parking_lot::Mutex;
use registry::Masks;
use registry::Watched;

use super::options::Tokens;
use crate::wire::Secrets;

/// What was put together last, and of what.
struct Together {
    masks: Arc<Masks>,
    tokens: Arc<[String]>,
    all: Arc<Masks>,
}

pub(super) fn secrets(registry: Arc<Watched>, tokens: Option<Arc<dyn Tokens>>) -> Secrets {
    let Some(tokens) = tokens else { return Arc::new(move || registry.current().masks().clone()) };
    let last: Mutex<Option<Together>> = Mutex::default();
    Arc::new(move || {
        let (masks, tokens) = (registry.current().masks().clone(), tokens.secrets());
        if tokens.is_empty() {
            return masks;
        }
        let mut last = last.lock();
        if let Some(last) = &*last
            && Arc::ptr_eq(&last.masks, &masks)
            && Arc::ptr_eq(&last.tokens, &tokens)
        {
            return last.all.clone();
        }
        let all = Arc::new(masks.and(tokens.iter().map(String::as_str)));
        *last = Some(Together { masks, tokens, all: all.clone() });
        all
    })
}
