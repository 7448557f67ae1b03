//! The files that a process, this one or another, has mapped as objects (proc_pid_maps(5)).
//!
//! For this process it sees more than the dynamic linker tells: objects of other linker namespaces,
//! and files that have been deleted since. Needs the permission to look at the process (ptrace(2),
//! PTRACE_MODE_READ): that of its user, or root.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What the kernel appends to the path of a mapped file that has no name any more.
const DELETED: &[u8] = b" (deleted)";

/// Flag of a kernel thread in `/proc/PID/stat` (PF_KTHREAD).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Why a process cannot be looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// There is no such process (any more).
    #[error(
        "process {pid}: there is none of that number, or it has ended; look for it with `pgrep -l NAME`"
    )]
    Gone {
        /// The number asked for.
        pid: u32,
    },
    /// The kernel keeps it from this user.
    #[error(
        "process {pid}: no permission to look at it, it belongs to user {user}; run this as that \
         user or as root (in a container: with CAP_SYS_PTRACE)"
    )]
    NotPermitted {
        /// The number asked for.
        pid: u32,
        /// Numeric user id of its owner.
        user: u32,
    },
    /// It has ended and waits for its parent; nothing is mapped.
    #[error(
        "process {pid}: has ended and only waits for its parent (a zombie); give a process that runs"
    )]
    Zombie {
        /// The number asked for.
        pid: u32,
    },
    /// A thread of the kernel, which has no program.
    #[error(
        "process {pid}: is a thread of the kernel and runs no program; give a process that does"
    )]
    Kernel {
        /// The number asked for.
        pid: u32,
    },
    /// No proc file system.
    #[error("/proc is not mounted here: mount it, or run this where it is")]
    NoProc,
    /// The operating system failed a read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
}

/// Why a mapped file cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is deleted, and this user may not read it through the mapping.
    #[error("it was deleted or replaced on disk after it was loaded; root can still read it")]
    Gone,
    /// The operating system's reason.
    #[error("it cannot be opened: {0}")]
    Io(#[from] io::Error),
}

/// A process whose mapped objects can be listed.
#[derive(Debug, Clone)]
pub struct Process {
    pid: u32,
    directory: PathBuf,
}

/// An object (program or library) that a process has mapped.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// The file it was loaded from, as the process sees it.
    pub path: PathBuf,
    /// Whether that file has lost its name since: it was deleted, or another took its place.
    pub deleted: bool,
    /// Whether it is the program itself.
    pub is_program: bool,
    /// Inode number of the file; with the path, it names the content.
    pub inode: u64,
    /// Its mappings, lowest first.
    pub mappings: Vec<Mapping>,
}

/// One mapping of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Addresses in the process.
    pub range: Range<u64>,
    /// Whether the process may write to it.
    pub writable: bool,
    /// Whether the process may run it.
    pub executable: bool,
}

impl Mapped {
    /// Whether `address` lies in one of its mappings.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.mappings.iter().any(|mapping| mapping.range.contains(&address))
    }

    /// Address ranges that the process may not write to.
    #[must_use]
    pub fn constant(&self) -> Vec<Range<u64>> {
        let constant = self.mappings.iter().filter(|mapping| !mapping.writable);
        constant.map(|mapping| mapping.range.clone()).collect()
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)
    }
}

impl Process {
    /// The calling process.
    #[must_use]
    pub fn this() -> Self {
        Self { pid: std::process::id(), directory: PathBuf::from("/proc/self") }
    }

