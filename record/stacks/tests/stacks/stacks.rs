//! Stacks of known call chains.

use crate::support::{Process, Record, Session, compile, plugin};

const CPU: &str = "tracebraid:cpu_stack";
const WAIT: &str = "tracebraid:syscall_stack";

/// Stacks that begin in `function`, or something that it called, and how many of all stacks are complete, in percent.
fn with(process: &Process, class: &str, function: &str) -> (Vec<Vec<String>>, usize) {
    let all: Vec<&Record> = process.of(class).collect();
    let complete = all.iter().filter(|record| record.values["status"] == 0).count();
    let stacks = all.iter().map(|record| process.functions(record));
    let found = stacks.filter(|stack| stack.iter().any(|name| name == function));
    (found.collect(), complete * 100 / all.len().max(1))
}

/// From the first frame that has that name on.
fn from<'a>(stack: &'a [String], name: &str) -> Vec<&'a str> {
    stack
        .iter()
        .map(String::as_str)
        .skip_while(|&other| other != name)
        .collect()
}

fn deep_chain(depth: usize) -> Vec<&'static str> {
    let mut chain = vec!["leaf"];
    chain.extend(vec!["recurse"; depth + 1]);
    chain.extend(["main", "libc.so.6", "libc.so.6", "_start"]);
    chain
}

fn check_deep(process: &Process) {
    let (stacks, complete) = with(process, CPU, "leaf");
    assert!(stacks.len() > 150, "{} stacks", stacks.len());
    assert!(complete >= 99, "{complete} % complete");
    for stack in &stacks {
        assert_eq!(from(stack, "leaf"), deep_chain(28));
        // Above lies what reads the clock.
        assert!(stack.len() <= 40);
    }
}

#[test]
fn depth_30_without_frame_pointers() {
    let session = Session::new();
    let begun = std::time::Instant::now();
    session.run(&["deep"], "");
    let most = begun.elapsed().as_nanos() as u64;
    let process = session.read_one();
    check_deep(&process);
    // The one long wait; a busy machine may preempt other system calls.
    let is_sleep = |record: &&Record| record.values["syscall"] == libc::SYS_clock_nanosleep as u64;
    let sleeps: Vec<&Record> = process.of(WAIT).filter(is_sleep).collect();
    assert_eq!(sleeps.len(), 1);
    // The wait begins when the thread leaves its CPU; the timer of 3 ms runs before that.
    assert!((2_000_000..most).contains(&sleeps[0].values["wait_ns"]));
    assert_eq!(from(&process.functions(sleeps[0]), "leaf"), deep_chain(28));
}

#[test]
fn after_exec() {
    let session = Session::new();
    session.run(&["exec"], "");
    // If it took long to get there, the program before has left a stack, too.
    let all = session.read("chains").into_iter();
    let after = all.max_by_key(|process| process.of(CPU).count());
    check_deep(&after.expect("the program itself"));
}

#[test]
fn cut_at_the_depth_asked_for() {
    let session = Session::new();
    session.run(&["deep"], "depth=7");
    let process = session.read_one();
    let stacks: Vec<&Record> = process
        .of(CPU)
        .filter(|record| record.values["status"] == 1)
        .collect();
    assert!(stacks.len() > 150);
    assert!(stacks.iter().all(|record| record.frames.len() == 7));
}

#[test]
fn through_the_c_library() {
    let session = Session::new();
    session.run(&["sort"], "");
    let (stacks, complete) = with(&session.read_one(), CPU, "compare");
    assert!(stacks.len() > 50 && complete >= 98, "{} {complete}", stacks.len());
    for stack in stacks {
        let chain = from(&stack, "compare");
        let libc = chain
            .iter()
            .skip(1)
            .take_while(|&&name| name == "libc.so.6")
            .count();
        assert!(libc >= 1);
        assert_eq!(
            chain[1 + libc..],
            ["sorter", "main", "libc.so.6", "libc.so.6", "_start"]
        );
    }
}

fn check_handler(what: &str) {
    let session = Session::new();
    session.run(&[what], "");
    let (stacks, complete) = with(&session.read_one(), CPU, "handler");
    assert!(stacks.len() > 70 && complete >= 95, "{} {complete}", stacks.len());
    for stack in stacks {
        let chain = from(&stack, "handler");
        // The kernel's frame, then what raise is made of.
        let libc = chain
            .iter()
            .skip(1)
            .take_while(|&&name| name == "libc.so.6")
            .count();
        assert!(libc >= 2, "{stack:?}");
        assert_eq!(
            chain[1 + libc..],
            ["interrupted", "main", "libc.so.6", "libc.so.6", "_start"]
        );
    }
}

#[test]
fn through_a_signal_handler_that_blocks_all_signals() {
    check_handler("signal");
}

#[test]
fn through_a_signal_handler_on_a_small_stack_of_its_own() {
    check_handler("altstack");
}

#[test]
fn through_a_function_that_realigns_its_stack() {
    let session = Session::new();
    session.run(&["realigned"], "");
    let (stacks, complete) = with(&session.read_one(), CPU, "burn_there");
    assert!(stacks.len() > 70 && complete >= 95, "{} {complete}", stacks.len());
    for stack in stacks {
        let chain = [
            "burn_there",
            "realigned",
            "main",
            "libc.so.6",
            "libc.so.6",
            "_start",
        ];
        assert_eq!(from(&stack, "burn_there"), chain);
    }
}

#[test]
fn in_modules_that_come_and_go() {
    let (session, plugin) = (Session::new(), plugin());
    session.run(&["plugin", plugin.to_str().unwrap()], "");
    let process = session.read_one();
    let (stacks, complete) = with(&process, CPU, "inside");
    assert!(
        stacks.len() > 120 && complete >= 95,
        "{} {complete}",
        stacks.len()
    );
    for stack in &stacks {
        assert_eq!(
            from(stack, "inside"),
            ["inside", "plugin", "main", "libc.so.6", "libc.so.6", "_start"]
        );
    }
    let loads: Vec<&Record> = process
        .of("lttng_ust_lib:load")
        .filter(|load| load.text.ends_with("libplugin.so"))
        .collect();
    assert_eq!(loads.len(), 3);
    assert_eq!(process.of("lttng_ust_lib:unload").count(), 3);
    let ids = process
        .of("lttng_ust_lib:build_id")
        .filter(|id| id.values["baddr"] == loads[0].values["baddr"]);
    assert!(ids.count() >= 1);
}

#[test]
fn while_another_thread_closes_modules() {
    let (session, plugin) = (Session::new(), plugin());
    session.run(&["closing", plugin.to_str().unwrap()], "period_us=100");
    let process = session.read_one();
    let (stacks, _) = with(&process, CPU, "leaf");
    assert!(stacks.len() > 5000, "{}", stacks.len());
    let right = stacks
        .iter()
        .filter(|stack| from(stack, "leaf").ends_with(&["main", "libc.so.6", "libc.so.6", "_start"]));
    let right = right.count();
    assert!(right * 100 >= stacks.len() * 90, "{right} of {}", stacks.len());
}

#[test]
fn with_frame_pointers_and_without_optimisation() {
    let program = compile("chains.c", "chains-plain", &["-O0", "-fno-omit-frame-pointer"]);
    let session = Session::new();
    let output = session.command(&program, "").arg("deep").output().unwrap();
    assert!(output.status.success());
    check_deep(&session.read("chains-plain")[0]);
}
