//! Loads a libssl with its libcrypto and makes it ready for use.

use std::ffi::{CStr, c_char, c_ulong};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sslsweep::libcrypto::locking::{self, LockingError, Locks};
use sslsweep::libcrypto::{self, Library, memory};
use sslsweep::sys::dl::Handle;
use sslsweep::sys::elf::{Class, ElfError, Kind, Machine};
use sslsweep::sys::objects;

use crate::elf;
use crate::symbols::Symbols;

/// Why a libssl could not be used; each message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such file.
    #[error(
        "{} does not exist{}; `ldconfig -p | grep -e libssl -e libcrypto` lists what the system has",
        path.display(), near.as_ref().map_or(String::new(), |near| format!(" (did you mean {}?)", near.display()))
    )]
    Missing {
        /// What was asked for.
        path: PathBuf,
        /// A file in the same folder with a similar name.
        near: Option<PathBuf>,
    },
    /// The file could not be read.
    #[error("cannot read {}: {source}; check its permissions", path.display())]
    Unreadable {
        /// What was asked for.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A folder, a device, a socket.
    #[error("{} is not a file; give the path of the shared object itself", path.display())]
    NotAFile {
        /// What was asked for.
        path: PathBuf,
    },
    /// Not a shared object at all: a text file, a linker script, an archive.
    #[error("{} is not an ELF file; give a shared object such as libssl.so.3, not an archive or a linker script", path.display())]
    NotElf {
        /// What was asked for.
        path: PathBuf,
    },
    /// Part of the file is missing, or it is damaged.
    #[error("{} is truncated or damaged ({reason}); copy or unpack it again", path.display())]
    Truncated {
        /// What was asked for.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A 32-bit library for a 64-bit program, or the other way round.
    #[error("{} is a {found} library and this program is {wanted}; give the {wanted} build of it", path.display())]
    WrongClass {
        /// What was asked for.
        path: PathBuf,
        /// The file's word size.
        found: Class,
        /// The program's.
        wanted: Class,
    },
    /// A library for another processor.
    #[error("{} is built for {found} and this program for {wanted}; give the build for {}", path.display(), std::env::consts::ARCH)]
    WrongMachine {
        /// What was asked for.
        path: PathBuf,
        /// The file's machine.
        found: Machine,
        /// The program's.
        wanted: Machine,
    },
    /// A program or an object file.
    #[error("{} is {found}, not a shared object; give the .so", path.display())]
    NotShared {
        /// What was asked for.
        path: PathBuf,
        /// What it is.
        found: Kind,
    },
    /// Something else is wrong with the file.
    #[error(transparent)]
    Elf(ElfError),
    /// What the library needs is loaded already under that name, from another file.
    #[error("{} needs {name}, and this process has another {name} already ({}); a process can hold one library of a name: give the {name} that belongs to it, or use another process", path.display(), loaded.display())]
    NameTaken {
        /// The library that was to be loaded.
        path: PathBuf,
        /// What it needs.
        name: String,
        /// Where the one that is loaded comes from.
        loaded: PathBuf,
    },
    /// The dynamic linker refused it, mostly because something it needs is missing.
    #[error("the dynamic linker cannot load {}: {message}; put what it needs into the same folder or into LD_LIBRARY_PATH", path.display())]
    Linker {
        /// The object that was refused.
        path: PathBuf,
        /// The dynamic linker's message.
        message: String,
    },
    /// A shared object, and not a libssl that we can drive.
    #[error("{} does not offer {symbol}: it is not a libssl with a libcrypto that this program can drive; give the path of libssl itself", path.display())]
    MissingSymbol {
        /// The libssl.
        path: PathBuf,
        /// The first symbol that neither it nor its libcrypto has.
        symbol: &'static str,
    },
    /// The libssl works on another libcrypto than the one that was named.
    #[error("{} does not use {} but {}; give a libcrypto of the same release and name, or leave it out", libssl.display(), given.display(), used.display())]
    OtherLibcrypto {
        /// The libssl.
        libssl: PathBuf,
        /// The libcrypto that was named.
        given: PathBuf,
        /// The libcrypto that was found through the libssl.
        used: PathBuf,
    },
    /// The libcrypto was loaded, and sslsweep cannot drive it.
    #[error("{} cannot be driven: {reason}; docs/binding.md says what sslsweep can drive", path.display())]
    NotBound {
        /// The libcrypto, or the libssl if its libcrypto was not found.
        path: PathBuf,
        /// What sslsweep says about it.
        reason: String,
    },
    /// The library's own initialisation failed.
    #[error("{} does not initialise: {reason}; try it in a process of its own, with OPENSSL_CONF=/dev/null", path.display())]
    Initialise {
        /// The libssl.
        path: PathBuf,
        /// The library's reason.
        reason: String,
    },
}

/// A loaded libssl and the libcrypto it uses.
///
/// Lives as long as the process: libraries are never unloaded.
pub struct Tls {
    pub(crate) symbols: Symbols,
    libssl: PathBuf,
    library: &'static Library,
    locks: Option<&'static Locks>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("libssl", &self.libssl).finish_non_exhaustive()
    }
}

