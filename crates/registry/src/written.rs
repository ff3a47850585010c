//! An entry as it is written into a registry, in our own format. What a default says is left out, and variables stay
//! variables.

use jsonc_parser::cst::CstInputValue as Input;

use super::draft::{Credentials, Draft, Reached, Text};

/// Fields in the order in which they are written.
#[derive(Default)]
struct Fields(Vec<(String, Input)>);

impl Fields {
    fn put(&mut self, name: &str, value: impl Into<Input>) {
        self.0.push((name.to_owned(), value.into()));
    }

    fn put_some(&mut self, name: &str, value: Option<impl Into<Input>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    fn put_list<'t>(&mut self, name: &str, items: impl IntoIterator<Item = &'t str>) {
        let items: Vec<Input> = items.into_iter().map(Input::from).collect();
        if !items.is_empty() {
            self.put(name, Input::Array(items));
        }
    }

    fn put_object(&mut self, name: &str, fields: Fields) {
        if !fields.0.is_empty() {
            self.put(name, Input::Object(fields.0));
        }
    }
}

impl Draft {
    pub(super) fn written(&self) -> Input {
        let mut entry = Fields::default();
        entry.put("id", self.id.as_str());
        entry.put_some("title", self.title.as_deref());
        entry.put_some("summary", self.summary.as_deref());
        entry.put_list("domains", list(&self.domains));
        entry.put_list("tags", list(&self.tags));
        entry.put_list("examples", list(&self.examples));
        entry.put_object("mcp", self.mcp());
        entry.put_some("sensitivity", self.sensitivity.map(|word| word.word()));
        entry.put_some("visibility", self.visibility.map(|word| word.word()));
        entry.put_some("priority", self.priority.map(usize::from));
        entry.put_some("autoDiscoverTools", self.auto_discover_tools);
        let mut tools = Fields::default();
        tools.put_list("allow", list(&self.allow));
        tools.put_list("deny", list(&self.deny));
        entry.put_object("tools", tools);
        entry.put_some("timeoutMs", self.timeout_ms.map(number));
        entry.put_some("maxCallsPerMinute", self.calls_per_minute.map(number));
        if self.is_disabled {
            entry.put("disabled", true);
        }
        Input::Object(entry.0)
    }

    /// Of this, the part that says how it is reached.
    pub(super) fn written_mcp(&self) -> Input {
        Input::Object(self.mcp().0)
    }

    fn mcp(&self) -> Fields {
        let mut mcp = self.reached.as_ref().map(reached).unwrap_or_default();
        mcp.put_list("alwaysAllow", list(&self.always_allow));
        mcp
    }
}

fn list(texts: &[String]) -> impl Iterator<Item = &str> {
    texts.iter().map(String::as_str)
}

fn number(number: impl Into<u64>) -> Input {
    Input::Number(number.into().to_string())
}

fn reached(reached: &Reached) -> Fields {
    let mut fields = Fields::default();
    match reached {
        Reached::Stdio { command, args, env, cwd, unconfined } => {
            fields.put("transport", "stdio");
            fields.put("command", command.raw.as_str());
            fields.put_list("args", args.iter().map(|arg| arg.raw.as_str()));
            fields.put_object("env", map(env));
            fields.put_some("cwd", raw(cwd));
            fields.put_some("unconfined", unconfined.then_some(true));
        }
        Reached::Http { url, headers, auth } => {
            fields.put("transport", "http");
            fields.put("url", url.raw.as_str());
            fields.put_object("headers", map(headers));
            fields.put_object("auth", auth.as_ref().map(credentials).unwrap_or_default());
        }
    }
    fields
}

fn credentials(auth: &Credentials) -> Fields {
    let mut fields = Fields::default();
    match auth {
        Credentials::Bearer(token) => {
            fields.put("type", "bearer");
            fields.put("token", token.raw.as_str());
        }
        Credentials::OAuth { client_id, client_secret, scopes, callback_port } => {
            fields.put("type", "oauth");
            fields.put_some("clientId", raw(client_id));
            fields.put_some("clientSecret", raw(client_secret));
            fields.put_list("scopes", scopes.iter().map(String::as_str));
            fields.put_some("callbackPort", callback_port.map(usize::from));
        }
    }
    fields
}

fn map(texts: &[(String, Text)]) -> Fields {
    let mut fields = Fields::default();
    for (name, text) in texts {
        fields.put(name, text.raw.as_str());
    }
    fields
}

fn raw(text: &Option<Text>) -> Option<&str> {
    text.as_ref().map(|text| text.raw.as_str())
}
