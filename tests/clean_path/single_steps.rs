//! A clean task takes no lock and does not enter libcrypto: shown by stepping through one, instruction
//! by instruction, in a child process.
//!
//! An uncontended lock makes no system call, and a lock of Rust's makes no call that could be
//! intercepted; but each lock has an atomic read-modify-write instruction in it.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::ptr::null_mut;

use sslsweep::hygiene::{Label, run};
use sslsweep::sys::objects::{self, Object};
use sslsweep_libssl::Tls;

use crate::common::Outcome;
use crate::{clean_guards, warmed_up};

/// What was executed between the two marks.
#[derive(Debug, Default)]
struct Executed {
    instructions: usize,
    /// Read-modify-write with the bus locked.
    atomic: usize,
    system_calls: usize,
    /// How many in which object.
    objects: BTreeMap<String, usize>,
}

impl Executed {
    fn in_libcrypto(&self) -> usize {
        let libcrypto = |name: &&String| name.contains("libcrypto");
        self.objects.iter().filter(|(name, _)| libcrypto(name)).map(|(_, count)| count).sum()
    }
}

#[inline(never)]
extern "C" fn begin() {
    black_box(1);
}

#[inline(never)]
extern "C" fn end() {
    black_box(2);
}

/// Executes `prepare` at full speed and `work` step by step, in a child.
fn step(prepare: impl FnOnce(), work: impl FnOnce()) -> Outcome<Executed> {
    // SAFETY: the child uses the heap, which glibc keeps usable in it, and what is under test.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: takes no pointer; without a handler the signal ends a child that hangs.
        unsafe { libc::alarm(200) };
        prepare();
        // SAFETY: lets the parent trace this process; the other arguments are ignored.
        unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<u8>(), null_mut::<u8>()) };
        // SAFETY: no preconditions; the parent goes on from here.
        unsafe { libc::raise(libc::SIGSTOP) };
        begin();
        work();
        end();
        // SAFETY: ends the child at once: it must not go on with the parent's tests.
        unsafe { libc::_exit(0) }
    }
    let objects = objects::loaded();
    let mut executed = Executed::default();
    let mut inside = false;
    loop {
        let mut status = 0;
        // SAFETY: a valid place for the status of a child of ours.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        if !libc::WIFSTOPPED(status) {
            return Err(format!("the child ended early: {status:#x}").into());
        }
        let at = instruction_pointer(child)?;
        if at == end as *const () as usize {
            break;
        }
        if inside {
            executed.add(at, word(child, at), &objects);
        }
        inside |= at == begin as *const () as usize;
        // SAFETY: the child is stopped; null is no signal.
        unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, null_mut::<u8>(), null_mut::<u8>()) };
    }
    // SAFETY: a child of ours that has not been waited for.
    unsafe { libc::kill(child, libc::SIGKILL) };
    // SAFETY: as above; the status is not wanted.
    unsafe { libc::waitpid(child, null_mut(), 0) };
    Ok(executed)
}

fn instruction_pointer(child: libc::pid_t) -> Outcome<usize> {
    // SAFETY: numbers only, for which zeros are valid.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the child is stopped; the place is as large as its registers.
    let got =
        unsafe { libc::ptrace(libc::PTRACE_GETREGS, child, null_mut::<u8>(), &raw mut registers) };
    if got == 0 { Ok(registers.rip as usize) } else { Err(std::io::Error::last_os_error().into()) }
}

/// The first bytes of an instruction.
fn word(child: libc::pid_t, at: usize) -> [u8; 8] {
    // SAFETY: the child is stopped; the kernel answers -1 for what is not mapped.
    let word = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, child, at, null_mut::<u8>()) };
    word.to_ne_bytes()
}

impl Executed {
    fn add(&mut self, at: usize, bytes: [u8; 8], objects: &[Object]) {
        const LOCK: u8 = 0xf0;
        // Prefixes: operand and address size, repeats, segments, and the one looked for.
        const PREFIXES: [u8; 11] =
            [0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, LOCK];
        self.instructions += 1;
        let prefixes = bytes.iter().take_while(|byte| PREFIXES.contains(byte)).count();
        let locked = bytes[..prefixes].contains(&LOCK);
        let opcode = match bytes[prefixes..] {
            [0x40..=0x4f, ref opcode @ ..] => opcode,
            ref opcode => opcode,
        };
        // XCHG with memory locks the bus without being told to.
        let exchange = matches!(opcode, [0x86 | 0x87, operands, ..] if operands >> 6 != 3);
        self.atomic += usize::from(locked || exchange);
        self.system_calls += usize::from(matches!(opcode, [0x0f, 0x05, ..]));
        let object = objects.iter().find(|object| object.contains(at));
        let name =
            object.map_or_else(|| "?".to_owned(), |object| object.path.display().to_string());
        *self.objects.entry(name).or_default() += 1;
    }
}

fn check(tls: &'static Tls) -> Outcome {
    let label = Label::intern("interned");
    let clean = step(|| warmed_up(tls, label), || clean_guards(3, label))?;
    assert!(clean.instructions > 100, "{clean:?}");
    assert_eq!((clean.atomic, clean.system_calls, clean.in_libcrypto()), (0, 0, 0), "{clean:#?}");

    // The control: a dirty task takes the ledger's lock and drains the queue.
    let leave = || assert!(tls.library().raise(128, 1, c"step", 1));
    let prepare = || {
        warmed_up(tls, label);
        run("dirty", leave);
    };
    let dirty = step(prepare, || run("dirty", leave))?;
    assert!(dirty.atomic > 0 && dirty.system_calls > 0 && dirty.in_libcrypto() > 0, "{dirty:#?}");
    println!(
        "| {} | 18 clean guards: {} instructions, {} atomic | a dirty one: {}, {} atomic |",
        tls.version(),
        clean.instructions,
        clean.atomic,
        dirty.instructions,
        dirty.atomic
    );
    Ok(())
}

crate::on_lines!(check: on_1_1_1 on_3_0 on_3_6 on_4_0);
