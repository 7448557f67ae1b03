//! Options of `SSL_OP_*`: 64 bits.

use super::Context;
use crate::ffi;

pub(crate) fn add(context: &Context, options: u64) {
    let changing = context.changing();
    // SAFETY: the context is live, and nobody uses it meanwhile.
    unsafe { ffi::SSL_CTX_set_options(changing.context, options) };
}

pub(crate) fn remove(context: &Context, options: u64) {
    let changing = context.changing();
    // SAFETY: the context is live, and nobody uses it meanwhile.
    unsafe { ffi::SSL_CTX_clear_options(changing.context, options) };
}

impl Context {
    pub(crate) fn options(&self) -> u64 {
        // SAFETY: the context is live, and not being changed.
        unsafe { ffi::SSL_CTX_get_options(self.reading().context) }
    }
}
