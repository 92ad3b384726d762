"""Records the tasks of asyncio as user-level threads, and threads that run event loops as LWPs.

    import tracebraid_asyncio

    tracebraid_asyncio.install()

before the program creates tasks. `tracebraid record --levels` does it in unmodified programs.

| event class | recorded |
|---|---|
| tracebraid:lwp_begin, lwp_end | a thread begins to run an event loop (runtime `asyncio`), and ends |
| tracebraid:ult_create | a task is created: its name, and the name of its coroutine |
| tracebraid:ult_switch | a step of a task begins and ends; in between runs the loop: 0 |
| tracebraid:ult_block | after a step, the task waits: sleep, network, lock, event, condition, semaphore, barrier, queue, task, executor, process, or future |
| tracebraid:ult_wake | the next step is scheduled |
| tracebraid:ult_exit | the task is done |
| tracebraid_asyncio:cancelled | it ended because it was cancelled |

Event loops schedule a step of a task by their method call_soon, also uvloop. So this module replaces
call_soon of the classes of loops: what the loop calls is the step with the records around it. Task
factories, subclasses of Task and exceptions are not affected. The first step of an eager task
(Python 3.12) is part of the task that creates it.
"""

import asyncio
import functools
import itertools
import sys
import threading
import weakref
from asyncio import base_events, events, tasks

import tracebraid

__all__ = ["install"]

_TASKS = (tasks.Task, tasks._PyTask)
# Names of callbacks that run a step; those of C have none, or another by version.
_STEPS = frozenset((None, "task_wakeup", "__step", "__wakeup"))
_ids = itertools.count(1)
_cancelled = None


class _Lwp(threading.local):
    """The user-level thread that runs on this thread, and whether the thread runs a loop."""

    current = 0
    is_begun = False


_lwp = _Lwp()


class _Ult:
    """The user-level thread of a task."""

    __slots__ = ("id", "task", "name", "is_ready")

    def __init__(self, task):
        self.id = next(_ids)
        self.task = weakref.ref(task)
        self.name = _name(task)
        self.is_ready = True


# By the id of the task: since Python 3.12, tasks take no further attributes. A task that is destroyed
# before its end leaves an entry, which is replaced when another task has the same id.
_ults = {}


def _name(task):
    coroutine = task.get_coro()
    name = getattr(coroutine, "__qualname__", None) or type(coroutine).__qualname__
    return f"{task.get_name()} {name}"


class _Step:
    """A step of a task. Loops show callbacks by the task in `__self__`."""

    __slots__ = ("__self__", "_callback", "_ult")

    def __init__(self, task, callback, ult):
        self.__self__ = task
        self._callback = callback
        self._ult = ult

    def __call__(self, *arguments):
        before = _begin(self.__self__, self._ult)
        try:
            return self._callback(*arguments)
        finally:
            _end(self.__self__, self._ult, before)

    def __repr__(self):
        return repr(self._callback)


def _begin(task, ult):
    before = _lwp.current
    _switch(before, ult.id)
    _lwp.current = ult.id
    ult.is_ready = False
    if ult.name is not None:
        # The program may have named the task since it was created.
        name = _name(task)
        if name != ult.name:
            tracebraid.ult_name(ult.id, name)
        ult.name = None
    return before


def _end(task, ult, before):
    if task.done():
        if task.cancelled():
            _cancelled(ult=ult.id)
        _library.tb_ult_exit(ult.id)
        _ults.pop(id(task), None)
    elif not ult.is_ready:
        _library.tb_ult_block(ult.id, _reason(task))
    _switch(ult.id, before)
    _lwp.current = before


# Reasons by the file in asyncio and the function that waits.
_REASONS = {
    ("tasks", "sleep"): b"sleep",
    ("tasks", "__sleep0"): b"sleep",
    ("tasks", "_wait"): b"task",
    ("locks", "acquire"): b"lock",
    ("locks", "wait"): b"event",
    ("locks", "_block"): b"barrier",
    ("locks", "_wait"): b"barrier",
    ("queues", "get"): b"queue",
    ("queues", "put"): b"queue",
    ("queues", "join"): b"queue",
    ("taskgroups", "__aexit__"): b"task",
    ("subprocess", "wait"): b"process",
    ("base_subprocess", "_wait"): b"process",
}
_NETWORK = frozenset(("streams", "selector_events", "base_events", "sslproto", "proactor_events"))
# By the code that waits.
_reasons = {}


