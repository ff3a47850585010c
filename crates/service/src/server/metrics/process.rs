//! The process as the system sees it, under the names that all programs have for it. Where there is no `/proc`, only
//! what we know ourselves.

use std::fs;

use transport::Page;

pub(super) fn print(started: u64, page: &mut Page) {
    let about = "When the process began, in seconds since 1970.";
    page.gauge("process_start_time_seconds", about).sample(&[], started);
    let mut family = page.gauge("process_resident_memory_bytes", "Memory in use.");
    if let Some(bytes) = resident_bytes() {
        family.sample(&[], bytes);
    }
    let mut family = page.gauge("process_open_fds", "Open files and connections.");
    if let Some(count) = open_files() {
        family.sample(&[], count);
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kibibytes * 1024)
}

fn open_files() -> Option<u64> {
    const FOLDER: &str = "/proc/self/fd";
    // Newer kernels know the number without listing them.
    match fs::metadata(FOLDER).ok()?.len() {
        0 => Some(fs::read_dir(FOLDER).ok()?.count() as u64),
        count => Some(count),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_knows_us() {
        assert!(resident_bytes().unwrap() > 100_000);
        let before = open_files().unwrap();
        let files: Vec<fs::File> = (0..50).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        // Other tests open and close files too.
        assert!(open_files().unwrap() >= before.saturating_sub(20) + 30, "{}", files.len());
    }
}
