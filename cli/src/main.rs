//! The `sslsweep` command.
#![forbid(unsafe_code)]

mod cost;
mod cure;
mod dropin_cost;
mod libs;
mod load;
mod output;
mod regress;
mod report;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(version, about = "Per-thread OpenSSL state: who left what, and what it costs")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure what looking, clearing, guarding and releasing cost on each library
    Cost(cost::Arguments),
    /// Measure a Tomcat on our libtcnative-2.so beside one on the C library
    DropinCost(dropin_cost::Arguments),
    /// List every libcrypto of a process, and what cannot be swept there
    Libs(libs::LibsArguments),
    /// Send verified PUTs to a TLS server
    Load(load::LoadArguments),
    /// Show the large-after-small PUT regression, and what each cure does about it
    Regress(regress::RegressArguments),
    /// Serve HTTP PUT over TLS, on whichever libssl is given
    Serve(serve::ServeArguments),
}

fn main() -> ExitCode {
    let outcome: Result<ExitCode, Box<dyn std::error::Error>> = match Arguments::parse().command {
        Command::Cost(arguments) => {
            cost::run(&arguments).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        Command::DropinCost(arguments) => dropin_cost::run(&arguments).map_err(Into::into),
        Command::Libs(arguments) => libs::run(arguments).map_err(Into::into),
        Command::Load(arguments) => load::run(arguments).map_err(Into::into),
        Command::Regress(arguments) => regress::run(&arguments).map_err(Into::into),
        Command::Serve(arguments) => serve::run(arguments).map_err(Into::into),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("sslsweep: {error}");
        ExitCode::FAILURE
    })
}
