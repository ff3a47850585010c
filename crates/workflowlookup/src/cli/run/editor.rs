//! Writing an output in the user's editor, by way of a file that only they can read and that is gone afterwards.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGQUIT};

use super::super::check::OUTPUT_BYTES_MAX;
use super::super::input::read_file;
use service::error::Refusal;
use service::sessions::new_id;

/// Where nobody has set an editor, the first of these that there is.
const USUAL: &str = r#"for editor in editor nano vi; do
    if command -v "$editor" >/dev/null; then exec "$editor" "$@"; fi
done
exit 127"#;

/// What came back.
pub(super) struct Edited {
    pub(super) text: String,
    /// What the editor says went wrong; then nobody has asked for the text to be handed in.
    pub(super) failure: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Editor {
    /// Whether Ctrl-C is for us; made when it is first needed.
    obeys: Option<Arc<AtomicBool>>,
}

impl Editor {
    pub(super) fn edit(&mut self, text: &str) -> Result<Edited, Refusal> {
        let refused = |error: io::Error| Refusal::InvalidParams {
            details: format!("the text cannot be edited: {error}"),
            hint: Some("`:f PATH` hands in a file".to_owned()),
        };
        let chosen = chosen();
        // The usual ones would wait for keys that nobody can press.
        if chosen.is_none() && !io::stdin().is_terminal() {
            return Err(Refusal::InvalidParams {
                details: "no editor is set, and standard input is no terminal".to_owned(),
                hint: Some("set $VISUAL or $EDITOR; `:f PATH` hands in a file".to_owned()),
            });
        }
        let draft = Draft::new(text).map_err(refused)?;
        let obeys = self.obeys().map_err(refused)?;
        obeys.store(false, Ordering::SeqCst);
        let status = command(chosen, &draft.0).status();
        obeys.store(true, Ordering::SeqCst);
        let failure = failure(status.map_err(refused)?);
        let hint = "save the text in the file that the editor was given";
        // More than a session takes: it is refused there, and what was written is kept.
        let edited = read_file(&draft.0, "output", OUTPUT_BYTES_MAX, hint)?;
        // Editors end the last line, which nobody has asked for.
        let text = edited.strip_suffix('\n').unwrap_or(&edited).to_owned();
        Ok(Edited { text, failure })
    }

    /// Ctrl-C reaches everybody at the terminal: while the editor runs it is the editor's, and before and after that
    /// it ends us as ever.
    fn obeys(&mut self) -> io::Result<Arc<AtomicBool>> {
        if let Some(obeys) = &self.obeys {
            return Ok(Arc::clone(obeys));
        }
        let obeys = Arc::new(AtomicBool::new(true));
        for signal in [SIGINT, SIGQUIT] {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&obeys))?;
        }
        self.obeys = Some(Arc::clone(&obeys));
        Ok(obeys)
    }
}

/// The editor that somebody has set.
fn chosen() -> Option<String> {
    let set = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// By a shell, since people set `EDITOR='code --wait'`.
fn command(chosen: Option<String>, path: &Path) -> Command {
    let script = match chosen {
        // The shell must outlive a Ctrl-C that its editor takes well. What it traps its children do not inherit.
        Some(editor) => format!("trap : INT QUIT\n{editor} \"$@\""),
        None => USUAL.to_owned(),
    };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script, "editor"]).arg(path);
    if !io::stdin().is_terminal() {
        // What comes through a pipe is for us.
        command.stdin(Stdio::null());
    }
    command
}

fn failure(status: ExitStatus) -> Option<String> {
    match status.code() {
        Some(0) => None,
        Some(127) => Some("there is no such editor".to_owned()),
        Some(code) => Some(format!("the editor ended with status {code}")),
        None => Some("the editor was ended by a signal".to_owned()),
    }
}

/// A file to write in. It goes when we have read it.
struct Draft(PathBuf);

impl Draft {
    fn new(text: &str) -> io::Result<Self> {
        let id = new_id().map_err(io::Error::other)?;
        let path = std::env::temp_dir().join(format!("workflowlookup-{id}.md"));
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
        let draft = Self(path);
        file.write_all(text.as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It may be gone already, and what cannot be removed is the user's own.
        let _ = fs::remove_file(&self.0);
    }
}
