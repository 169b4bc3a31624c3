//! What stands between `run` and its command, so that nothing of the command outlives the lock.
//!
//! Three processes of this program: the **holder** (`distlock run`) has the lock and tells the
//! supervisor until when. The **supervisor** has the command: it ends the command and all that
//! descends from it before the deadline, and at once when the holder is gone. The **launcher** becomes
//! the command. The two start before there is a lock: no process has to be loaded between the grant
//! and the command.
//!
//! | who dies or stops | what ends the command |
//! |---|---|
//! | nobody, but the lock is lost | the supervisor at the deadline; the holder at once if it is told |
//! | the holder is killed | the supervisor: SIGTERM at once, SIGKILL after the grace |
//! | the holder is stopped | the supervisor at the deadline |
//! | the supervisor is killed | its death signal kills the command, the holder all descendants |
//! | the supervisor is stopped | the holder, when the lock is lost |
//! | both are killed | the death signal kills the command; what the command has started lives on |
//! | both are stopped | nothing |
//!
//! "All descendants" are those that `/proc` shows below the supervisor, which is a subreaper: who loses
//! its parent, also after `setsid`, becomes its child. What changes its user cannot be killed by a
//! supervisor that is not root.

mod family;
mod feeder;
mod job_control;
mod launcher;
mod message;
mod outbox;
mod passing;
mod role;
mod supervisor;
mod terminal;

pub(crate) use self::{
    feeder::{Job, Outcome, Ready},
    job_control::stop_alone,
    role::Role,
};
