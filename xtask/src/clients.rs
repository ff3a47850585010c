//! The MCP clients and servers of others that the tests run, the official conformance suite and the TypeScript compiler:
//! fetched from their registries into `target/clients/`, exactly as their lock files say, and kept there until those
//! change. Tests are told where by `WORKFLOWLOOKUP_CLIENTS`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{root, run};

/// The oldest Node that the TypeScript SDK runs on.
const NODE: u32 = 20;
/// The oldest Node that the Inspector is made for. The conformance suite runs on the same one.
const INSPECTOR_NODE: (u32, u32) = (22, 19);
/// The oldest Python 3 that the Python SDK runs on.
const PYTHON: u32 = 10;
/// What a client was installed from. Written last, so that one which was cut short is made again.
const STAMP: &str = "installed-from";

/// Installs what is not there yet, and says where the clients are.
pub(crate) fn install() -> Result<PathBuf, String> {
    let Found { node, python: python_version } = needs()?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let clients = std::path::absolute(target.join("clients")).map_err(|error| error.to_string())?;
    npm(&clients.join("typescript"), "typescript", None, || Ok(()))?;
    inspector(&clients.join("inspector"), &node)?;
    npm(&clients.join("conformance"), "conformance", None, || Ok(()))?;
    npm(&clients.join("compiler"), "compiler", None, || Ok(()))?;
    python(&clients.join("python"), &python_version)?;
    Ok(clients)
}

/// Its optional packages are a Node for each kind of machine, and what its command line does without.
fn inspector(folder: &Path, node: &str) -> Result<(), String> {
    let (major, minor) = INSPECTOR_NODE;
    if (number(node, 0), number(node, 1)) >= (Some(major), Some(minor)) {
        return npm(folder, "inspector", Some("--omit=optional"), || Ok(()));
    }
    npm(folder, "inspector", None, || {
        own_node(folder).ok_or_else(|| {
            format!("the Inspector needs Node {major}.{minor} or later, not {node}, and npm has none for here")
        })
    })
}

/// Moves the Node that npm fetched to where it is found whatever the machine, if it runs. npm 10 takes away
/// its own link to it together with the packages for other machines.
fn own_node(folder: &Path) -> Option<()> {
    let packages = fs::read_dir(folder.join("node_modules")).ok()?.flatten();
    let fetched =
        packages.map(|package| package.path().join("bin/node")).find(|node| node.exists());
    let own = folder.join("bin/node");
    fs::create_dir(own.parent()?).ok()?;
    fs::rename(fetched?, &own).ok()?;
    answer(own, &["--version"]).map(drop)
}

/// Installs what a lock file says, and then does what is left to do.
fn npm(
    folder: &Path,
    client: &str,
    option: Option<&str>,
    then: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let files = ["package.json", "package-lock.json"];
    let [package, lock] = files.map(|file| read(&format!("{client}/{file}")));
    let (package, lock) = (package?, lock?);
    once(folder, &format!("{}\n{package}{lock}", option.unwrap_or_default()), || {
        write(&folder.join(files[0]), &package)?;
        write(&folder.join(files[1]), &lock)?;
        let quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts"]).args(option).args(quiet);
        run(npm.current_dir(folder))?;
        then()
    })
}

fn python(folder: &Path, version: &str) -> Result<(), String> {
    let requirements = read("python/requirements.txt")?;
    // An environment knows its place and its Python by name, and is of no use without them.
    let recipe = format!("{version}\n{}\n{requirements}", folder.display());
    once(folder, &recipe, || {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        write(&folder.join("requirements.txt"), &requirements)?;
        let install = ["-m", "pip", "install", "--only-binary=:all:", "-r", "requirements.txt"];
        let quiet = ["--quiet", "--no-input", "--disable-pip-version-check"];
        let mut pip = Command::new(folder.join("bin/python"));
        run(pip.args(install).args(quiet).current_dir(folder))
    })
}

/// Makes a folder, unless it was made by the same recipe last time.
fn once(
    folder: &Path,
    recipe: &str,
    make: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let stamp = folder.join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|last| last == recipe) {
        return Ok(());
    }
    let failed = |error| format!("`{}` cannot be made: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)?;
    make()?;
    write(&stamp, recipe)
}

/// The versions of what was here before.
struct Found {
    node: String,
    python: String,
}

/// Says everything that is missing before something fails for a reason that nobody understands.
fn needs() -> Result<Found, String> {
    // `v20.19.0`, `Python 3.11.2`
    let node = answer("node", &["--version"]);
    let npm = answer("npm", &["--version"]);
    let python = answer("python3", &["--version"]);
    let venv = answer("python3", &["-c", "import ensurepip, venv"]);
    let is_node = node.as_ref().is_some_and(|node| number(node, 0) >= Some(NODE));
    let is_python = python
        .as_ref()
        .is_some_and(|python| number(python, 0) == Some(3) && number(python, 1) >= Some(PYTHON));
    let mut missing = String::new();
    for (is_there, what, found, package) in [
        (is_node, format!("Node {NODE} or later, as `node`"), &node, "nodejs"),
        (npm.is_some(), "`npm`".to_owned(), &None, "npm"),
        (is_python, format!("Python 3.{PYTHON} or later, as `python3`"), &python, "python3"),
        (venv.is_some(), "Python's `venv` and `ensurepip`".to_owned(), &None, "python3-venv"),
    ] {
        if !is_there {
            let found = found.as_ref().map(|found| format!(", not {found}")).unwrap_or_default();
            missing.push_str(&format!(
                "\n  {what}{found} (`apt install {package}` on Debian and Ubuntu)"
            ));
        }
    }
    match (node, python) {
        (Some(node), Some(python)) if missing.is_empty() => Ok(Found { node, python }),
        _ => Err(format!(
            "the tests run real MCP clients, which need what is not here:{missing}\n  `cargo test --workspace` \
             runs the other tests"
        )),
    }
}

/// What a program prints, if it is there and ends well.
fn answer(program: impl AsRef<OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// A part of a version: the first, the second, …
fn number(version: &str, part: usize) -> Option<u32> {
    let digits = version.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    digits.split('.').nth(part)?.parse().ok()
}

fn read(file: &str) -> Result<String, String> {
    let path = root().join("crates/workflowlookup/tests/clients").join(file);
    fs::read_to_string(&path).map_err(|error| format!("`{}`: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("`{}`: {error}", path.display()))
}
