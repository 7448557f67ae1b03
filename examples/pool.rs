//! A pool of worker threads whose jobs leave errors in OpenSSL's queue, with a guard around each job.
//!
//! Run: `make setup`, then `cargo run --example pool`.
//! Prints who left what. Uses `expect` for brevity.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use sslsweep::hygiene::{self, Guard, Label, Task};
use sslsweep_libssl::{LineFiles, faults};

type Job = Box<dyn FnOnce() + Send>;

/// As small as a pool can be: a queue of labelled jobs and threads that take them.
struct Pool {
    jobs: Option<Sender<(Label, Job)>>,
    workers: Vec<JoinHandle<()>>,
}

impl Pool {
    fn new(size: usize) -> Self {
        let (jobs, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let workers = (0..size)
            .map(|number| {
                let queue = Arc::clone(&queue);
                std::thread::Builder::new()
                    .name(format!("worker-{number}"))
                    .spawn(move || work(&queue))
                    .expect("a thread")
            })
            .collect();
        Self { jobs: Some(jobs), workers }
    }

    fn run(&self, label: &'static str, job: impl FnOnce() + Send + 'static) {
        if let Some(jobs) = &self.jobs {
            jobs.send((label.into(), Box::new(job))).expect("a worker");
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs = None;
        for worker in self.workers.drain(..) {
            worker.join().expect("a worker that did not panic");
        }
    }
}

fn work(queue: &Mutex<Receiver<(Label, Job)>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((label, job)) = next else { return };
        // This is all that hygiene needs: the job's errors end with the job.
        let _guard = Guard::enter(Task::new(label));
        job();
    }
}

fn main() {
    let line = LineFiles::named("3.0").expect("the 3.0 line, which `make setup` puts ready");
    let tls = line.load().expect("a libssl that loads");
    let pool = Pool::new(4);
    for number in 0..100 {
        pool.run("read certificate", move || faults::pem_junk(tls));
        pool.run("read file", move || faults::sys_miss(tls));
        pool.run("compute", move || assert!(number < 100));
    }
    drop(pool);
    for label in hygiene::ledger().labels {
        println!("{}: {} tasks, {} dirty", label.label, label.tasks, label.dirty_tasks);
        for entry in label.entries {
            println!(
                "    {} x {} ({}:{}), last on {}",
                entry.leftovers, entry.reason, entry.last.file, entry.last.line, entry.last.thread
            );
        }
    }
}
