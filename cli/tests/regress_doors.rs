//! `sslsweep regress` against servers that have an address for each cure: a stand-in made of two of
//! `sslsweep serve`, and real Tomcats. What comes out is looked at, not how fast anything was.

mod regression;

use std::path::Path;
use std::process::{Command, Output};

use regression::{Fallible, Folder, faults, named, regress};
use serde_json::{Value, json};

const TINY: &str = "--small-threads 8 --small-requests 600 --misbehave 0.1 --large-threads 2 --large-body 1000000 \
    --rounds 2 --pairs 2 --server-threads pool:8";
const DOORS: &str = r#"{"none":"NONE","control":"NONE","sweep":"SWEEP"}"#;

/// Runs against the stand-in, whose addresses are `doors`; `more` is what it says beside them.
fn two_doors(folder: &Folder, doors: &str, more: &str, options: &str) -> Fallible<Output> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/two-doors.sh");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sslsweep"));
    command.arg("regress").arg("--out").arg(&folder.0).arg("--server").arg(program);
    command.args(options.split_whitespace());
    command.env("SSLSWEEP", env!("CARGO_BIN_EXE_sslsweep"));
    command.env("TWO_DOORS", doors).env("TWO_DOORS_TOO", more);
    Ok(command.output()?)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn report(folder: &Folder, output: &Output) -> Fallible<Value> {
    let text = std::fs::read(folder.0.join("report.json")).map_err(|_| said(output))?;
    let report = serde_json::from_slice(&text)?;
    assert_eq!(faults(&report)?, [""; 0]);
    Ok(report)
}

fn array<'a>(report: &'a Value, name: &str) -> &'a [Value] {
    report[name].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn each_cure_is_served_at_its_address() -> Fallible {
    let folder = Folder::new("doors");
    let output = two_doors(&folder, DOORS, "", &format!("{TINY} --line 3.0"))?;
    let report = report(&folder, &output)?;
    let runs = array(&report, "runs");
    let cures: Vec<_> = runs.iter().map(|run| &run["cure"]).collect();
    assert_eq!(cures, ["none", "sweep"], "{}", said(&output));
    // Each cure's clients went to the server that has it.
    assert!(runs[0]["ledger"].is_null() && runs[0]["false_closes"].as_u64() > Some(0), "{runs:?}");
    assert!(runs[1]["ledger"]["dirty_tasks"].as_u64() > Some(0), "{runs:?}");
    assert_eq!(runs[1]["false_closes"], 0);
    let paired = array(&report, "paired");
    let compared: Vec<_> =
        paired.iter().map(|pair| (pair["cure"].as_str(), pair["metric"].as_str())).collect();
    assert_eq!(
        compared,
        [
            (Some("sweep"), Some("us_per_request")),
            (Some("none"), Some("us_per_request")),
            (Some("sweep"), Some("us_per_handshake")),
            (Some("sweep"), Some("ms_per_mb")),
        ]
    );
    for pair in paired {
        assert!(pair["ratio"].as_f64() > Some(0.0), "{pair}");
        assert_eq!(pair["bodies"]["sent"], pair["bodies"]["verified"], "{pair}");
        assert_eq!(pair["ledger"].is_null(), pair["cure"] == "none", "{pair}");
        assert!(pair["ledger"].is_null() || pair["ledger"]["tasks"].as_u64() > Some(0), "{pair}");
    }
    Ok(())
}

/// What a server calls itself decides by which bounds it is judged.
#[test]
fn a_server_that_says_it_is_a_tomcat_is_judged_as_one() -> Fallible {
    let folder = Folder::new("claims");
    let claims =
        r#","server":{"tomcat":"Tomcat/0","connector":"c-openssl-x","tcnative":"1","java":"J"}"#;
    let output = two_doors(&folder, DOORS, claims, &format!("{TINY} --line 3.0 --warm-up 100"))?;
    let report = report(&folder, &output)?;
    let warm_up = json!({"requests": 100, "new_connections": 0, "megabytes": 40});
    let host = json!({"line": "3.0", "tomcat": "Tomcat/0", "connector": "c-openssl-x", "tcnative": "1", "java": "J",
        "java_options": [], "warm_up": warm_up});
    assert_eq!(report["hosts"], json!([host]));
    let names: Vec<_> =
        array(&report, "verdicts").iter().filter_map(|verdict| verdict["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "3.0: large PUTs after/fresh, sweep",
            "3.0: tasks under a guard, sweep",
            "3.0: server CPU per request, sweep over none",
            "3.0: healthy connections closed with sweep",
            "bodies answered with the right count and hash",
        ]
    );
    assert_eq!(named(&report["verdicts"], "tasks under a guard")?["holds"], true);
    // Its warm-up is no part of what its ledger tells: 600 requests are not 100 and 600.
    assert!(String::from_utf8_lossy(&output.stdout).contains("Tomcat/0 (c-openssl-x)"));
    Ok(())
}

