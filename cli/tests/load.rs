//! `sslsweep load` against a stand-in server: what it must count, and when it must fail.

mod standin;

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustls::version::{TLS12, TLS13};
use serde_json::Value;

use standin::{Faults, Standin};

type Failure = Box<dyn std::error::Error>;

fn load(server: &Standin, workload: &str, options: &str) -> Result<(Output, Value), Failure> {
    let output = Command::new(env!("CARGO_BIN_EXE_sslsweep"))
        .args(["load", workload, "--address", &server.address, "--limit", "60", "--certificate"])
        .arg(&server.certificate)
        .args(options.split_whitespace())
        .stdin(Stdio::null())
        .output()?;
    let last = std::str::from_utf8(&output.stdout)?.lines().last().unwrap_or_default().to_owned();
    let done = serde_json::from_str(&last)?;
    Ok((output, done))
}

#[test]
fn shares_are_exact() -> Result<(), Failure> {
    let server = Standin::start(Faults::default(), &[&TLS12, &TLS13])?;
    let (output, done) = load(
        &server,
        "small",
        "--threads 8 --requests 400 --new-connections 0.1 --misbehave 0.05 --chunked 0.25",
    )?;
    assert!(output.status.success(), "{done}");
    assert_eq!(done["requests"], 400);
    assert_eq!(done["bytes"], 400 * 4096);
    assert_eq!(done["connections"], 40, "8 of them are the first connections of the threads");
    assert_eq!(done["misbehaved"], 20);
    assert_eq!(done["false_closes"], 0);
    assert_eq!(done["protocols"]["TLSv1_3"], 40);
    assert_eq!(server.seen.chunked.load(Relaxed), 100);
    // Its threads may still be counting when the client has ended.
    for _ in 0..6_000 {
        if server.seen.broken.load(Relaxed) >= 15 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} misbehaving clients were met", server.seen.broken.load(Relaxed));
}

#[test]
fn tls_1_2_only() -> Result<(), Failure> {
    let server = Standin::start(Faults::default(), &[&TLS12])?;
    let (output, done) = load(&server, "small", "--threads 2 --requests 20")?;
    assert!(output.status.success(), "{done}");
    assert_eq!(done["protocols"], serde_json::json!({ "TLSv1_2": 2 }));
    Ok(())
}

#[test]
fn a_false_close_is_counted_and_nothing_is_lost() -> Result<(), Failure> {
    let faults = Faults { drop_every: Some(10), ..Faults::default() };
    let server = Standin::start(faults, &[&TLS13])?;
    let (output, done) = load(&server, "small", "--threads 4 --requests 90")?;
    assert!(output.status.success(), "{done}");
    assert_eq!(done["requests"], 90);
    assert!(done["false_closes"].as_u64() >= Some(9), "{done}");
    assert_eq!(done["false_closes"], done["retries"]);
    Ok(())
}

/// A client that will cut its body has a healthy handshake first.
#[test]
fn a_handshake_that_the_server_ends_is_a_false_close_whoever_comes() -> Result<(), Failure> {
    // The fifth connection is that of the one that cuts its body.
    let faults = Faults { hang_up_on: Some(5), ..Faults::default() };
    let server = Standin::start(faults, &[&TLS13])?;
    let options = "--threads 1 --requests 4 --misbehave 1 --new-connections 0";
    let (output, done) = load(&server, "small", options)?;
    assert!(output.status.success(), "{done}");
    assert_eq!((&done["closes_in_handshake"], &done["retries"]), (&1.into(), &0.into()), "{done}");
    assert_eq!(done["misbehaved"], 4);
    Ok(())
}

#[test]
fn a_changed_byte_fails_the_run_and_names_the_request() -> Result<(), Failure> {
    let faults = Faults { change_every: Some(25), ..Faults::default() };
    let server = Standin::start(faults, &[&TLS13])?;
    let (output, done) = load(&server, "small", "--threads 1 --requests 30")?;
    assert!(!output.status.success());
    assert_eq!(done["hash_failures"], 1);
    assert_eq!(done["requests"], 29, "what was changed does not count as delivered");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("request 24: sent 4096 bytes with hash"),
        "{output:?}"
    );
    Ok(())
}