/// What has been loaded, so that a library is initialised once.
static LOADED: Mutex<Vec<&'static Tls>> = Mutex::new(Vec::new());

impl Tls {
    /// Loads `libssl`, and `libcrypto` before it when one is named.
    ///
    /// Libraries that `libssl` needs and that lie in its folder are taken from there. Nothing of
    /// them becomes visible to other libraries (RTLD_LOCAL). Loading the same file again gives the
    /// same [`Tls`].
    ///
    /// # Errors
    /// One of [`LoadError`], before the file is mapped wherever that is possible.
    pub fn load(libssl: &Path, libcrypto: Option<&Path>) -> Result<&'static Self, LoadError> {
        Self::load_then(libssl, libcrypto, || {})
    }

    /// As [`load`](Self::load), and before the libcrypto allocates anything its memory functions are
    /// replaced by those that count. What is loaded already stays as it is;
    /// [`memory::figures`] tells which it is.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_accounted(
        libssl: &Path,
        libcrypto: Option<&Path>,
    ) -> Result<&'static Self, LoadError> {
        Self::load_then(libssl, libcrypto, || {
            memory::install_early();
        })
    }

    /// Loads the libraries and calls `mapped` before the first call into them.
    fn load_then(
        libssl: &Path,
        libcrypto: Option<&Path>,
        mapped: impl FnOnce(),
    ) -> Result<&'static Self, LoadError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let file = std::fs::canonicalize(libssl).unwrap_or_else(|_| libssl.to_path_buf());
        let known = loaded.iter().copied().find(|tls| tls.libssl == file);
        let tls = match known {
            Some(tls) => tls,
            None => {
                let tls: &'static Self = Box::leak(Box::new(open(file, libcrypto, mapped)?));
                loaded.push(tls);
                tls
            }
        };
        if let Some(given) = libcrypto {
            tls.uses(given)?;
        }
        Ok(tls)
    }

    /// The file of libssl.
    #[must_use]
    pub fn libssl(&self) -> &Path {
        &self.libssl
    }

    /// The file of the libcrypto that libssl uses.
    #[must_use]
    pub fn libcrypto(&self) -> &Path {
        self.library.path()
    }

    /// The version text of the libcrypto: `OpenSSL 3.0.19 27 Jan 2026`.
    #[must_use]
    #[doc(alias = "OpenSSL_version")]
    pub fn version(&self) -> &str {
        self.library.version()
    }

    /// The libcrypto as sslsweep has bound it.
    #[must_use]
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// The locks that 1.0.x works with, to be read for their figures. They are installed by
    /// [`Self::load`], with pthread_self(3) as the thread id, unless the process had its own.
    #[must_use]
    pub fn locks(&self) -> Option<&'static Locks> {
        self.locks
    }

    /// Whether this is 1.0.x, where settings are made in older ways.
    pub(crate) fn is_1_0(&self) -> bool {
        self.symbols.OPENSSL_init_ssl.is_none()
    }

    /// The oldest error of the calling thread's queue, 0 when it is empty; leaves it there.
    ///
    /// See [ERR_peek_error(3)](https://docs.openssl.org/master/man3/ERR_get_error/).
    #[doc(alias = "ERR_peek_error")]
    pub fn peek_error(&self) -> u64 {
        // SAFETY: takes no pointer and acts on the calling thread's queue only.
        unsafe { (self.symbols.ERR_peek_error)() }
    }

    /// The newest error of the calling thread's queue, 0 when it is empty; leaves it there.
    ///
    /// See [ERR_peek_last_error(3)](https://docs.openssl.org/master/man3/ERR_get_error/).
    #[doc(alias = "ERR_peek_last_error")]
    pub fn peek_last_error(&self) -> u64 {
        // SAFETY: takes no pointer and acts on the calling thread's queue only.
        unsafe { (self.symbols.ERR_peek_last_error)() }
    }

    /// Empties the calling thread's error queue.
    ///
    /// See [ERR_clear_error(3)](https://docs.openssl.org/master/man3/ERR_clear_error/).
    #[doc(alias = "ERR_clear_error")]
    pub fn clear_errors(&self) {
        // SAFETY: takes no pointer and acts on the calling thread's queue only.
        unsafe { (self.symbols.ERR_clear_error)() }
    }

    /// The library's text for an error code; touches no queue.
    ///
    /// See [ERR_error_string_n(3)](https://docs.openssl.org/master/man3/ERR_error_string/).
    #[doc(alias = "ERR_error_string_n")]
    #[must_use]
    pub fn error_text(&self, code: u64) -> String {
        let mut text = [0 as c_char; 256];
        // SAFETY: the buffer is writable for the length given, and the function ends it with NUL.
        unsafe {
            (self.symbols.ERR_error_string_n)(code as c_ulong, text.as_mut_ptr(), text.len());
        }
        // SAFETY: the call before ended the text with NUL inside the buffer.
        unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
    }

    /// Runs `call` and takes away the errors that it adds; the caller's own errors stay.
    ///
    /// Gives the newest error that was added, 0 for none.
    pub(crate) fn rolled_back<R>(&self, call: impl FnOnce() -> R) -> (R, u64) {
        // With an empty queue there is nothing to set a mark on, and nothing to keep.
        // SAFETY: takes no pointer and acts on the calling thread's queue only.
        let marked = unsafe { (self.symbols.ERR_set_mark)() } == 1;
        let result = call();
        let newest = self.peek_last_error();
        if marked {
            // SAFETY: takes no pointer and acts on the calling thread's queue only.
            unsafe { (self.symbols.ERR_pop_to_mark)() };
            let own = self.peek_last_error();
            (result, if own == newest { 0 } else { newest })
        } else {
            self.clear_errors();
            (result, newest)
        }
    }

    /// Checks that a libcrypto that was named is the one in use.
    fn uses(&self, given: &Path) -> Result<(), LoadError> {
        let wanted = std::fs::canonicalize(given).unwrap_or_else(|_| given.to_path_buf());
        let used = self.library.path();
        if std::fs::canonicalize(used).is_ok_and(|used| used == wanted) {
            return Ok(());
        }
        let (libssl, used) = (self.libssl.clone(), used.to_path_buf());
        Err(LoadError::OtherLibcrypto { libssl, given: given.to_path_buf(), used })
    }
}

