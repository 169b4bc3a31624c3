//! Whether all processes that open a file come to the same file and the same log, as far as its
//! place tells.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use lock_core::Error;
use rustix::fs::{AtFlags, CWD, StatxFlags, statfs, statx};

use crate::{error::unfit, layout::dialect::Dialect};

/// File systems that several machines may have, by their magic numbers (statfs(2)). Their locks and
/// their shared memory do not reach other machines, or not always.
const NETWORK: [(u32, &str); 20] = [
    (0x0000_6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0000_517b, "SMB"),
    (0x6573_5546, "FUSE (sshfs, virtiofs and others)"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x4750_4653, "GPFS"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x1983_0326, "BeeGFS"),
    (0x2003_0528, "OrangeFS"),
    (0xaad7_aaea, "PanFS"),
    (0x786f_4256, "vboxsf"),
    (0xbacb_acbc, "hgfs"),
    (0x7c7c_6673, "prl_fs"),
];

/// File systems of one machine.
const LOCAL: [u32; 18] = [
    0x0000_ef53, // ext2 to ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs, which has its writes on one of the others
    0x2fc1_2fc1, // ZFS
    0xf2f5_2010, // F2FS
    0xca45_1a4e, // bcachefs
    0x3153_464a, // JFS
    0x5265_4973, // ReiserFS
    0x0000_3434, // NILFS2
    0x0000_f15f, // eCryptfs
    0x2405_1905, // UBIFS
    0x0000_72b6, // JFFS2
    0x7366_746e, // NTFS
    0x2011_bab0, // exFAT
    0x0000_4d44, // FAT
];

/// The name of a network file system.
fn network(magic: u32) -> Option<&'static str> {
    NETWORK.iter().find(|(network, _)| *network == magic).map(|(_, name)| *name)
}

fn magic(path: &Path) -> io::Result<u32> {
    // A magic number has 32 bits, whatever the type of the field.
    Ok(statfs(path)?.f_type as u32)
}

/// Returns the error for a file that another process may find with another log, or none.
pub(super) fn refusal(path: &Path) -> io::Result<Option<Error>> {
    let why = match network(magic(path)?) {
        Some(name) => Some(format!(
            "is on a network file system ({name}), where SQLite cannot keep machines apart: use a \
             file of this machine, or a server"
        )),
        None => other_name(path)?,
    };
    let refused = |why| unfit(Dialect::Sqlite, &format!("{} {why}", path.display()));
    Ok(why.map(refused))
}

/// Says why the file has another name, under which SQLite would have another log. Then neither of
/// two processes would see the other's locks.
fn other_name(path: &Path) -> io::Result<Option<String>> {
    let links = fs::metadata(path)?.nlink();
    if links > 1 {
        return Ok(Some(format!(
            "has {links} names (hard links), and SQLite has another log for each of them: remove \
             all but one"
        )));
    }
    let real = fs::canonicalize(path)?;
    let mount = |path: &Path| {
        let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
        // Linux 5.8 tells.
        let tells = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        tells.then_some(found.stx_mnt_id)
    };
    let is_mounted = real.parent().is_some_and(|folder| mount(folder) != mount(&real));
    Ok(is_mounted.then(|| {
        "is a mount of its own, and SQLite has another log beside its other name: mount the folder \
         that it is in"
            .to_owned()
    }))
}

/// Says that a file system is not known, if it is not.
pub(crate) fn caution(path: &Path) -> Option<String> {
    let magic = magic(path).ok()?;
    (!LOCAL.contains(&magic)).then(|| {
        format!(
            "{} is on a file system that is not known ({magic:#x}): if several machines have it, \
             each of them has locks of its own; use a file of this machine, or a server",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_told_apart() {
        assert_eq!(network(0x0116_1970), Some("GFS2"));
        assert_eq!(network(0x1234_5678), None);
        assert!(NETWORK.iter().all(|(magic, _)| !LOCAL.contains(magic)));
    }
}
