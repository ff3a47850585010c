//! A private cluster, with PostgreSQL as it is installed: it starts, dies, comes back with what was committed, and leaves
//! nothing behind.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use private_postgres::{Cut, Database, Flow, Postgres, find, is_running};

const PATIENCE: Duration = Duration::from_secs(60);

fn start() -> Postgres {
    Postgres::start(&find().unwrap()).unwrap()
}

fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The server and all that it has begun.
fn processes(cluster: &Postgres) -> Vec<u32> {
    let sql = "select pid from pg_stat_activity where pid <> pg_backend_pid()";
    let rows = cluster.query("postgres", sql).unwrap();
    let mut processes: Vec<u32> = rows.lines().map(|pid| pid.parse().unwrap()).collect();
    assert!(processes.len() > 2, "{rows}");
    processes.extend(cluster.id());
    processes
}

fn is_reachable(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

fn folder(cluster: &Postgres) -> PathBuf {
    let folder = cluster.query("postgres", "show data_directory").unwrap();
    Path::new(&folder).parent().unwrap().to_path_buf()
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn it_answers_and_is_as_tests_want_it() {
    let cluster = start();
    // The collation is the database's: from version 16 on it is not a setting any more.
    let settings = "select current_setting('synchronous_commit'), current_setting('max_connections'), \
                    current_setting('server_encoding'), datcollate, \
                    current_setting('unix_socket_directories'), current_setting('listen_addresses') \
                    from pg_database where datname = current_database()";
    let found = cluster.query("postgres", settings).unwrap();
    assert_eq!(found, "on|200|UTF8|C||127.0.0.1");
    let port = cluster.query("postgres", "show port").unwrap();
    assert_eq!(port, cluster.port().to_string());
    assert!(cluster.url("x").ends_with(&format!("@127.0.0.1:{port}/x")));
    let refused = cluster.query("postgres", "select nonsense").unwrap_err();
    assert!(refused.contains("nonsense") && refused.contains("does not exist"), "{refused}");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn what_was_committed_is_there_after_a_kill_and_nothing_else() {
    let mut cluster = start();
    let port = cluster.port();
    cluster.query("postgres", "create table t (n int)").unwrap();
    for round in 1..=3 {
        let insert = format!("insert into t values ({round})");
        cluster.query("postgres", &insert).unwrap();
        let before = processes(&cluster);
        // Somebody is in the middle of a transaction.
        std::thread::scope(|scope| {
            let url = cluster.url("postgres");
            let busy = scope.spawn(move || {
                let sql = "begin; insert into t values (-1); select pg_sleep(600)";
                let programs = find().unwrap();
                Command::new(programs.join("psql")).args(["-X", "-d", &url, "-c", sql]).output()
            });
            let is_busy = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
            until("no transaction is under way", || {
                cluster.query("postgres", is_busy).unwrap() == "1"
            });
            cluster.kill().unwrap();
            assert!(!busy.join().unwrap().unwrap().status.success());
        });
        assert!(!before.into_iter().any(is_running));
        assert!(cluster.id().is_none());
        assert!(!is_reachable(cluster.address()));
        assert!(cluster.query("postgres", "select 1").is_err());
        // Dead already.
        cluster.kill().unwrap();
        cluster.restart().unwrap();
        assert_eq!(cluster.port(), port);
        let rows = cluster.query("postgres", "select string_agg(n::text, ' ' order by n) from t");
        let expected: Vec<String> = (1..=round).map(|n| n.to_string()).collect();
        assert_eq!(rows.unwrap(), expected.join(" "));
    }
    let log = cluster.log();
    assert!(log.contains("was not properly shut down"), "{log}");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn it_stops_in_order_and_comes_back() {
    let mut cluster = start();
    cluster.query("postgres", "create table t as select 7 as n").unwrap();
    let before = processes(&cluster);
    cluster.stop().unwrap();
    assert!(!before.into_iter().any(is_running));
    assert!(!is_reachable(cluster.address()));
    cluster.restart().unwrap();
    assert_eq!(cluster.query("postgres", "select n from t").unwrap(), "7");
    // Also one that runs.
    let first = cluster.id();
    cluster.restart().unwrap();
    assert_ne!(cluster.id(), first);
    assert_eq!(cluster.query("postgres", "select n from t").unwrap(), "7");
    assert!(!cluster.log().contains("was not properly shut down"));
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn two_at_once_know_nothing_of_each_other() {
    let mut clusters = [start(), start()];
    assert_ne!(clusters[0].port(), clusters[1].port());
    for (number, cluster) in clusters.iter().enumerate() {
        cluster.query("postgres", &format!("create database d{number}")).unwrap();
        cluster.query(&format!("d{number}"), "select 1").unwrap();
    }
    assert!(clusters[0].query("d1", "select 1").is_err());
    clusters[0].kill().unwrap();
    assert_eq!(clusters[1].query("d1", "select 1").unwrap(), "1");
    clusters[0].restart().unwrap();
    assert_eq!(clusters[0].query("d0", "select 1").unwrap(), "1");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn dropped_it_leaves_no_process_and_no_folder() {
    for is_dead in [false, true] {
        let mut cluster = start();
        let (processes, address, folder) =
            (processes(&cluster), cluster.address(), folder(&cluster));
        assert!(folder.exists());
        if is_dead {
            cluster.kill().unwrap();
        }
        drop(cluster);
        assert!(!processes.into_iter().any(is_running));
        assert!(!is_reachable(address));
        assert!(!folder.exists());
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn it_outlives_the_thread_that_started_it() {
    let cluster = std::thread::spawn(start).join().unwrap();
    assert_eq!(cluster.query("postgres", "select 1").unwrap(), "1");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn it_ends_with_a_process_that_is_killed() {
    // Alone, and with the whole group, as a runner of tests does it.
    for target in ["", "-"] {
        let mut command = Command::new(example());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut holder = command.spawn().unwrap();
        let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        let mut line = || lines.next().expect("it says where the cluster is").unwrap();
        let (url, server) = (line(), line().parse().unwrap());
        let programs = find().unwrap();
        let folder = Command::new(programs.join("psql"))
            .args(["-X", "-A", "-t", "-d", &url, "-c", "show data_directory"])
            .output();
        let data = PathBuf::from(String::from_utf8(folder.unwrap().stdout).unwrap().trim());
        assert!(is_running(server) && !data.as_os_str().is_empty());

        let target = format!("{target}{}", holder.id());
        let killed = Command::new("kill").args(["-KILL", "--", &target]).status();
        assert!(killed.unwrap().success());
        holder.wait().unwrap();
        until("the server runs on", || !is_running(server));
        let folder = data.parent().unwrap();
        until("its folder is still there", || !folder.exists());
    }
}

#[test]
fn a_folder_without_the_programs_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let failed = Postgres::start(empty.path()).map(drop).unwrap_err();
    assert!(failed.contains("`initdb` did not start"), "{failed}");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_database_is_ones_own_and_goes_away() {
    let [one, two] = [(); 2].map(|()| Database::create().unwrap());
    one.query("create table t as select 1 as n").unwrap();
    assert_eq!(one.query("select n from t").unwrap(), "1");
    two.query("select n from t").unwrap_err();
    let (url, name) = (one.url(), one.name().to_owned());
    // Somebody is still there.
    let mut open = Command::new(find().unwrap().join("psql"));
    open.args(["-X", "-d", &url]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut open = open.spawn().unwrap();
    let connected = format!("select count(*) from pg_stat_activity where datname = '{name}'");
    until("nobody is connected", || two.query(&connected).unwrap() == "1");
    drop(one);
    let left = format!("select count(*) from pg_database where datname = '{name}'");
    assert_eq!(two.query(&left).unwrap(), "0");
    drop(open.stdin.take());
    open.wait().unwrap();
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_line_to_it_can_be_cut() {
    let database = Database::create().unwrap();
    let cut = Cut::before(database.address().unwrap()).unwrap();
    let ask = || {
        let mut psql = Command::new(find().unwrap().join("psql"));
        psql.args(["-X", "-A", "-t", "-d", &database.url_at(cut.address()), "-c", "select 5"]);
        psql.output().unwrap()
    };
    assert_eq!(ask().stdout, b"5\n");
    cut.set(Flow::Delay(Duration::from_millis(20)));
    assert_eq!(ask().stdout, b"5\n");
    cut.refuse();
    assert!(!ask().status.success());
    cut.set(Flow::Pass);
    assert_eq!(ask().stdout, b"5\n");
}

/// Cargo builds examples together with the tests, and puts them beside.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples").join("cluster")
}
