//! How a native crosses between Java and Rust: names, failures, panics, strings and arrays.

#[macro_use]
mod export;
mod values;

pub(crate) use export::{Failed, Refusal, native, native_with_env};
pub(crate) use values::{
    array_of_bytes, array_of_texts, bytes, bytes_of, optional_text, string, text, texts,
};