    /// The process of that number.
    #[must_use]
    pub fn other(pid: u32) -> Self {
        Self { pid, directory: PathBuf::from(format!("/proc/{pid}")) }
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The program it runs, as the process sees the path.
    ///
    /// # Errors
    /// As [`Process::objects`].
    pub fn program(&self) -> Result<PathBuf, ProcessError> {
        let link = self.link_to_program()?;
        let (path, _) = split_deleted(link.as_os_str().as_bytes());
        Ok(to_path(path))
    }

    /// The objects that are mapped now, lowest address first.
    ///
    /// An object is listed once for each time it is loaded. Files that are mapped only as data are
    /// not listed, nor is what the kernel provides itself (vdso).
    ///
    /// # Errors
    /// [`ProcessError`], each variant with what the caller can do.
    pub fn objects(&self) -> Result<Vec<Mapped>, ProcessError> {
        self.check_runs()?;
        let program = self.link_to_program()?;
        let maps = self.read("maps")?;
        if maps.is_empty() {
            // The process is about to end: its memory is gone already.
            return Err(ProcessError::Gone { pid: self.pid });
        }
        Ok(objects(&maps, program.as_os_str().as_bytes()))
    }

    /// Opens the file of a mapped object: the content that was loaded, whatever has its name now.
    ///
    /// # Errors
    /// [`OpenError::Gone`] where the file is deleted and only root could read it.
    pub fn open(&self, object: &Mapped) -> Result<File, OpenError> {
        if object.is_program
            && let Ok(file) = File::open(self.directory.join("exe"))
        {
            return Ok(file);
        }
        // The mapping itself leads to the very file; the kernel lets only root go this way.
        if let Some(Mapping { range, .. }) = object.mappings.first() {
            let name = format!("map_files/{:x}-{:x}", range.start, range.end);
            if let Ok(file) = File::open(self.directory.join(name)) {
                return Ok(file);
            }
        }
        if object.deleted {
            return Err(OpenError::Gone);
        }
        // Paths are those of the process, which may live in a container; in a chroot they are ours.
        let mut inside = self.directory.join("root").into_os_string();
        inside.push(&object.path);
        let mut first = None;
        for path in [Path::new(&inside), &object.path] {
            let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
            let is_it = opened
                .as_ref()
                .is_ok_and(|file| file.metadata().is_ok_and(|found| found.ino() == object.inode));
            if is_it {
                return Ok(opened?);
            }
            first.get_or_insert(opened);
        }
        // Some file systems (overlays) show another number in the mapping than in the file.
        first.map_or(Err(OpenError::Gone), |opened| Ok(opened?))
    }

    /// Opens the memory of the process, for reading mapped objects whose files are gone.
    ///
    /// # Errors
    /// The operating system's reason; another process's memory needs more than its user's rights
    /// where the kernel restricts ptrace(2) (Yama).
    pub fn memory(&self) -> io::Result<File> {
        File::open(self.directory.join("mem"))
    }

    /// Refuses what has no memory to look at.
    fn check_runs(&self) -> Result<(), ProcessError> {
        if fs::metadata("/proc/self/maps").is_err() {
            return Err(ProcessError::NoProc);
        }
        refuse_dead(self.pid, &self.read("stat")?)
    }

    fn link_to_program(&self) -> Result<PathBuf, ProcessError> {
        let path = self.directory.join("exe");
        fs::read_link(&path).map_err(|error| self.error(path, error))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, ProcessError> {
        let path = self.directory.join(name);
        fs::read(&path).map_err(|error| self.error(path, error))
    }

    fn error(&self, path: PathBuf, source: io::Error) -> ProcessError {
        let pid = self.pid;
        match (source.kind(), source.raw_os_error()) {
            (io::ErrorKind::NotFound, _) | (_, Some(libc::ESRCH)) => ProcessError::Gone { pid },
            (io::ErrorKind::PermissionDenied, _) => match fs::metadata(&self.directory) {
                Ok(owner) => ProcessError::NotPermitted { pid, user: owner.uid() },
                Err(_) => ProcessError::Gone { pid },
            },
            _ => ProcessError::Read { path, source },
        }
    }
}

/// Refuses kernel threads and zombies, by what proc_pid_stat(5) says.
fn refuse_dead(pid: u32, stat: &[u8]) -> Result<(), ProcessError> {
    // The name in parentheses may hold spaces and parentheses: count from its end.
    let end = stat.iter().rposition(|&byte| byte == b')').map_or(stat.len(), |at| at + 1);
    let fields = String::from_utf8_lossy(&stat[end..]);
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next().unwrap_or_default();
    let flags = fields.nth(5).and_then(|flags| flags.parse::<u64>().ok()).unwrap_or_default();
    match state {
        _ if flags & KERNEL_THREAD != 0 => Err(ProcessError::Kernel { pid }),
        "Z" | "X" | "x" => Err(ProcessError::Zombie { pid }),
        _ => Ok(()),
    }
}

/// Reads the objects off a maps file.
fn objects(maps: &[u8], program: &[u8]) -> Vec<Mapped> {
    let mut objects: Vec<Mapped> = Vec::new();
    // Device and inode of the file whose mappings are being gathered.
    let mut current: Option<(&[u8], u64)> = None;
    for line in maps.split(|&byte| byte == b'\n') {
        let Some(entry) = Entry::parse(line) else { continue };
        // An anonymous mapping in between (.bss) belongs to the object as well, and a shared one is
        // never part of an object.
        if entry.inode == 0 || entry.shared {
            continue;
        }
        if entry.offset == 0 {
            let name = unescape(entry.path);
            let (path, deleted) = split_deleted(&name);
            objects.push(Mapped {
                path: to_path(path),
                deleted,
                is_program: name == program,
                inode: entry.inode,
                mappings: vec![entry.mapping],
            });
            current = Some((entry.device, entry.inode));
        } else if current == Some((entry.device, entry.inode))
            && let Some(object) = objects.last_mut()
        {
            object.mappings.push(entry.mapping);
        }
    }
    // What cannot be run is data: programs map their own file to read its symbols. The program counts
    // even so, if it is nowhere to be run: it may have moved its text to huge pages.
    let runs = |object: &Mapped| object.mappings.iter().any(|mapping| mapping.executable);
    let mut program_runs = objects.iter().any(|object| object.is_program && runs(object));
    objects.retain(|object| {
        let is_only_trace = object.is_program && !program_runs;
        program_runs |= is_only_trace;
        is_only_trace || runs(object)
    });
    objects
}

/// One line of a maps file.
struct Entry<'a> {
    mapping: Mapping,
    shared: bool,
    offset: u64,
    device: &'a [u8],
    inode: u64,
    path: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Parses `7f0000000000-7f0000001000 r-xp 00000000 08:01 1234      /usr/lib/libx.so`.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = line;
        let mut field = || {
            let end = rest.iter().position(|&byte| byte == b' ')?;
            let (field, behind) = rest.split_at(end);
            rest = behind.get(1..)?;
            Some(field)
        };
        let (range, permissions, offset) = (field()?, field()?, field()?);
        let (device, inode) = (field()?, field()?);
        let path = rest.trim_ascii_start();
        let number =
            |text: &[u8], base| u64::from_str_radix(std::str::from_utf8(text).ok()?, base).ok();
        let dash = range.iter().position(|&byte| byte == b'-')?;
        let range = number(&range[..dash], 16)?..number(&range[dash + 1..], 16)?;
        Some(Self {
            mapping: Mapping {
                range,
                writable: permissions.get(1) == Some(&b'w'),
                executable: permissions.get(2) == Some(&b'x'),
            },
            shared: permissions.get(3) == Some(&b's'),
            offset: number(offset, 16)?,
            device,
            inode: number(inode, 10)?,
            path,
        })
    }
}

