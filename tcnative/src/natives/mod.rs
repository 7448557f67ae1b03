//! The natives that Tomcat's classes declare, a file for each class. What each does is in `NATIVES.md` of the
//! project, and in Tomcat's documentation of the class.

// The names are Java's.
#![allow(non_snake_case)]

mod buffer;
mod certificate;
mod conf;
mod context;
mod library;
mod pool;
mod ssl;