fn open(
    libssl: PathBuf,
    libcrypto: Option<&Path>,
    mapped: impl FnOnce(),
) -> Result<Tls, LoadError> {
    if let Some(path) = libcrypto {
        load_with_siblings(path, &mut Vec::new())?.pin();
    }
    let handle = load_with_siblings(&libssl, &mut Vec::new())?;
    // SAFETY: dlsym on the handle of a libssl searches it and what it was linked with; that it is a
    // libssl is checked by its having all the functions of the table. The handle is pinned below.
    let symbols = unsafe { Symbols::resolve(&|name| handle.symbol(name)) };
    handle.pin();
    let symbols =
        symbols.map_err(|symbol| LoadError::MissingSymbol { path: libssl.clone(), symbol })?;
    mapped();
    let tls = if symbols.OPENSSL_init_ssl.is_some() {
        // Before anything else of ours: the first call decides whether there is an exit handler.
        initialise(&symbols, &libssl)?;
        Tls { library: bind(&symbols, &libssl)?, symbols, libssl, locks: None }
    } else {
        let locks = lock(&symbols, &libssl)?;
        let library = bind(&symbols, &libssl)?;
        initialise_1_0(&symbols, &libssl)?;
        Tls { library, symbols, libssl, locks }
    };
    tls.shares_its_queue()?;
    Ok(tls)
}

/// Finds the libcrypto whose functions were resolved.
fn bind(symbols: &Symbols, libssl: &Path) -> Result<&'static Library, LoadError> {
    let address = symbols.ERR_clear_error as *const () as usize;
    let libraries = libcrypto::libraries();
    if let Some(library) = libraries.iter().find(|library| library.contains(address)) {
        return Ok(library);
    }
    let object = objects::loaded().into_iter().find(|object| object.contains(address));
    let path = object.map_or_else(|| libssl.to_path_buf(), |object| object.path);
    let refused = libcrypto::refused().into_iter().find(|(refused, _)| *refused == path);
    let reason = refused.map_or_else(|| "it was not found".to_owned(), |(_, reason)| reason);
    Err(LoadError::NotBound { path, reason })
}

/// Gives 1.0.x its locks, without which nothing here would be safe to use from two threads.
fn lock(symbols: &Symbols, libssl: &Path) -> Result<Option<&'static Locks>, LoadError> {
    match locking::install(symbols.ERR_clear_error as *const () as usize) {
        Ok(locks) => Ok(Some(locks)),
        Err(LockingError::AlreadySet(_)) => Ok(None),
        Err(error) => Err(LoadError::NotBound {
            path: libssl.to_path_buf(),
            reason: format!("{error}; use another process for it"),
        }),
    }
}

