//! Everything below a guard. Only its own children are ever signalled, and their groups: a child that was not waited
//! for keeps its number, so no stranger can be hit. Children of children come to the guard when those die, as it is
//! where the kernel puts orphans (a subreaper). So whoever has no child left has nothing left below it at all.
//!
//! Without that, on macOS, a guard knows the group of its command and nothing else.

use std::collections::HashSet;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgid, getpgrp, kill_process,
    kill_process_group, wait, waitid,
};

#[cfg(target_os = "linux")]
mod children;

/// What shells add to a signal's number.
const BY_SIGNAL: i32 = 128;

#[derive(Debug)]
pub(super) struct Family {
    /// The command, which leads a group. It is waited for last, so that its group keeps its number.
    command: Pid,
    is_waited_for: bool,
    status: Option<u8>,
    /// Who was asked to end already: groups, and children that are in ours.
    told: HashSet<Pid>,
}

impl Family {
    pub(super) fn new(command: Pid) -> Self {
        Self { command, is_waited_for: false, status: None, told: HashSet::new() }
    }

    /// The command's, once it has ended.
    pub(super) fn status(&mut self) -> Option<u8> {
        if self.status.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if let Ok(Some(status)) = waitid(WaitId::Pid(self.command), options) {
                let signal = status.terminating_signal().map(|signal| BY_SIGNAL + signal);
                let status = status.exit_status().or(signal);
                self.status = status.map(|status| u8::try_from(status & 0xff).unwrap_or(u8::MAX));
            }
        }
        self.status
    }

    /// Whether nothing is left. Takes note of those that have ended; of the command last.
    pub(super) fn is_gone(&mut self) -> bool {
        if self.reap() > 0 || self.status().is_none() {
            return false;
        }
        // A list of processes is not exact while they come and go. This is.
        loop {
            match wait(WaitOptions::NOHANG) {
                Err(Errno::CHILD) => return true,
                Ok(Some((pid, _))) => self.is_waited_for |= pid == self.command,
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return false,
            }
        }
    }

    /// Asks everybody to end who was not asked before. The stopped are woken, to hear it.
    pub(super) fn tell(&mut self) {
        for (group, pid) in self.targets() {
            if self.told.insert(group.unwrap_or(pid)) {
                send(group, pid, Signal::TERM);
                send(group, pid, Signal::CONT);
            }
        }
    }

    pub(super) fn kill(&self) {
        for (group, pid) in self.targets() {
            // A group is killed as one: nobody in it forks meanwhile.
            send(group, pid, Signal::KILL);
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Each child with the group that it is in, unless that is our own.
    fn targets(&self) -> Vec<(Option<Pid>, Pid)> {
        let ours = getpgrp();
        let mut targets = Vec::new();
        // Once it was waited for, its number may be somebody else's.
        if !self.is_waited_for {
            targets.push((Some(self.command), self.command));
        }
        for pid in self.others() {
            targets.push((getpgid(Some(pid)).ok().filter(|group| *group != ours), pid));
        }
        targets
    }
}

#[cfg(target_os = "linux")]
impl Family {
    /// Waits for those that have ended, except the command. How many others are left.
    pub(super) fn reap(&self) -> usize {
        let is_over =
            |pid| !matches!(rustix::process::waitpid(Some(pid), WaitOptions::NOHANG), Ok(None));
        self.others().into_iter().filter(|pid| !is_over(*pid)).count()
    }

    /// Our children, except the command.
    fn others(&self) -> Vec<Pid> {
        let mut children = children::list();
        children.retain(|pid| *pid != self.command);
        children
    }
}

#[cfg(not(target_os = "linux"))]
impl Family {
    /// One, where there is anybody in the group. The dead do not count.
    pub(super) fn reap(&self) -> usize {
        let is_there = || rustix::process::test_kill_process_group(self.command).is_ok();
        usize::from(!self.is_waited_for && is_there())
    }

    fn others(&self) -> Vec<Pid> {
        Vec::new()
    }
}

/// To a whole group, or to one process where there is no such group.
fn send(group: Option<Pid>, pid: Pid, signal: Signal) {
    let is_sent = group.is_some_and(|group| kill_process_group(group, signal).is_ok());
    if !is_sent {
        // Whoever is gone is gone, and who may not be signalled (setuid) stays.
        let _ = kill_process(pid, signal);
    }
}
