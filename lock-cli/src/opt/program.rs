//! The options of `completions` and `man`, with their help.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::Shell;

/// Prints a script by which a shell completes commands, options, and names of locks.
///
/// The script calls `distlock` for each completion. Print it anew with each version of the program,
/// or at each start of the shell. The names are those in use in the store of --store on the command
/// line, or of the usual store. A store that does not answer within a second completes no names.
/// Names that a shell would change are left out.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  source <(distlock completions bash)                      in ~/.bashrc
  source <(distlock completions zsh)                       in ~/.zshrc, behind compinit
  distlock completions fish | source                       in ~/.config/fish/config.fish")]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: Shell,
}

/// Writes the man pages into a folder.
#[derive(Args, Debug)]
pub(crate) struct ManPages {
    /// The folder. It is created if it does not exist.
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}
