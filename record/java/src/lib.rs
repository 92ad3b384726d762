//! `libtracebraid_java.so`: records virtual threads of Java 21 and later.
//!
//! **In**: `java -agentpath:/usr/local/lib/tracebraid/libtracebraid_java.so`, and the session's
//! directory in `TRACEBRAID_SESSION`. **Out**: event records of `tracebraid_probe::standard`: virtual
//! threads are user-level threads, numbered and named as in Java; their carrier threads are LWPs of
//! the runtime `java`.
//!
//! | record | source |
//! |---|---|
//! | `ult_create` | `VirtualThread.start`, in the thread that starts it |
//! | `ult_switch` | HotSpot's extension events `VirtualThreadMount`, `VirtualThreadUnmount` |
//! | `ult_block` | an unmount while the thread's state is a wait: reason `lock`, `condition`, `queue`, `sleep`, ... by the class of the object for which it parks (`reasons`), `monitor`, `wait` |
//! | `ult_wake` | `VirtualThread.unpark` and `unblock`, in the thread that wakes; without either, the mount |
//! | `ult_exit` | the event `VirtualThreadEnd` |
//!
//! Methods are observed by breakpoints on their first bytecode, because JVMTI has no events for them:
//! such a method is no longer compiled, but no class changes. A virtual thread that waits without
//! leaving its carrier (pinned) stays recorded as running: the kernel shows that its LWP waits.
//!
//! **Promise**: without a session, the agent requests no capability and no event, which costs nothing.
//! A virtual machine without virtual threads runs as without the agent.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod agent;
mod interface;
mod reasons;
mod threads;
