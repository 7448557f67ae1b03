//! The objects (program and shared libraries) that the dynamic linker has mapped.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use super::walk::Walk;

/// One mapped object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The file it was loaded from; `/proc/self/exe` resolved, for the program.
    pub path: PathBuf,
    /// Whether it is the program itself.
    pub is_program: bool,
    /// The address ranges of its loadable segments (PT_LOAD).
    pub segments: Vec<Range<usize>>,
}

impl Object {
    /// Whether `address` lies in one of the object's own segments.
    #[must_use]
    pub fn contains(&self, address: usize) -> bool {
        self.segments.iter().any(|segment| segment.contains(&address))
    }
}

/// How many objects have been added and removed since the process started; it moves when dlopen or
/// dlclose has changed the list. Reading it takes the linker's lock (about 350 ns).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Generation {
    /// `dlpi_adds` of dl_iterate_phdr(3).
    pub adds: u64,
    /// `dlpi_subs` of dl_iterate_phdr(3).
    pub subs: u64,
}

/// Reads the current generation.
#[must_use]
pub fn generation() -> Generation {
    let mut found = Generation::default();
    each(&mut |info| {
        found = Generation { adds: info.dlpi_adds, subs: info.dlpi_subs };
        false
    });
    found
}

/// Lists the objects that are mapped now, the program first.
#[must_use]
pub fn loaded() -> Vec<Object> {
    let mut objects = Vec::new();
    each(&mut |info| {
        let name = if info.dlpi_name.is_null() {
            &[]
        } else {
            // SAFETY: the linker's name is NUL-terminated and lives at least as long as this
            // callback, during which the linker's lock is held.
            unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
        };
        let is_program = objects.is_empty();
        let path = if name.is_empty() && is_program {
            std::fs::read_link("/proc/self/exe").unwrap_or_default()
        } else {
            Path::new(OsStr::from_bytes(name)).to_path_buf()
        };
        objects.push(Object { path, is_program, segments: load_segments(info) });
        true
    });
    objects
}

fn load_segments(info: &libc::dl_phdr_info) -> Vec<Range<usize>> {
    if info.dlpi_phdr.is_null() {
        return Vec::new();
    }
    // SAFETY: the linker gives `dlpi_phnum` program headers at `dlpi_phdr`, mapped while the
    // object is, which the lock held during the callback ensures.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD)
        .map(|header| {
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            start..start.wrapping_add(header.p_memsz as usize)
        })
        .collect()
}

type Visitor<'a> = &'a mut dyn FnMut(&libc::dl_phdr_info) -> bool;

/// Calls `visit` for each object until it returns false.
fn each(mut visit: Visitor<'_>) {
    let _walk = Walk::begin();
    // SAFETY: `trampoline` matches the callback type and gets the visitor it expects, which outlives
    // the call.
    unsafe { libc::dl_iterate_phdr(Some(trampoline), (&raw mut visit).cast()) };
}

unsafe extern "C" fn trampoline(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `each` passes a pointer to its visitor, which nothing else uses during the walk.
    let visit = unsafe { &mut *data.cast::<Visitor<'_>>() };
    // SAFETY: the linker passes a valid record for the length of the callback.
    let info = unsafe { &*info };
    // A panic must not unwind through the linker, which holds its lock.
    match catch_unwind(AssertUnwindSafe(|| visit(info))) {
        Ok(true) => 0,
        Ok(false) | Err(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_comes_first_and_holds_its_own_code() {
        let objects = loaded();
        assert!(objects[0].is_program);
        assert!(objects[0].contains(loaded as *const () as usize));
        assert!(!objects[1].contains(loaded as *const () as usize));
        assert_eq!(objects[0].path, std::env::current_exe().unwrap());
    }

    #[test]
    fn the_generation_stands_still_while_nothing_is_loaded() {
        assert_eq!(generation(), generation());
        assert!(generation().adds >= 1);
    }
}
