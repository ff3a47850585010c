//! What somebody would try who has taken over a process.

use std::fs;
use std::io::{Error, Read as _, Result, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal};

/// What has to be known before.
pub(crate) struct Tries {
    listener: SocketAddr,
    parent: Pid,
    file: PathBuf,
    /// What somebody has left open, and will not be closed.
    open: fs::File,
    pipe: std::io::PipeWriter,
}

impl Tries {
    pub(crate) fn new(port: u16) -> Self {
        let file = std::env::temp_dir().join(format!("sandbox-tried-{}", std::process::id()));
        let parent = rustix::process::getppid().unwrap();
        let open = fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let (_, pipe) = std::io::pipe().unwrap();
        Self { listener: ([127, 0, 0, 1], port).into(), parent, file, open, pipe }
    }
}

type Attempt = fn(&Tries) -> Result<()>;

pub(crate) const ALL: [(&str, Attempt); 33] = [
    ("read a file", |_| fs::read("/etc/passwd").map(drop)),
    ("write a file", |tries| fs::write(&tries.file, "x")),
    ("look at a file", |_| fs::metadata("/etc/passwd").map(drop)),
    ("list a folder", |_| fs::read_dir("/").map(drop)),
    ("make a folder", |tries| fs::create_dir(&tries.file)),
    ("link a file", |tries| std::os::unix::fs::symlink("/etc/passwd", &tries.file)),
    ("remove a file", |tries| fs::remove_file(&tries.file)),
    ("read the memory of another process", |tries| {
        fs::read(format!("/proc/{}/mem", tries.parent.as_raw_nonzero())).map(drop)
    }),
    ("read its own binary", |_| fs::read("/proc/self/exe").map(drop)),
    ("change its folder", |_| std::env::set_current_dir("/")),
    ("read what is open", |tries| (&tries.open).read(&mut [0]).map(drop)),
    ("write to what is open", |tries| (&tries.pipe).write(&[0]).map(drop)),
    ("map what is open", |tries| {
        memmap2::MmapOptions::new().len(4096).map_raw_read_only(&tries.open).map(drop)
    }),
    ("connect by TCP", |tries| {
        TcpStream::connect_timeout(&tries.listener, Duration::from_secs(5)).map(drop)
    }),
    ("listen by TCP", |_| TcpListener::bind("127.0.0.1:0").map(drop)),
    ("send by UDP", |_| UdpSocket::bind("127.0.0.1:0").map(drop)),
    ("make a pair of sockets", |_| UnixStream::pair().map(drop)),
    ("make a pipe", |_| std::io::pipe().map(drop)),
    ("copy a descriptor", |_| Ok(rustix::io::dup(rustix::stdio::stdin()).map(drop)?)),
    ("make a file in memory", |_| {
        Ok(rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::empty()).map(drop)?)
    }),
    ("watch descriptors", |_| {
        Ok(rustix::event::epoll::create(rustix::event::epoll::CreateFlags::empty()).map(drop)?)
    }),
    ("start a program", |_| Command::new("/bin/true").status().map(drop)),
    ("become a program", |_| Err(Command::new("/bin/true").exec())),
    ("start a thread", |_| {
        let thread = std::thread::Builder::new().spawn(|| {})?;
        thread.join().map_err(|_| Error::other("it broke"))
    }),
    ("signal the parent", |tries| Ok(rustix::process::kill_process(tries.parent, Signal::WINCH)?)),
    ("signal everybody", |_| Ok(rustix::process::kill_current_process_group(Signal::WINCH)?)),
    ("take hold of the parent", |tries| {
        let flags = rustix::process::PidfdFlags::empty();
        Ok(rustix::process::pidfd_open(tries.parent, flags).map(drop)?)
    }),
    ("trace the parent", |tries| {
        let parent = nix::unistd::Pid::from_raw(tries.parent.as_raw_nonzero().get());
        Ok(nix::sys::ptrace::attach(parent)?)
    }),
    ("be traced", |_| Ok(nix::sys::ptrace::traceme()?)),
    ("make memory executable", |_| memmap2::MmapMut::map_anon(4096)?.make_exec().map(drop)),
    ("have more memory", |_| {
        let mut bytes: Vec<u8> = Vec::new();
        bytes.try_reserve_exact(1 << 30).map_err(|_| Error::from(std::io::ErrorKind::OutOfMemory))
    }),
    ("raise a limit", |_| {
        let limit = Rlimit { current: Some(1024), maximum: Some(1024) };
        Ok(rustix::process::setrlimit(Resource::Nofile, limit)?)
    }),
    ("begin a session", |_| Ok(rustix::process::setsid().map(drop)?)),
];