#[test]
fn a_server_that_does_not_answer_fails_the_run() -> Result<(), Failure> {
    let faults = Faults { stall_every: Some(7), ..Faults::default() };
    let server = Standin::start(faults, &[&TLS13])?;
    let (output, done) = load(&server, "small", "--threads 1 --requests 30 --patience 1")?;
    assert!(!output.status.success(), "{done}");
    assert_eq!((&done["timeouts"], &done["lost"]), (&1.into(), &1.into()), "{done}");
    assert_eq!(done["requests"], 6, "it is not sent again: that would hide it");
    assert_eq!(done["errors"][0], "request 6: no answer in time (--patience)");
    Ok(())
}

#[test]
fn a_refusal_ends_the_run_with_the_servers_words() -> Result<(), Failure> {
    let faults = Faults { refuse_every: Some(5), drop_every: Some(5), ..Faults::default() };
    let server = Standin::start(faults, &[&TLS13])?;
    let (output, done) = load(&server, "small", "--threads 1 --requests 30")?;
    assert!(!output.status.success());
    assert_eq!(done["errors"][0], "request 4: answered 413: too large");
    Ok(())
}

#[test]
fn a_server_that_is_gone_ends_the_run() -> Result<(), Failure> {
    let mut server = Standin::start(Faults::default(), &[&TLS13])?;
    // A port that was free a moment ago, and that nobody is told of.
    server.address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let (output, done) = load(&server, "small", "--threads 1 --requests 20000")?;
    assert!(!output.status.success());
    assert_eq!(done["lost"], 1, "one is enough");
    Ok(())
}

#[test]
fn large_rounds_are_timed_one_by_one() -> Result<(), Failure> {
    let server = Standin::start(Faults::default(), &[&TLS12])?;
    let (output, done) = load(&server, "large", "--threads 3 --rounds 4 --body 3000000")?;
    assert!(output.status.success(), "{done}");
    assert_eq!(done["bytes"], 36_000_000);
    assert_eq!(done["rounds"].as_array().map(Vec::len), Some(4));
    assert_eq!(server.seen.handshakes.load(Relaxed), 12);
    let kept =
        load(&server, "large", "--threads 3 --rounds 4 --body 300000 --keep-alive --chunked 0.5")?
            .1;
    assert_eq!(kept["connections"], 3);
    Ok(())
}

/// A client that runs a round for each order.
struct Stepped {
    child: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Stepped {
    fn start(server: &Standin, options: &str) -> Result<Self, Failure> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sslsweep"))
            .args(["load", "small", "--step", "--address", &server.address, "--certificate", "-"])
            .args(options.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut orders = child.stdin.take().ok_or("no stdin")?;
        writeln!(orders, "{}", std::fs::read_to_string(&server.certificate)?)?;
        let lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
        Ok(Self { child, orders, lines })
    }

    fn round(&mut self) -> Result<Value, Failure> {
        writeln!(self.orders, "go")?;
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        let round = lines.find(|line| line.contains("\"round\"")).ok_or("no round")?;
        Ok(serde_json::from_str(&round)?)
    }

    fn finish(mut self) -> Result<Value, Failure> {
        drop(self.orders);
        let last = self.lines.map_while(Result::ok).last().ok_or("no last line")?;
        let done = serde_json::from_str(&last)?;
        assert!(self.child.wait()?.success(), "{done}");
        Ok(done)
    }
}

#[test]
fn rounds_on_demand() -> Result<(), Failure> {
    let server = Standin::start(Faults::default(), &[&TLS13])?;
    let mut client = Stepped::start(&server, "--threads 2 --requests 10")?;
    for _ in 0..3 {
        assert_eq!(client.round()?["requests"], 10);
    }
    assert_eq!(client.finish()?["requests"], 30);
    Ok(())
}

/// No request follows that could fail on it.
#[test]
fn a_server_that_leaves_after_the_last_answer_is_noticed() -> Result<(), Failure> {
    for (leave_after, false_closes) in [(None, 0), (Some(10), 1)] {
        let server = Standin::start(Faults { leave_after, ..Faults::default() }, &[&TLS13])?;
        let mut client = Stepped::start(&server, "--threads 1 --requests 10")?;
        client.round()?;
        while server.seen.left.load(Relaxed) < false_closes {
            std::thread::yield_now();
        }
        let done = client.finish()?;
        assert_eq!((&done["false_closes"], &done["retries"]), (&false_closes.into(), &0.into()));
    }
    Ok(())
}
