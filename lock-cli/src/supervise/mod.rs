//! The processes between `run` and its command: no process of the command outlives the lock.
//!
//! Three processes of this program: the **holder** (`distlock run`) has the lock and tells the
//! supervisor the deadline. The **supervisor** has the command: it ends the command and all its
//! descendants before the deadline, and at once when the holder is gone. The **launcher** becomes
//! the command. The program is loaded once: the supervisor is a fork of the holder, and the
//! launcher one of the supervisor, each before its parent has a runtime, which may have threads.
//! They start before the grant: no process has to start between the grant and the command.
//!
//! A signal to the holder becomes an order to the supervisor, which sends it to the command's group.
//!
//! | event | what ends the command |
//! |---|---|
//! | the lock is lost | the supervisor at the deadline; the holder at once if it learns of it |
//! | the holder is killed | the supervisor: SIGTERM at once, SIGKILL after the grace |
//! | the holder is stopped | the supervisor at the deadline |
//! | the supervisor is killed | its death signal kills the command, the holder all descendants |
//! | the supervisor is stopped | the holder, at the loss; it continues or kills the supervisor |
//! | both are killed | the death signal kills the command; what the command has started lives on |
//! | both are stopped | nothing |
//!
//! "All descendants" are the processes that `/proc` shows below the supervisor. It is a subreaper:
//! a process that loses its parent, also after `setsid`, becomes its child. So it also knows those
//! that `/proc` hides, once their parents have ended. The holder does not: what ran before may be its
//! child, too. A supervisor that is not root cannot kill a process that changes its user.

mod family;
mod fork;
mod holder;
mod job_control;
mod launcher;
mod message;
mod outbox;
mod supervisor;
mod terminal;

pub(crate) use self::{
    family::{is_ancestor, reap_strays},
    holder::{Job, Ready},
    job_control::stop_alone,
};
