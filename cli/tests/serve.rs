//! `sslsweep serve` as its users meet it: a process, its orders, and clients that are not OpenSSL.

mod serving;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::path::PathBuf;
use std::process::{Output, Stdio};

use serving::{Fallible, Server, command};
use sslsweep_libssl::{LineFiles, lines};

const CURES: [&str; 4] = ["none", "clear-each-call", "release-every-task", "sweep"];

fn any_line() -> Fallible<LineFiles> {
    Ok(LineFiles::named("3.0").or_else(|_| LineFiles::named("1.1.1"))?)
}

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|number| (number * 31 % 251) as u8).collect()
}

#[test]
fn every_library_with_every_cure_takes_puts() -> Fallible {
    for line in lines()? {
        for cure in CURES {
            let context = |error| format!("{} with cure {cure}: {error}", line.name);
            takes_puts(&line, cure).map_err(context)?;
        }
    }
    Ok(())
}

fn takes_puts(line: &LineFiles, cure: &str) -> Fallible {
    let mut server = Server::start(line, &["--threads", "pool:3", "--cure", cure])?;
    let version = server.listening["version"].as_str().unwrap_or_default();
    assert!(version.contains(&line.version), "{version}");
    let (small, large) = (body(4096), body(3_000_000));
    let mut client = server.connect()?;
    client.put(&small)?;
    client.put_chunked(&large)?;
    client.put(b"")?;
    client.put_chunked(b"")?;
    let mut other = server.connect()?;
    other.put(&large)?;
    drop(other);
    client.put(&small)?;

    // A worker counts from the moment it runs.
    let stats = server.stats_when(|stats| stats["live_threads"] == 3)?;
    assert_eq!(stats["event"], "stats");
    assert_eq!(stats["requests"], 6);
    assert_eq!(stats["bytes"], 2 * 4096 + 2 * 3_000_000);
    assert_eq!(stats["connections"], 2);
    assert_eq!(stats["handshake_failures"], 0);
    assert!(stats["tasks"].as_u64() > Some(6), "{stats}");
    assert!(stats["cpu_ns"].as_u64() > Some(0));
    assert!(stats["thread_states"]["peak"].is_u64(), "{stats}");
    assert_eq!(stats["ledger"].is_null(), cure != "sweep");
    let old = line.name.starts_with("1.0");
    assert_eq!(stats["thread_states"]["longest_chain"].is_u64(), old, "{stats}");
    let locks = stats["locks"].as_array().ok_or("no locks")?;
    assert_eq!(locks.iter().any(|lock| lock["name"] == "CRYPTO_LOCK_ERR"), old, "{stats}");
    assert_eq!(server.end()?, Some(0));
    Ok(())
}