/// Two connectors with the guard, or two without it, would be found equal, and pass.
#[test]
fn a_guard_on_the_wrong_connector_is_noticed() -> Fallible {
    for (doors, words) in [
        (r#"{"none":"NONE","sweep":"NONE"}"#, "the connector sweep were 0 tasks under a guard"),
        (r#"{"none":"SWEEP","sweep":"SWEEP"}"#, "to the connector none were"),
        (r#"{"none":"NONE","sweep":"SWEEP","control":"SWEEP"}"#, "to the connector control were"),
    ] {
        let folder = Folder::new("wrong");
        // The runs before are not of interest here, and take as long as all the rest.
        let options = "--line 3.0 --small-threads 4 --small-requests 40 --large-threads 1 --large-body 100000 \
            --rounds 1 --pairs 1 --server-threads pool:4";
        let output = two_doors(&folder, doors, "", options)?;
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains(words), "{doors}: {}", said(&output));
    }
    Ok(())
}

#[test]
fn what_such_a_server_cannot_do_is_refused() -> Fallible {
    for (doors, options, words) in [
        (DOORS, "--cure release-every-task", "leave out --cure release-every-task"),
        (r#"{"sweep":"SWEEP"}"#, "", "does not say where it listens with none"),
        (r#"{"none":"NONE"}"#, "--cure sweep", "does not say where it listens with sweep"),
        ("{}", "", "does not say where it listens"),
    ] {
        let folder = Folder::new("cannot");
        let output = two_doors(&folder, doors, "", &format!("{TINY} --line 3.0 {options}"))?;
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains(words), "{doors} {options}: {}", said(&output));
    }
    Ok(())
}

#[test]
fn options_are_looked_at_before_a_tomcat_starts() -> Fallible {
    let folder = Folder::new("tomcat-options");
    for (options, words) in [
        ("--server tomcat8", "there are tomcat9-apr, tomcat9-nio, tomcat10-nio, tomcat10-nio2"),
        ("--server tomcat9-apr --server /bin/false", "or the path of one program"),
        ("--server tomcat9-apr --line 3.0", "--line and --libssl are not for a Tomcat"),
        ("--server tomcat9-apr --libssl /x.so", "--line and --libssl are not for a Tomcat"),
        ("--server tomcat9-apr --age 5", "--age is not for a Tomcat"),
        ("--server tomcat9-apr --server-threads per-connection", "pool:N"),
        ("--server tomcat9-apr --cure clear-each-call", "leave out --cure clear-each-call"),
        (
            "--server tomcat9-apr --tcnative /no/such",
            "no libtcnative-2.so or libtcnative-1.so in /no/such",
        ),
        ("--server tomcat9-apr --warm-up 0", "--warm-up"),
        ("--tcnative /usr/lib", "--server"),
    ] {
        let output = regress(&folder, options)?;
        assert!(
            !output.status.success() && said(&output).contains(words),
            "{options}: {}",
            said(&output)
        );
    }
    Ok(())
}

#[test]
fn what_maven_has_not_built_is_named_with_what_builds_it() -> Fallible {
    let folder = Folder::new("unbuilt");
    let target = folder.0.join("java/tomcat-server-9/target");
    std::fs::create_dir_all(target.join("classes"))?;
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sslsweep"));
        command.args(["regress", "--server", "tomcat9-apr", "--out", "report"]);
        command.current_dir(&folder.0).output()
    };
    let words = "there is no java/tomcat-server-9/target/classpath.txt in";
    let output = run()?;
    assert!(
        said(&output).contains(words) && said(&output).contains("`make servers`"),
        "{output:?}"
    );
    std::fs::write(target.join("classpath.txt"), "/no/such/tomcat.jar\n")?;
    let output = run()?;
    assert!(
        said(&output).contains("/no/such/tomcat.jar of ")
            && said(&output).contains("`make servers`")
    );
    Ok(())
}

/// From end to end, on what `make servers` has built.
#[test]
fn tomcats_are_run_with_the_listener_off_and_on() -> Fallible {
    let folder = Folder::new("tomcats");
    let output = regress(
        &folder,
        &format!("{TINY} --warm-up 500 --server tomcat9-apr --server tomcat10-nio"),
    )?;
    let report = report(&folder, &output)?;
    let hosts = array(&report, "hosts");
    assert_eq!(hosts.len(), 2, "{}", said(&output));
    for (host, line, tomcat, connector) in [
        (&hosts[0], "tomcat9-apr", "Apache Tomcat/9.0.", "https-openssl-apr-"),
        (&hosts[1], "tomcat10-nio", "Apache Tomcat/10.1.", "https-openssl-nio-"),
    ] {
        assert_eq!(host["line"], line);
        assert!(host["tomcat"].as_str().is_some_and(|name| name.starts_with(tomcat)), "{host}");
        assert!(
            host["connector"].as_str().is_some_and(|name| name.starts_with(connector)),
            "{host}"
        );
    }
    let runs = array(&report, "runs");
    let names: Vec<_> =
        runs.iter().map(|run| (run["line"].as_str(), run["cure"].as_str())).collect();
    let expected = ["tomcat9-apr", "tomcat10-nio"]
        .iter()
        .flat_map(|line| ["none", "sweep"].map(|cure| (Some(*line), Some(cure))));
    assert_eq!(names, expected.collect::<Vec<_>>(), "{}", said(&output));
    for run in runs {
        assert!(
            run["version"].as_str().is_some_and(|version| version.starts_with("OpenSSL ")),
            "{run}"
        );
        assert!(run["library"].as_str().is_some_and(|path| path.ends_with("libtcnative-1.so")));
        assert_eq!(run["small"]["requests"], 600, "{run}");
        assert_eq!(run["small"]["misbehaved"], 60, "{run}");
        assert_eq!(run["bodies"]["sent"], run["bodies"]["verified"], "{run}");
        assert_eq!(run["ledger"].is_null(), run["cure"] == "none", "{run}");
    }
    for part in ["tasks under a guard", "healthy connections closed", "bodies answered"] {
        assert_eq!(named(&report["verdicts"], part)?["holds"], true, "{part}: {}", said(&output));
    }
    let paired = array(&report, "paired");
    assert_eq!(paired.len(), 8, "{}", said(&output));
    assert!(
        paired.iter().all(|pair| pair["ledger"].is_null() == (pair["cure"] == "none")),
        "{paired:?}"
    );
    let page = std::fs::read_to_string(folder.0.join("report.html"))?;
    assert!(page.contains("Apache Tomcat/9.0.") && page.contains("none again"));
    Ok(())
}
