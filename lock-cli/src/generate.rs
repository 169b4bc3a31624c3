//! `distlock completions` and `distlock man`.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_mangen::Man;

use crate::{
    exit::Failure,
    opt::{Completions, ManPages, Opt},
};

pub(crate) fn completions(opt: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(opt.shell, &mut Opt::command(), "distlock", &mut script);
    let mut out = io::stdout();
    Ok(out.write_all(&script).and_then(|()| out.flush())?)
}

/// One page for the program and one for each command, into a folder.
pub(crate) fn man_pages(opt: &ManPages) -> Result<(), Failure> {
    let failed = || Failure::system(opt.folder.display());
    std::fs::create_dir_all(&opt.folder).map_err(failed())?;
    let mut program = Opt::command();
    program.build();
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
    let pages = shown.cloned().chain([program.clone()]);
    for page in pages {
        Man::new(page).generate_to(&opt.folder).map_err(failed())?;
    }
    Ok(())
}