def _reason(task):
    """The word for what a task waits for."""
    waiter = getattr(task, "_fut_waiter", None)
    if isinstance(waiter, _TASKS):
        return b"task"
    frame = None
    awaitable = task.get_coro()
    # The innermost coroutine.
    for _ in range(64):
        inner = getattr(awaitable, "cr_frame", None) or getattr(awaitable, "gi_frame", None)
        if inner is None:
            break
        frame = inner
        awaitable = getattr(awaitable, "cr_await", None) or getattr(awaitable, "gi_yieldfrom", None)
        if awaitable is None:
            break
    if frame is None:
        return b"future"
    code = frame.f_code
    found = _reasons.get(code)
    if found is None:
        found = _reasons[code] = _reason_of(code, frame)
    return b"task" if found == b"future" and type(waiter) is tasks._GatheringFuture else found


def _reason_of(code, frame):
    module = frame.f_globals.get("__name__", "")
    if not module.startswith("asyncio."):
        return b"future"
    module = module[len("asyncio.") :]
    if module == "locks":
        kind = type(frame.f_locals.get("self")).__name__.lower()
        if kind in ("event", "condition", "barrier"):
            return kind.encode()
        if "semaphore" in kind:
            return b"semaphore"
    found = _REASONS.get((module, code.co_name))
    return found or (b"network" if module in _NETWORK else b"future")


def _scheduled(task):
    """A step of a task has been scheduled."""
    ult = _ults.get(id(task))
    if ult is None or ult.task() is not task:
        ult = _ults[id(task)] = _Ult(task)
        tracebraid.ult_create(ult.id, ult.name)
    elif not ult.is_ready:
        ult.is_ready = True
        # Without a block before it, the task gives way to others.
        if _lwp.current != ult.id:
            _library.tb_ult_wake(ult.id)
    return ult


def _recorded(call_soon):
    @functools.wraps(call_soon)
    def recorded(self, callback, *arguments, context=None):
        task = getattr(callback, "__self__", None)
        if (
            isinstance(task, _TASKS)
            and getattr(callback, "__name__", None) in _STEPS
            and type(callback) is not _Step
        ):
            callback = _Step(task, callback, _scheduled(task))
        return call_soon(self, callback, *arguments, context=context)

    return recorded


def _with_lwp(set_running_loop):
    @functools.wraps(set_running_loop)
    def recorded(loop):
        if loop is not None and not _lwp.is_begun:
            _lwp.is_begun = True
            _library.tb_lwp_begin(b"asyncio")
        elif loop is None and _lwp.is_begun:
            _lwp.is_begun = False
            _library.tb_lwp_end()
        set_running_loop(loop)

    return recorded


def _replace_in(loops):
    """Replaces call_soon of a class of loops."""
    loops.call_soon = _recorded(loops.call_soon)


class _UvloopFinder:
    """Replaces call_soon of uvloop once it has been imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "uvloop":
            return None
        sys.meta_path.remove(_UvloopFinder)
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        loader = getattr(spec, "loader", None)
        if loader is not None:
            execute = loader.exec_module

            def exec_module(module):
                del loader.exec_module
                execute(module)
                _replace_in(module.Loop)

            loader.exec_module = exec_module
        return spec


_library = tracebraid._library
_switch = getattr(_library, "tb_ult_switch", None)


def install():
    """Begins to record asyncio, if a session records events; repeated calls have no effect."""
    global _cancelled
    if _library is None or _cancelled is not None:
        return
    _cancelled = tracebraid.event("tracebraid_asyncio:cancelled", ult=int)
    _replace_in(base_events.BaseEventLoop)
    events._set_running_loop = asyncio._set_running_loop = _with_lwp(events._set_running_loop)
    uvloop = sys.modules.get("uvloop")
    if uvloop is not None:
        _replace_in(uvloop.Loop)
    else:
        sys.meta_path.insert(0, _UvloopFinder)
