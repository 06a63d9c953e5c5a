//! The memory of this process: how much of it conversations may use, unless the operator says so, and in which pages.
use std::path::{Path, PathBuf};

/// Asks for memory in pages of 4 KiB. Of pages of 2 MiB, which the allocator prefers, a part is always unused: thousands of
/// connections then take half as much again.
pub fn use_small_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// The default of `SIDETONE_MEMORY_MB`, half of what this process may use; `None` where the machine does not tell its
/// memory in files, as Linux does.
pub fn default_mb() -> Option<String> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let half_mb = usable_bytes(read)? / 2 / (1024 * 1024);
    Some(half_mb.max(sidetone_engine::base::limits::MEMORY_MB_MIN).to_string())
}

/// The least of the machine's memory and the limits of the control groups that the process is in.
fn usable_bytes(read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| total_bytes(&text));
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = limit_files(&groups).into_iter().filter_map(|path| read(&path)?.trim().parse::<u64>().ok());
    machine.into_iter().chain(limits).min()
}

fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The files with the limits of a process's control groups: of each group and of those around it. A missing one, or one
/// with the word "max", limits nothing.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        // In a container, the group's path may be that of the machine outside: its root then has the limit.
        for around in Path::new(group.trim_start_matches('/')).ancestors() {
            files.push(Path::new(root).join(around).join(file));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usable(files: &[(&str, &str)]) -> Option<u64> {
        usable_bytes(|path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn the_tightest_limit_counts() {
        let meminfo = ("/proc/meminfo", "MemTotal:        8000000 kB\nMemFree: 1 kB\n");
        assert_eq!(usable(&[]), None);
        assert_eq!(usable(&[meminfo]), Some(8_192_000_000));
        let group = ("/proc/self/cgroup", "0::/system.slice/sidetone.service\n");
        let own = ("/sys/fs/cgroup/system.slice/sidetone.service/memory.max", "max\n");
        let slice = ("/sys/fs/cgroup/system.slice/memory.max", "1073741824\n");
        assert_eq!(usable(&[meminfo, group, own]), Some(8_192_000_000));
        assert_eq!(usable(&[meminfo, group, own, slice]), Some(1_073_741_824));
        let container = ("/sys/fs/cgroup/memory.max", "536870912");
        assert_eq!(usable(&[meminfo, group, container]), Some(536_870_912));
        let old = ("/proc/self/cgroup", "9:cpu:/a\n5:memory:/docker/0f\n");
        let limit = ("/sys/fs/cgroup/memory/docker/0f/memory.limit_in_bytes", "268435456\n");
        assert_eq!(usable(&[meminfo, old, limit]), Some(268_435_456));
    }
}
