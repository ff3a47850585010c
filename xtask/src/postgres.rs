//! The database that the tests keep sessions in: a private cluster of PostgreSQL as Debian has it, for as long as the
//! tests run. Tests are told where it is by `WORKFLOWLOOKUP_POSTGRES_URL`, and where its programs are by
//! `WORKFLOWLOOKUP_POSTGRES`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use private_postgres::{Missing, Postgres, find};

use crate::packages;

const PACKAGES: [&str; 1] = ["postgresql"];
/// Debian's package makes a cluster that is started now and with the machine, unless a file here says that it should not.
const CONFIGURATION: &str = "/etc/postgresql-common/createcluster.d";
const NO_CLUSTER: &str = "# The tests of workflowlookup need PostgreSQL's programs, and no server.\n\
     create_main_cluster = off\n";

/// Says where the programs are. Where they are missing they are installed, if that may be done without asking.
pub(crate) fn install() -> Result<PathBuf, String> {
    let missing = match find() {
        Ok(programs) => return Ok(programs),
        // Somebody has said where they are, and another version would not be the one that is meant.
        Err(missing @ Missing::Named(_)) => return Err(missing.to_string()),
        Err(missing @ Missing::Everywhere(_)) => missing,
    };
    if packages::may_install() {
        make_no_cluster()?;
        packages::install(&PACKAGES);
    }
    find().map_err(|_| {
        format!(
            "the tests keep sessions in PostgreSQL: {missing}\n  `apt install postgresql` on Debian and Ubuntu, \
             `brew install postgresql@17` on macOS\n  `cargo test --workspace` runs the other tests"
        )
    })
}

pub(crate) fn start(programs: &Path) -> Result<Postgres, String> {
    Postgres::start(programs)
        .map_err(|what| format!("the tests' own PostgreSQL does not start: {what}"))
}

/// A server to try the product with. What is in it goes with it.
pub(crate) fn trial() -> Result<(), String> {
    let mut server = start(&install()?)?;
    let url = server.maintenance_url();
    eprintln!(
        "PostgreSQL runs for as long as this does; now, in another terminal:\n\n  cargo run --release -- serve --http 8080 \
         --store {url}\n\nCtrl-C ends it, and everything in it is gone."
    );
    // Where there is no terminal either, it ends with its input.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    server.stop()
}

fn make_no_cluster() -> Result<(), String> {
    let file = Path::new(CONFIGURATION).join("workflowlookup.conf");
    let written = fs::create_dir_all(CONFIGURATION).and_then(|()| fs::write(&file, NO_CLUSTER));
    written.map_err(|error| format!("`{}` cannot be written: {error}", file.display()))
}