/// Takes the kernel's mark off the path of a deleted file.
fn split_deleted(path: &[u8]) -> (&[u8], bool) {
    match path.strip_suffix(DELETED) {
        // A file may really be called so.
        Some(stripped) if fs::symlink_metadata(to_path(path)).is_err() => (stripped, true),
        _ => (path, false),
    }
}

/// Undoes the kernel's escape of line feeds.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(b"\\012") {
            plain.push(b'\n');
            rest = behind;
        } else {
            plain.push(byte);
            rest = behind;
        }
    }
    plain
}

fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_its_program_and_the_c_library_and_no_vdso() {
        let process = Process::this();
        let objects = process.objects().unwrap();
        let program: Vec<_> = objects.iter().filter(|object| object.is_program).collect();
        assert_eq!(program.len(), 1);
        assert_eq!(program[0].path, std::env::current_exe().unwrap());
        assert_eq!(program[0].path, process.program().unwrap());
        assert!(program[0].contains(objects_address()));
        assert!(objects.iter().any(|object| object.path.ends_with("libc.so.6")));
        assert!(objects.iter().all(|object| object.path.is_absolute()), "{objects:?}");
        for object in &objects {
            process
                .open(object)
                .unwrap_or_else(|error| panic!("{}: {error}", object.path.display()));
        }
    }

    fn objects_address() -> u64 {
        this_process_has_its_program_and_the_c_library_and_no_vdso as *const () as u64
    }

    #[test]
    fn mappings_are_gathered_into_objects() {
        let maps = b"\
            1000-2000 r--p 00000000 08:01 11                         /bin/prog ram\n\
            2000-3000 r-xp 00001000 08:01 11                         /bin/prog ram\n\
            3000-4000 rw-p 00002000 08:01 11                         /bin/prog ram\n\
            4000-5000 rw-p 00000000 00:00 0                          [heap]\n\
            6000-7000 r--p 00000000 08:01 13                         /usr/share/data\n\
            7000-8000 rwxs 00000000 00:01 14                         /memfd:doublemapper (deleted)\n\
            10000-11000 r-xp 00000000 08:01 12                       /lib/x\\012y.so (deleted)\n\
            11000-12000 ---p 00001000 08:01 12                       /lib/x\\012y.so (deleted)\n\
            20000-21000 r-xp 00000000 08:01 12                       /lib/x\\012y.so (deleted)\n\
            30000-31000 r-xp 00000000 00:00 0                        [vdso]\n\
            40000-48000 r--p 00000000 08:01 11                       /bin/prog ram\n\
            garbage\n\n";
        let objects = objects(maps, b"/bin/prog ram");
        let paths: Vec<_> = objects.iter().map(|object| object.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["/bin/prog ram", "/lib/x\ny.so", "/lib/x\ny.so"]);
        assert!(objects[0].is_program && !objects[0].deleted);
        assert_eq!(objects[0].mappings.len(), 3);
        assert_eq!(objects[0].constant(), [0x1000..0x2000, 0x2000..0x3000]);
        assert!(objects[1].deleted && !objects[1].is_program);
        assert!(objects[1].contains(0x11000) && !objects[1].contains(0x20000));
        assert!(objects[2].contains(0x20000));

        let moved =
            b"1000-2000 r--p 00000000 08:01 11 /bin/p\n8000-9000 r--p 00000000 08:01 11 /bin/p\n";
        let moved = super::objects(moved, b"/bin/p");
        assert_eq!(moved.len(), 1);
        assert!(moved[0].contains(0x1000));
    }

    #[test]
    fn processes_without_memory_are_told_apart() {
        let refused =
            |stat: &str| refuse_dead(7, stat.as_bytes()).map_err(|error| error.to_string());
        let kernel = refused("7 (kworker/0:0H (x) R) I 2 0 0 0 -1 69238880 0 0").unwrap_err();
        assert!(kernel.contains("a thread of the kernel"), "{kernel}");
        let zombie = refused("7 (sh) Z 1 7 7 0 -1 4228108 126 0").unwrap_err();
        assert!(zombie.contains("a zombie"), "{zombie}");
        assert_eq!(refused("7 (a) Z 2) S 1 7 7 0 -1 4194304 126 0"), Ok(()));
        assert_eq!(refused(""), Ok(()));
    }

    #[test]
    fn a_number_without_a_process_is_said_to_be_gone() {
        let error = Process::other(u32::MAX).objects().unwrap_err();
        assert!(matches!(error, ProcessError::Gone { pid: u32::MAX }), "{error}");
    }
}
