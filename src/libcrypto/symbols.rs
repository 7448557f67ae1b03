//! Every call into libcrypto, its first release and its prototype. Nothing else looks symbols up.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};

/// LHASH of OpenSSL 1.0.x (`_LHASH`).
#[repr(C)]
pub(super) struct Lhash([u8; 0]);

/// CRYPTO_THREADID of OpenSSL 1.0.x: a pointer or a number.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ThreadId {
    pub(super) pointer: usize,
    pub(super) value: c_ulong,
}

macro_rules! symbols {
    (
        required { $($required:ident: $required_type:ty;)* }
        $(since $release:literal { $($optional:ident: $optional_type:ty;)* })*
    ) => {
        /// The functions of one libcrypto. The library stays mapped as long as this exists.
        #[allow(non_snake_case, missing_docs)]
        pub(super) struct Symbols {
            $(pub(super) $required: $required_type,)*
            $($(pub(super) $optional: Option<$optional_type>,)*)*
        }

        impl Symbols {
            /// Resolves the table by `address`, which answers with addresses in one library only.
            ///
            /// # Errors
            /// The name of the first required symbol that is missing.
            ///
            /// # Safety
            /// `address` must give the addresses of the functions of that name in a libcrypto, and
            /// that library must stay mapped for the life of the process.
            #[allow(clippy::missing_transmute_annotations)]
            pub(super) unsafe fn resolve(
                address: &dyn Fn(&CStr) -> Option<std::ptr::NonNull<c_void>>,
            ) -> Result<Self, &'static str> {
                Ok(Self {
                    $($required: {
                        let found = address(name(concat!(stringify!($required), "\0")))
                            .ok_or(stringify!($required))?;
                        // SAFETY: the caller vouches that this is the address of the function of
                        // that name, whose prototype stands in the table.
                        unsafe { std::mem::transmute::<*mut c_void, $required_type>(found.as_ptr()) }
                    },)*
                    $($($optional: address(name(concat!(stringify!($optional), "\0"))).map(|found| {
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<*mut c_void, $optional_type>(found.as_ptr()) }
                    }),)*)*
                })
            }
        }
    };
}

fn name(terminated: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(terminated.as_bytes()).unwrap_or_default()
}

symbols! {
    required {
        ERR_clear_error: unsafe extern "C" fn();
        ERR_get_error_line_data: unsafe extern "C" fn(
            *mut *const c_char, *mut c_int, *mut *const c_char, *mut c_int) -> c_ulong;
        ERR_lib_error_string: unsafe extern "C" fn(c_ulong) -> *const c_char;
        ERR_peek_error: unsafe extern "C" fn() -> c_ulong;
        ERR_pop_to_mark: unsafe extern "C" fn() -> c_int;
        ERR_reason_error_string: unsafe extern "C" fn(c_ulong) -> *const c_char;
        ERR_set_mark: unsafe extern "C" fn() -> c_int;
    }
    // Gone in 1.1.0, but for BoringSSL and AWS-LC, which keep some names and do nothing behind them.
    since "1.0.0" {
        CRYPTO_THREADID_current: unsafe extern "C" fn(*mut ThreadId);
        CRYPTO_THREADID_set_callback: unsafe extern "C" fn(
            Option<unsafe extern "C" fn(*mut ThreadId)>) -> c_int;
        CRYPTO_THREADID_set_numeric: unsafe extern "C" fn(*mut ThreadId, c_ulong);
        CRYPTO_get_lock_name: unsafe extern "C" fn(c_int) -> *const c_char;
        CRYPTO_get_locking_callback: unsafe extern "C" fn() -> Option<LockingCallback>;
        CRYPTO_get_mem_ex_functions: unsafe extern "C" fn(
            *mut *const c_void, *mut *const c_void, *mut *const c_void);
        CRYPTO_lock: unsafe extern "C" fn(c_int, c_int, *const c_char, c_int);
        CRYPTO_num_locks: unsafe extern "C" fn() -> c_int;
        CRYPTO_set_locking_callback: unsafe extern "C" fn(Option<LockingCallback>);
        CRYPTO_set_mem_ex_functions: unsafe extern "C" fn(
            Option<MallocEx>, Option<ReallocEx>, Option<Free>) -> c_int;
        ERR_get_err_state_table: unsafe extern "C" fn() -> *mut Lhash;
        ERR_put_error: unsafe extern "C" fn(c_int, c_int, c_int, *const c_char, c_int);
        ERR_remove_thread_state: unsafe extern "C" fn(*const ThreadId);
        SSLeay_version: unsafe extern "C" fn(c_int) -> *const c_char;
        lh_doall_arg: unsafe extern "C" fn(
            *mut Lhash, unsafe extern "C" fn(*mut c_void, *mut c_void), *mut c_void);
        lh_num_items: unsafe extern "C" fn(*const Lhash) -> c_ulong;
        lh_retrieve: unsafe extern "C" fn(*mut Lhash, *const c_void) -> *mut c_void;
    }
    // 1.0.x has these two with other prototypes (functions without file and line): their use is
    // chosen by line. What the second writes are addresses on each line.
    since "1.1.0" {
        CRYPTO_set_mem_functions: unsafe extern "C" fn(
            Option<MallocEx>, Option<ReallocEx>, Option<FreeEx>) -> c_int;
        CRYPTO_get_mem_functions: unsafe extern "C" fn(
            *mut *const c_void, *mut *const c_void, *mut *const c_void);
        OPENSSL_thread_stop: unsafe extern "C" fn();
        OpenSSL_version: unsafe extern "C" fn(c_int) -> *const c_char;
    }
    since "3.0" {
        ERR_get_error_all: unsafe extern "C" fn(
            *mut *const c_char, *mut c_int, *mut *const c_char, *mut *const c_char, *mut c_int)
            -> c_ulong;
        ERR_new: unsafe extern "C" fn();
        ERR_set_debug: unsafe extern "C" fn(*const c_char, c_int, *const c_char);
        ERR_set_error: unsafe extern "C" fn(c_int, c_int, *const c_char, ...);
    }
}

/// The application's locks on 1.0.x: mode, lock number, file, line.
pub type LockingCallback = unsafe extern "C" fn(c_int, c_int, *const c_char, c_int);
/// malloc with the caller's file and line.
pub(super) type MallocEx = unsafe extern "C" fn(usize, *const c_char, c_int) -> *mut c_void;
/// realloc with the caller's file and line.
pub(super) type ReallocEx =
    unsafe extern "C" fn(*mut c_void, usize, *const c_char, c_int) -> *mut c_void;
/// free as 1.0.x calls it.
pub(super) type Free = unsafe extern "C" fn(*mut c_void);
/// free with the caller's file and line.
pub(super) type FreeEx = unsafe extern "C" fn(*mut c_void, *const c_char, c_int);

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols").finish_non_exhaustive()
    }
}
