//! Tomcats to run on: which there are, and how one is started.
//!
//! A Tomcat is a JVM with the server program of `java/` (`org.sslsweep.testserver.RegressServer`). It has a
//! connector for each way of serving that is asked for, each with an address of its own: `none`, `sweep`
//! (the same with the HygieneListener), and `control`, a second `none`. What Maven has built is looked
//! for in the current directory and above, as the lines of OpenSSL are.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::model::Cure;
use crate::serve::certificate::{Identity, IdentityError};

/// The same for every process, so that collections come as often. One collector thread: those of the default
/// collector work beside the workers, and what they take differs from round to round.
pub const JVM_OPTIONS: [&str; 4] =
    ["-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:+AlwaysPreTouch"];
/// The cures that a Tomcat can have: the listener off, and on.
pub const CURES: [Cure; 2] = [Cure::None, Cure::Sweep];
/// The connector without the listener that is compared with `none`, to know what the comparison can tell.
pub const CONTROL: &str = "control";

const MAIN: &str = "org.sslsweep.testserver.RegressServer";
/// Connections that wait to be accepted: the small phase opens all of its own at once.
const BACKLOG: u32 = 1024;
/// How long a connection may be silent. A client rests between its rounds.
const PATIENCE_MS: u32 = 600_000;
/// Written by Maven beside the classes of the module.
const CLASS_PATH: &str = "classpath.txt";
/// The names that Tomcat looks for, in its order.
const TCNATIVE: [&str; 2] = ["libtcnative-2.so", "libtcnative-1.so"];
const BUILD: &str = "run `make servers`";

/// A Tomcat that a server can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tomcat {
    /// Name on the command line and in the report.
    pub name: &'static str,
    module: &'static str,
    connector: &'static str,
}

/// All of them.
pub const ALL: [Tomcat; 4] = [
    Tomcat { name: "tomcat9-apr", module: "tomcat-server-9", connector: "apr" },
    Tomcat { name: "tomcat9-nio", module: "tomcat-server-9", connector: "nio" },
    Tomcat { name: "tomcat10-nio", module: "tomcat-server-10", connector: "nio" },
    Tomcat { name: "tomcat10-nio2", module: "tomcat-server-10", connector: "nio2" },
];

/// Why a Tomcat cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TomcatError {
    /// Nothing of that name.
    #[error("there is no server {0}; there are {names}, or give the path of a program", names = names())]
    Unknown(String),
    /// Maven has not built it.
    #[error("there is no java/{module}/target/{CLASS_PATH} in {} or above; {BUILD} there", from.display())]
    NotBuilt {
        /// The Maven module.
        module: &'static str,
        /// Where the search began.
        from: PathBuf,
    },
    /// The class path names what is gone.
    #[error("{} of {} is gone; {BUILD}", entry.display(), list.display())]
    Gone {
        /// The entry.
        entry: PathBuf,
        /// The file that names it.
        list: PathBuf,
    },
    /// A file of ours.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// tomcat-native is not installed.
    #[error(
        "there is no {} in {}; install Debian's libtcnative-1, or name its folder by --tcnative",
        TCNATIVE.join(" or "),
        list(folders)
    )]
    NoTcnative {
        /// Where it was looked for.
        folders: Vec<PathBuf>,
    },
    /// A cure that a Tomcat does not have.
    #[error("a Tomcat has the cures none and sweep, the listener off and on; leave out --cure {0}")]
    Cure(Cure),
    /// An option that means nothing to a Tomcat.
    #[error("{option} not for a Tomcat: {why}")]
    Option {
        /// The option, and its verb.
        option: &'static str,
        /// What to know.
        why: &'static str,
    },
    /// No certificate.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// A Tomcat, and the files it is made of.
#[derive(Debug, Clone)]
pub struct Installed {
    /// Which one.
    pub tomcat: Tomcat,
    java: PathBuf,
    class_path: OsString,
    /// The library of tomcat-native.
    pub tcnative: PathBuf,
}

impl Tomcat {
    /// The Tomcat of that name.
    pub fn named(name: &str) -> Result<Self, TomcatError> {
        let found = ALL.into_iter().find(|tomcat| tomcat.name == name);
        found.ok_or_else(|| TomcatError::Unknown(name.into()))
    }

