//! Everything below a guard. Only its own children are ever signalled, and their groups: a child that was not waited
//! for keeps its number, so no stranger can be hit. Children of children come to the guard when those die, as it is
//! where the kernel puts orphans (a subreaper). So whoever has no child left has nothing left below it at all.
//!
//! Without that, on macOS, a guard knows the group of its command and nothing else.

use std::collections::HashSet;
use std::io;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgid, getpgrp, kill_process,
    kill_process_group, wait, waitid,
};

#[cfg(target_os = "linux")]
use super::children::ThreadChildren;
use super::command;
use super::task::Task;

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
    #[cfg(target_os = "linux")]
    children: ThreadChildren,
}

impl Family {
    /// Starts the command. If it cannot be started, the error is the status of the guard.
    pub(super) fn start(task: &Task) -> Result<Self, u8> {
        // Before the command can hinder us.
        #[cfg(target_os = "linux")]
        let children = ThreadChildren::open();
        Ok(Self {
            command: command::start(task)?,
            is_waited_for: false,
            status: None,
            told: HashSet::new(),
            #[cfg(target_os = "linux")]
            children,
        })
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
        let left = self.reap();
        if left.as_ref().is_ok_and(|left| *left > 0) || self.status().is_none() {
            return false;
        }
        if left.is_err() {
            // What cannot be listed is in the command's group or out of our reach, and the group is lost when the command
            // is waited for. Our parent kills the rest when we have ended.
            self.kill();
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
        for pid in self.others().unwrap_or_default() {
            targets.push((getpgid(Some(pid)).ok().filter(|group| *group != ours), pid));
        }
        targets
    }
}

#[cfg(target_os = "linux")]
impl Family {
    /// Waits for those that have ended, except the command. How many others are left.
    pub(super) fn reap(&self) -> io::Result<usize> {
        let is_over =
            |pid| !matches!(rustix::process::waitpid(Some(pid), WaitOptions::NOHANG), Ok(None));
        Ok(self.others()?.into_iter().filter(|pid| !is_over(*pid)).count())
    }

    /// Our children, except the command.
    fn others(&self) -> io::Result<Vec<Pid>> {
        let mut children = self.children.list()?;
        children.retain(|pid| *pid != self.command);
        Ok(children)
    }
}

#[cfg(not(target_os = "linux"))]
impl Family {
    /// One, where there is anybody in the group. The dead do not count.
    pub(super) fn reap(&self) -> io::Result<usize> {
        let is_there = || rustix::process::test_kill_process_group(self.command).is_ok();
        Ok(usize::from(!self.is_waited_for && is_there()))
    }

    fn others(&self) -> io::Result<Vec<Pid>> {
        Ok(Vec::new())
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
