//! Which locks are in use.

use futures_util::{StreamExt, TryStreamExt, stream};
use lock_core::{LockName, Result};

use crate::{
    config::ZkConfig,
    layout::{
        child,
        path::{Layout, directory},
    },
    session::Session,
    wire::turns::Turn,
};

/// How many directories are listed at the same time.
pub(crate) const AT_ONCE: usize = 64;

/// A directory of locks, or one above such.
pub(crate) struct Directory {
    pub(crate) path: String,
    name: LockName,
    is_used: bool,
}

/// The names with an entry that start with `prefix`, in order.
pub(crate) async fn names(
    session: &Session,
    config: &ZkConfig,
    prefix: &str,
) -> Result<Vec<LockName>> {
    let levels = directories(session, config, prefix).await?;
    let used = levels.into_iter().flatten().filter(|directory| directory.is_used);
    let names = used.map(|directory| directory.name);
    let mut names: Vec<_> = names.filter(|name| name.as_str().starts_with(prefix)).collect();
    names.sort_unstable();
    Ok(names)
}

/// The directories of locks whose names may start with `prefix`, level by level.
pub(crate) async fn directories(
    session: &Session,
    config: &ZkConfig,
    prefix: &str,
) -> Result<Vec<Vec<Directory>>> {
    let (mut levels, mut level) = (Vec::new(), session.list(&config.prefix, Turn::Look).await?);
    while !level.is_empty() {
        let wanted = level.into_iter().filter_map(|path| lock_at(config, &path, prefix));
        let mut listed = stream::iter(wanted)
            .map(|(name, path)| async move {
                session.list(&path, Turn::Look).await.map(|children| (name, path, children))
            })
            .buffer_unordered(AT_ONCE);
        let mut found = Vec::new();
        level = Vec::new();
        while let Some((name, path, children)) = listed.try_next().await? {
            let is_entry = |child: &String| child::sequence(child).is_some();
            let (entries, others): (Vec<_>, Vec<_>) = children.into_iter().partition(is_entry);
            if config.layout == Layout::Native {
                level.extend(others.into_iter().map(|child| format!("{name}/{child}")));
            }
            found.push(Directory { path, name, is_used: !entries.is_empty() });
        }
        levels.push(found);
    }
    Ok(levels)
}

/// The lock whose directory this is, if it or one below it may have a name with the prefix.
fn lock_at(config: &ZkConfig, path: &str, prefix: &str) -> Option<(LockName, String)> {
    let name = match config.layout {
        Layout::Escaped => LockName::from_escaped(path)?,
        Layout::Native => LockName::new(path).ok()?,
    };
    let above = || prefix.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    let may = name.as_str().starts_with(prefix) || (config.layout == Layout::Native && above());
    let directory = may.then(|| directory(&config.prefix, config.layout, &name).ok())??;
    Some((name, directory))
}