    /// Finds its files. `tcnative` is a folder given by hand.
    ///
    /// # Errors
    /// One of them is not there.
    pub fn find(self, tcnative: Option<&Path>) -> Result<Installed, TomcatError> {
        let from = std::env::current_dir().unwrap_or_default();
        let target = from.ancestors().map(|folder| folder.join("java").join(self.module));
        let target = target.map(|module| module.join("target"));
        let target = target.into_iter().find(|target| target.join(CLASS_PATH).is_file());
        let target = target.ok_or(TomcatError::NotBuilt { module: self.module, from })?;
        let list = target.join(CLASS_PATH);
        let written = std::fs::read_to_string(&list)
            .map_err(|source| TomcatError::File { path: list.clone(), source })?;
        let class_path = std::env::split_paths(written.trim_end());
        let class_path: Vec<PathBuf> =
            std::iter::once(target.join("classes")).chain(class_path).collect();
        if let Some(entry) = class_path.iter().find(|entry| !entry.exists()) {
            return Err(TomcatError::Gone { entry: entry.clone(), list });
        }
        // None of the paths has a colon: they come from a list that colons divide.
        let class_path = std::env::join_paths(class_path).unwrap_or_default();
        let java = match std::env::var_os("JAVA_HOME") {
            Some(home) => Path::new(&home).join("bin/java"),
            None => "java".into(),
        };
        Ok(Installed { tomcat: self, java, class_path, tcnative: find_tcnative(tcnative)? })
    }
}

impl Installed {
    /// The program to start: Java.
    pub fn program(&self) -> &Path {
        &self.java
    }

    /// Its arguments, for a server with the named connectors, and worker threads for each of them.
    pub fn arguments(&self, ways: &str, threads: (usize, usize), keys: &Folder) -> Vec<OsString> {
        let mut library_path = OsString::from("-Djava.library.path=");
        library_path.push(self.tcnative.parent().unwrap_or(Path::new("/")));
        let mut base = OsString::from("--base=");
        base.push(&keys.0);
        let mut arguments: Vec<OsString> = JVM_OPTIONS.map(OsString::from).into();
        arguments.extend([library_path, "-cp".into(), self.class_path.clone(), MAIN.into()]);
        let (least, most) = threads;
        let attributes = format!(
            "--attributes=minSpareThreads:{least},maxThreads:{most},acceptCount:{BACKLOG},connectionTimeout:{PATIENCE_MS}"
        );
        let connector = format!("--connector={}", self.tomcat.connector);
        arguments.extend([ways.into(), base, connector.into(), "--tls=OPENSSL".into()]);
        arguments.push(attributes.into());
        arguments
    }
}

/// A server's folder, with a certificate and its key, which OpenSSL wants as files. It goes when this is dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a pair, and writes it where nobody else can read it.
    ///
    /// # Errors
    /// The pair cannot be made, or not be written.
    pub fn make() -> Result<Self, TomcatError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("sslsweep-regress-{}-{number}", std::process::id());
        let files = Self(std::env::temp_dir().join(name));
        let folder = files.0.clone();
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(|source| TomcatError::File { path: folder, source })?;
        let identity = Identity::make()?;
        for (path, text) in
            [(files.certificate(), &identity.certificate), (files.key(), &identity.key)]
        {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|source| TomcatError::File { path, source })?;
        }
        Ok(files)
    }

    fn certificate(&self) -> PathBuf {
        self.0.join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.0.join("key.pem")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn find_tcnative(named: Option<&Path>) -> Result<PathBuf, TomcatError> {
    let folders = match named {
        Some(folder) => vec![folder.to_path_buf()],
        None => {
            let debian = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
            vec![debian.into(), "/usr/lib".into(), "/usr/lib64".into(), "/usr/local/lib".into()]
        }
    };
    let found = folders.iter().flat_map(|folder| TCNATIVE.map(|name| folder.join(name)));
    let found = found.into_iter().find(|path| path.is_file());
    found.ok_or(TomcatError::NoTcnative { folders })
}

fn names() -> String {
    ALL.map(|tomcat| tomcat.name).join(", ")
}

fn list(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_for_nobody_else_and_go() -> Result<(), Box<dyn std::error::Error>> {
        use std::os::unix::fs::PermissionsExt;
        let files = Folder::make()?;
        let (folder, key) = (files.0.clone(), files.key());
        assert_eq!(std::fs::metadata(&folder)?.permissions().mode() & 0o777, 0o700);
        assert_eq!(std::fs::metadata(&key)?.permissions().mode() & 0o777, 0o600);
        assert!(std::fs::read_to_string(key)?.contains("PRIVATE KEY"));
        drop(files);
        assert!(!folder.exists());
        Ok(())
    }

    #[test]
    fn names_are_known() {
        for tomcat in ALL {
            assert!(Tomcat::named(tomcat.name).is_ok_and(|found| found == tomcat));
        }
        let said = Tomcat::named("tomcat8").map_err(|error| error.to_string());
        assert!(said.is_err_and(|said| said.contains("tomcat9-apr, tomcat9-nio")));
    }
}