#[test]
fn a_leftover_closes_a_healthy_connection_unless_it_is_cured() -> Fallible {
    for line in lines()? {
        // 4.0 asks the queue after fatal results only.
        let believes = !line.name.starts_with("4.") && !line.name.starts_with("aws");
        for cure in CURES {
            let mut server = Server::start(&line, &["--threads", "pool:1", "--cure", cure])?;
            let mut healthy = server.connect()?;
            healthy.put(b"before")?;
            let mut garbage = server.connect_plain()?;
            garbage.write_all(b"GET / HTTP/1.1\r\nHost: not TLS\r\n\r\n")?;
            server.stats_when(|stats| stats["handshake_failures"] == 1)?;
            // Half a request: the one worker reads it, and its next read would block.
            healthy.send(b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha")?;
            server.stats_when(|stats| stats["bytes"] == 8)?;
            let rest = healthy.send(b"lf").and_then(|()| healthy.check(b"half"));
            let survives = cure != "none" || !believes;
            assert_eq!(rest.is_ok(), survives, "{} with cure {cure}: {rest:?}", line.name);
            let stats = server.ask("stats")?;
            assert_eq!(stats["fatal_on_established"], u64::from(!survives), "{stats}");
            if cure == "sweep" {
                assert!(stats["ledger"]["dirty_tasks"].as_u64() >= Some(1), "{stats}");
                assert_eq!(stats["ledger"]["arrivals"], 0, "{stats}");
            }
        }
    }
    Ok(())
}

#[test]
fn clients_that_misbehave_do_not_end_it() -> Fallible {
    for model in ["pool:2", "elastic:1..4", "per-connection"] {
        let mut server = Server::start(&any_line()?, &["--threads", model])?;
        for garbage in
            [&b""[..], b"\x16", b"\x16\x03\x01\xff\xff", b"GET / HTTP/1.1\r\n\r\n", &[0; 70_000]]
        {
            let mut stream = server.connect_plain()?;
            // The server may have closed already.
            let _ = stream.write_all(garbage);
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
        // Cut in the middle of a body, and garbage in the middle of a connection.
        let mut cut = server.connect()?;
        cut.send(b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")?;
        cut.tls.sock.shutdown(Shutdown::Both)?;
        let mut broken = server.connect()?;
        broken.put(b"fine so far")?;
        broken.tls.sock.write_all(b"\x17\x03\x03\x00\x20 this was never encrypted, was it?")?;
        let stats = server.stats_when(|stats| stats["fatal_on_established"] == 2)?;
        assert!(stats["handshake_failures"].as_u64() >= Some(4), "{stats}");
        server.connect()?.put(b"still there")?;
        assert_eq!(server.end()?, Some(0));
    }
    Ok(())
}

#[test]
fn requests_that_are_refused_get_an_answer() -> Fallible {
    let mut server = Server::start(&any_line()?, &["--most-body", "1000000"])?;
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 405),
        ("PUT / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("nonsense\r\n\r\n".to_owned(), 400),
        // The client sends on while it is being refused.
        (
            format!(
                "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000001\r\n\r\n{}",
                "x".repeat(500_000)
            ),
            413,
        ),
    ] {
        let mut client = server.connect()?;
        client.send(request.as_bytes())?;
        let (found, text) = client.answer()?;
        assert_eq!(found, status, "{text}");
        assert_eq!(client.tls.read(&mut [0])?, 0, "the connection ends");
    }
    let mut waiting = server.connect()?;
    waiting
        .send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")?;
    assert_eq!(waiting.answer()?, (100, String::new()));
    waiting.send(b"ok")?;
    waiting.check(b"ok")?;
    assert_eq!(server.ask("stats")?["refused"], 4);
    Ok(())
}

#[test]
fn orders_are_obeyed_and_unknown_ones_named() -> Fallible {
    let mut server = Server::start(&any_line()?, &["--cure", "none"])?;
    assert_eq!(server.ask("stats")?["cure"], "none");
    for cure in CURES {
        let answer = server.ask(&format!("cure {cure}"))?;
        assert_eq!((&answer["event"], &answer["cure"]), (&"cure".into(), &cure.into()));
        assert_eq!(server.ask("stats")?["cure"], cure);
        server.connect()?.put(b"with it")?;
    }
    let (before, after) = (server.ask("cpu")?, server.ask("cpu")?);
    assert_eq!(before["event"], "cpu");
    assert!(
        before["cpu_ns"].as_u64() > Some(0)
            && before["cpu_ns"].as_u64() <= after["cpu_ns"].as_u64()
    );
    let (states, stats) = (server.ask("states")?, server.ask("stats")?);
    assert_eq!(states["event"], "states");
    assert_eq!(states["live_threads"], stats["live_threads"]);
    assert!(states["thread_states"]["alive"].is_u64(), "{states}");
    for order in ["cure snake-oil", "age many", "dance", "stats now"] {
        let answer = server.ask(order)?;
        assert_eq!(answer["event"], "error");
        assert!(answer["message"].as_str().unwrap_or_default().contains("quit"), "{answer}");
    }
    assert_eq!(server.ask("quit")?["event"], "quit");
    assert_eq!(server.end()?, Some(0));
    let mut server = Server::start(&any_line()?, &[])?;
    assert!(server.ask("age 10000000").is_err(), "more threads than the process has room for");
    assert_eq!(server.end()?, Some(1));
    Ok(())
}

#[test]
fn ageing_leaves_states_on_1_0_only_and_not_with_a_sweep() -> Fallible {
    const THREADS: u64 = 60;
    for line in lines()? {
        for cure in ["clear-each-call", "sweep"] {
            let age = THREADS.to_string();
            let mut server =
                Server::start(&line, &["--age", &age, "--cure", cure, "--threads", "pool:2"])?;
            let aged = &server.listening["aged"];
            assert_eq!(aged["threads"], THREADS, "{aged}");
            let leaks = line.name.starts_with("1.0") && cure != "sweep";
            let states = aged["states"].as_u64().ok_or("no number")?;
            assert_eq!(states >= THREADS, leaks, "{} with cure {cure}: {aged}", line.name);
            let again = server.ask(&format!("age {THREADS}"))?;
            assert_eq!((&again["event"], &again["threads"]), (&"aged".into(), &THREADS.into()));
            let stats = server.stats_when(|stats| stats["live_threads"] == 2)?;
            assert_eq!(stats["requests"], 2 * THREADS);
            if leaks {
                let chain = stats["thread_states"]["longest_chain"].as_u64();
                assert!(chain >= Some(THREADS / 2), "stack addresses share a chain: {stats}");
            }
            server.connect()?.put(b"aged")?;
            assert_eq!(server.end()?, Some(0));
        }
    }
    Ok(())
}

#[test]
fn a_server_for_people_says_what_it_is_and_how_it_was_aged() -> Fallible {
    let line = any_line()?;
    let libssl = line.libssl.to_str().ok_or("a path that is not UTF-8")?;
    let mut process = command(&["--libssl", libssl, "--age", "6", "--threads", "pool:2"])
        .stdout(Stdio::piped())
        .spawn()?;
    let output = BufReader::new(process.stdout.take().ok_or("no standard output")?);
    let said: Vec<String> = output.lines().map_while(Result::ok).take(3).collect();
    process.kill()?;
    process.wait()?;
    assert!(said[0].contains("serves PUT on https://127.0.0.1:"), "{said:?}");
    assert!(said[1].starts_with("aged by 6 threads"), "{said:?}");
    assert!(said[2].starts_with("try: curl"), "{said:?}");
    Ok(())
}

#[test]
fn idle_threads_have_states_and_are_no_workers() -> Fallible {
    for line in lines()? {
        let mut server = Server::start(&line, &["--idle-threads", "50", "--threads", "pool:2"])?;
        server.connect()?.put(b"x")?;
        let stats = server.stats_when(|stats| stats["live_threads"] == 2)?;
        assert!(stats["thread_states"]["alive"].as_u64() >= Some(50), "{}: {stats}", line.name);
        assert_eq!(server.end()?, Some(0));
    }
    Ok(())
}

#[test]
fn elastic_threads_come_with_the_load_and_go_with_it() -> Fallible {
    let mut server = Server::start(&any_line()?, &["--threads", "elastic:1..8"])?;
    server.stats_when(|stats| stats["live_threads"] == 1)?;
    let mut clients = (0..20).map(|_| server.connect()).collect::<Fallible<Vec<_>>>()?;
    let mut most = 0;
    for _ in 0..200 {
        for client in &mut clients {
            client.send(b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")?;
        }
        for client in &mut clients {
            client.check(b"x")?;
        }
        most = server.ask("stats")?["live_threads"].as_u64().unwrap_or(0);
        if most > 1 {
            break;
        }
    }
    assert!((2..=8).contains(&most), "{most} threads");
    server.stats_when(|stats| stats["live_threads"] == 1)?;
    assert_eq!(server.end()?, Some(0));
    Ok(())
}

fn fails(output: &Output, words: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(words), "{message:?} does not say {words:?}");
    assert!(message.starts_with("sslsweep: "), "{message}");
}

#[test]
fn what_cannot_start_says_why_and_what_to_do() -> Fallible {
    let line = any_line()?;
    let libssl = line.libssl.to_str().ok_or("a path that is not UTF-8")?;
    let run = |arguments: &[&str]| command(arguments).output();
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    fails(
        &run(&["--libssl", libssl, "--listen", &address])?,
        "choose another address with --listen",
    );
    fails(&run(&["--libssl", libssl, "--age", "10000000"])?, "ask for fewer");
    // The clients fail at their first PUT; that none is left for the others' threads is not what went wrong.
    let small = ["--libssl", libssl, "--most-body", "100", "--age", "50"];
    fails(&run(&small)?, "a small PUT failed while ageing");
    fails(&run(&["--libssl", "/nonexistent/libssl.so"])?, "does not exist");
    fails(
        &run(&["--libssl", libssl, "--certificate", "/nonexistent", "--key", "/dev/null"])?,
        "give a PEM file",
    );
    fails(
        &run(&["--libssl", libssl, "--certificate", "/dev/null", "--key", "/dev/null"])?,
        "certificate cannot be used",
    );

    let full = || fs::File::options().write(true).open("/dev/full");
    for more in [&[][..], &["--json"]] {
        let output = command(&["--libssl", libssl]).args(more).stdout(full()?).output()?;
        fails(&output, "No space left on device");
    }

    let folder = std::env::temp_dir().join(format!("sslsweep-serve-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let file = |name: &str, content: &[u8]| -> Fallible<PathBuf> {
        let path = folder.join(name);
        fs::write(&path, content)?;
        Ok(path)
    };
    let whole = fs::read(&line.libssl)?;
    let mut foreign = whole.clone();
    foreign[4] = 1;
    for (path, words) in [
        (file("text.so", b"not a library")?, "not an ELF file"),
        (file("short.so", &whole[..whole.len() / 2])?, "truncated"),
        (file("class.so", &foreign)?, "32-bit"),
    ] {
        fails(&run(&["--libssl", path.to_str().ok_or("not UTF-8")?])?, words);
    }
    let one = rcgen::generate_simple_self_signed(["a".to_owned()])?;
    let other = rcgen::KeyPair::generate()?;
    let certificate = file("cert.pem", one.cert.pem().as_bytes())?;
    let key = file("key.pem", other.serialize_pem().as_bytes())?;
    let output = command(&["--libssl", libssl, "--certificate"])
        .arg(certificate)
        .arg("--key")
        .arg(key)
        .output()?;
    fails(&output, "does not belong to the certificate");
    fs::remove_dir_all(&folder)?;
    Ok(())
}