/// Loads what `path` needs from its own folder, then `path`.
///
/// The linker finds a needed library that is loaded already by its name (DT_SONAME), which is what
/// unpacked wheels rely on: they carry no search path.
fn load_with_siblings(path: &Path, seen: &mut Vec<PathBuf>) -> Result<Handle, LoadError> {
    seen.push(path.to_path_buf());
    for name in elf::check(path)? {
        let sibling = path.with_file_name(&name);
        if seen.contains(&sibling) || !sibling.exists() {
            continue;
        }
        if let Some(loaded) = loaded_as(&name) {
            // The C library's own parts are there always, and a copy of them must not be mapped;
            // another libcrypto of that name would be taken for the one that is needed.
            if name.starts_with("libcrypto") && !same_file(&loaded, &sibling) {
                return Err(LoadError::NameTaken { path: path.to_path_buf(), name, loaded });
            }
            continue;
        }
        load_with_siblings(&sibling, seen)?.pin();
    }
    // SAFETY: the user names the libraries that this program is to run; that is its purpose.
    unsafe { Handle::load(path) }
        .map_err(|message| LoadError::Linker { path: path.to_path_buf(), message })
}

/// The file that is loaded under a name, as the linker would take it for a library that needs it.
fn loaded_as(name: &str) -> Option<PathBuf> {
    Handle::loaded(Path::new(name))?;
    let objects = objects::loaded();
    let object = objects.into_iter().find(|object| object.path.file_name() == Some(name.as_ref()));
    Some(object.map_or_else(|| PathBuf::from(name), |object| object.path))
}

fn same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// OPENSSL_INIT_LOAD_SSL_STRINGS
const LOAD_SSL_STRINGS: u64 = 0x0020_0000;
/// OPENSSL_INIT_NO_ATEXIT: threads of ours may be inside the library when the process exits.
const NO_ATEXIT: u64 = 0x0008_0000;

/// See [OPENSSL_init_ssl(3)](https://docs.openssl.org/master/man3/OPENSSL_init_ssl/).
fn initialise(symbols: &Symbols, libssl: &Path) -> Result<(), LoadError> {
    let missing = |symbol| LoadError::MissingSymbol { path: libssl.to_path_buf(), symbol };
    let init = symbols.OPENSSL_init_ssl.ok_or(missing("OPENSSL_init_ssl"))?;
    // SAFETY: null settings mean the library's own; may be called at any time.
    if unsafe { init(LOAD_SSL_STRINGS | NO_ATEXIT, std::ptr::null()) } == 1 {
        return Ok(());
    }
    let reason = "OPENSSL_init_ssl failed, and its configuration file may be why";
    Err(LoadError::Initialise { path: libssl.to_path_buf(), reason: reason.to_owned() })
}

/// See [SSL_library_init(3)](https://docs.openssl.org/1.0.2/man3/SSL_library_init/).
fn initialise_1_0(symbols: &Symbols, libssl: &Path) -> Result<(), LoadError> {
    let missing = |symbol| LoadError::MissingSymbol { path: libssl.to_path_buf(), symbol };
    let strings = symbols.SSL_load_error_strings.ok_or(missing("SSL_load_error_strings"))?;
    let library = symbols.SSL_library_init.ok_or(missing("SSL_library_init"))?;
    let algorithms = symbols
        .OPENSSL_add_all_algorithms_noconf
        .ok_or(missing("OPENSSL_add_all_algorithms_noconf"))?;
    // SAFETY: no conditions but that no other thread uses the library: it has just been loaded,
    // under the lock of `LOADED`.
    unsafe { strings() };
    // SAFETY: as above.
    unsafe { library() };
    // SAFETY: as above.
    unsafe { algorithms() };
    Ok(())
}

impl Tls {
    /// Checks that libssl's errors arrive in the libcrypto that we found: a process that has
    /// another libcrypto among its global symbols could have been linked to that one instead.
    fn shares_its_queue(&self) -> Result<(), LoadError> {
        if self.peek_last_error() != 0 {
            return Ok(());
        }
        // SAFETY: a null method is refused with an error on the queue, on every release.
        let context = unsafe { (self.symbols.SSL_CTX_new)(std::ptr::null()) };
        debug_assert!(context.is_null());
        if self.peek_last_error() == 0 {
            let reason = format!("its errors do not arrive in {}", self.library.path().display());
            return Err(LoadError::Initialise { path: self.libssl.clone(), reason });
        }
        self.clear_errors();
        Ok(())
    }
}
