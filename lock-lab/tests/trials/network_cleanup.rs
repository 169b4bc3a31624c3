//! Nothing of a network stays behind.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use lock_lab::{EtcdCluster, Network};

use crate::support::eventually;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Makes this program the process under test, and marks all processes that it starts.
pub const MARK: &str = "LOCK_LAB_MARK";

struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this program as a process that holds a network, with a mark of its own.
fn holder(what: &str) -> Result<(Holder, String)> {
    let mark = format!("{what}-{}", std::process::id());
    let mut command = Command::new(env::current_exe()?);
    command.env(MARK, &mark).stdin(Stdio::piped()).stdout(Stdio::piped());
    Ok((Holder(command.spawn()?), mark))
}

fn line_of(Holder(holder): &mut Holder) -> Result<String> {
    let mut line = String::new();
    BufReader::new(holder.stdout.as_mut().ok_or("its output")?).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

/// Returns the processes with this mark. A process gives its mark to all processes that it starts.
fn marked(mark: &str) -> BTreeSet<u32> {
    let mark = format!("{MARK}={mark}\0");
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_mark = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|part| part == mark.as_bytes())
    };
    pids.filter(has_mark).collect()
}

async fn a_kill_of_this_process_leaves_no_process_and_no_data() -> Result {
    let (mut holder, mark) = holder("killed")?;
    let homes = line_of(&mut holder)?;
    let homes: Vec<_> = homes.split(' ').map(PathBuf::from).collect();
    assert!(homes.len() == 3 && homes.iter().all(|home| home.is_dir()), "{homes:?}");
    assert!(marked(&mark).len() > 3, "three servers and their watchers");
    drop(holder);
    // A namespace without a name ends with its last process.
    eventually("no process is left", || marked(&mark).is_empty()).await;
    eventually("the data is deleted", || !homes.iter().any(|home| home.exists())).await;
    Ok(())
}

async fn a_drop_leaves_no_process_no_data_and_no_namespace() -> Result {
    let (mut holder, mark) = holder("dropped")?;
    let homes = line_of(&mut holder)?;
    assert!(!homes.is_empty());
    drop(holder.0.stdin.take());
    assert_eq!(line_of(&mut holder)?, "0 namespaces");
    assert_eq!(marked(&mark), [holder.0.id()].into());
    assert!(!homes.split(' ').any(|home| PathBuf::from(home).exists()), "{homes}");
    Ok(())
}

/// Prints the folders of a cluster, drops everything when its input ends, and prints the number of
/// namespaces that are still open.
pub async fn hold() -> Result {
    let network = Network::new()?;
    let (etcd, _side) = (EtcdCluster::start(&network).await?, network.side()?);
    let home = |pid| fs::read_link(format!("/proc/{pid}/cwd"));
    let homes = etcd.nodes().iter().map(|node| home(node.pid()));
    let homes: Vec<_> = homes.map(|home| home.map(|path| path.display().to_string())).collect();
    println!("{}", homes.into_iter().collect::<std::io::Result<Vec<_>>>()?.join(" "));
    std::io::stdin().read_line(&mut String::new())?;
    drop((network, etcd, _side));
    println!("{} namespaces", namespaces()?);
    std::future::pending().await
}

fn namespaces() -> std::io::Result<usize> {
    let files = fs::read_dir("/proc/self/fd")?.flatten();
    let files = files.filter_map(|file| fs::read_link(file.path()).ok());
    Ok(files.filter(|file| file.to_string_lossy().starts_with("net:[")).count())
}

crate::trials!(
    a_kill_of_this_process_leaves_no_process_and_no_data,
    a_drop_leaves_no_process_no_data_and_no_namespace,
);
