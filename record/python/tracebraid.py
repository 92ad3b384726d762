"""Probes for Python programs: their events are recorded along with those of the kernel.

    import tracebraid

    tracebraid.probe("shop:order", number=42, customer="Ada", total=9.5)

    with tracebraid.span("checkout"):
        ...

The first event of a class determines the types of its fields: int is 64 bits, float is double;
bool, str and bytes keep their types. To declare the types in advance, or to avoid the look-up by
name, declare the class:

    order = tracebraid.event("shop:order", number=int, customer=str, total=float)
    order(number=42, customer="Ada", total=9.5)

Requires libtracebraid_probe.so in the directory TRACEBRAID_LIBRARIES, beside this file, or in the
system's library path. Without the library, or without a session (the environment variable
TRACEBRAID_SESSION, which `tracebraid record` sets), events are not recorded, and the program
behaves as before.
"""

import ctypes
import functools
import itertools
import os
import re
import struct
import threading

__all__ = [
    "Event",
    "counter",
    "event",
    "is_recording",
    "lwp_begin",
    "lwp_end",
    "lwp_processor",
    "probe",
    "span",
    "traced",
    "ult_block",
    "ult_call_begin",
    "ult_call_end",
    "ult_create",
    "ult_exit",
    "ult_name",
    "ult_state",
    "ult_switch",
    "ult_wake",
]

# Maximum number of recorded bytes of a str or bytes field.
MOST_TEXT = 4095

_INTEGER = "integer {{ size = {}; align = 8; signed = {}; }} _{};\n"
_BYTES = (
    "integer {{ size = 32; align = 8; signed = false; }} __{0}_length;\n"
    "integer {{ size = 8; align = 8; signed = false; }} _{0}[ __{0}_length ];\n"
)


def _text(value):
    """UTF-8 with a terminating NUL and no other NUL."""
    data = ("(null)" if value is None else str(value)).encode("utf-8", "backslashreplace")
    if len(data) > MOST_TEXT:
        # Does not cut within a character.
        data = data[:MOST_TEXT].decode("utf-8", "ignore").encode()
    return data.replace(b"\0", b"?") + b"\0"


def _bytes(value):
    data = bytes(value)[:MOST_TEXT]
    return struct.pack("=I", len(data)) + data


def _integer(value):
    # Larger values wrap, as in C.
    return struct.pack("=Q", int(value) & 0xFFFFFFFFFFFFFFFF)


# By type: the declaration of a field in TSDL, and the encoding of a value.
_TYPES = {
    bool: (lambda name: _INTEGER.format(8, "false", name), lambda value: b"\1" if value else b"\0"),
    int: (lambda name: _INTEGER.format(64, "true", name), _integer),
    float: (
        "floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; }} _{};\n".format,
        lambda value: struct.pack("=d", value),
    ),
    str: ("string _{};\n".format, _text),
    bytes: (_BYTES.format, _bytes),
}


class _Class(ctypes.Structure):
    """`struct tb_class` of tracebraid/probe.h."""

    _fields_ = [
        ("enabled", ctypes.POINTER(ctypes.c_uint8)),
        ("name", ctypes.c_void_p),
        ("fields", ctypes.c_void_p),
        ("describe", ctypes.c_void_p),
        ("epoch", ctypes.c_uint32),
        ("id", ctypes.c_uint16),
        ("off", ctypes.c_uint8),
    ]


# Functions that record the event classes of tracebraid/probe.h, with the types of their arguments.
_STANDARD = {
    "span_begin": [ctypes.c_uint64, ctypes.c_char_p],
    "span_end": [ctypes.c_uint64],
    "counter": [ctypes.c_char_p, ctypes.c_int64],
    "ult_create": [ctypes.c_uint64, ctypes.c_char_p],
    "ult_switch": [ctypes.c_uint64, ctypes.c_uint64],
    "ult_block": [ctypes.c_uint64, ctypes.c_char_p],
    "ult_wake": [ctypes.c_uint64],
    "ult_exit": [ctypes.c_uint64],
    "ult_name": [ctypes.c_uint64, ctypes.c_char_p],
    "ult_state": [ctypes.c_uint64, ctypes.c_int32, ctypes.c_uint8, ctypes.c_char_p, ctypes.c_char_p],
    "ult_call_begin": [ctypes.c_uint64],
    "ult_call_end": [ctypes.c_uint64],
    "lwp_begin": [ctypes.c_char_p],
    "lwp_end": [],
    "lwp_processor": [ctypes.c_int32],
}


def _load():
    """The library, or None without a session."""
    if not os.environ.get("TRACEBRAID_SESSION"):
        return None
    # A library that is already loaded (LD_PRELOAD) comes first: the dynamic linker would resolve
    # the calls of a second copy to it.
    own = ctypes.PyDLL(None)
    if hasattr(own, "tb_register"):
        return _declared(own)
    name = "libtracebraid_probe.so"
    told = os.environ.get("TRACEBRAID_LIBRARIES")
    places = [told] if told else []
    places.append(os.path.dirname(os.path.abspath(__file__)))
    for path in [os.path.join(place, name) for place in places] + [name]:
        try:
            # PyDLL keeps the GIL: a probe takes less time than releasing and reacquiring it.
            library = ctypes.PyDLL(path)
        except OSError:
            continue
        return _declared(library)
    return None


def _declared(library):
    library.tb_record.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    library.tb_record.restype = None
    library.tb_register.argtypes = [ctypes.c_void_p]
    library.tb_register.restype = None
    for name, arguments in _STANDARD.items():
        function = getattr(library, f"tb_{name}", None)
        if function is not None:
            function.argtypes = arguments
            function.restype = None
    return library


_library = _load()
_lock = threading.Lock()
_events = {}
# The library refers to classes until the process ends, after the interpreter has freed its
# objects. So memory passed to the library is allocated by malloc and never freed.
_memory = ctypes.CDLL(None)
_memory.malloc.restype = ctypes.c_void_p
_memory.malloc.argtypes = [ctypes.c_size_t]


def _kept(data):
    place = _memory.malloc(len(data))
    if not place:
        raise MemoryError
    ctypes.memmove(place, data, len(data))
    return place


def is_recording():
    """True if a session records events."""
    return _library is not None


class Event:
    """An event class, made by event(). Call it to record an event."""

    def __init__(self, name, fields):
        if not re.fullmatch(r"\w+:\w+", name, re.ASCII):
            raise ValueError(f"{name!r}: expected PROVIDER:NAME, with letters, digits and _ only")
        for field, kind in fields.items():
            if kind not in _TYPES:
                raise TypeError(f"{name}: field {field} has type {kind!r}: use bool, int, float, str or bytes")
            if not field.isascii():
                raise ValueError(f"{name}: field {field} is not ASCII: use ASCII names")
        self.name = name
        self.fields = dict(fields)
        self._encoders = [(field, _TYPES[kind][1]) for field, kind in fields.items()]
        self._class = None
        if _library is not None:
            self._register()

    def _register(self):
        declared = "".join(_TYPES[kind][0](field) for field, kind in self.fields.items())
        place = _kept(bytes(ctypes.sizeof(_Class)))
        described = _Class.from_address(place)
        described.name = _kept(self.name.encode() + b"\0")
        described.fields = _kept(declared.encode() + b"\0")
        described.enabled = ctypes.cast(place + _Class.off.offset, ctypes.POINTER(ctypes.c_uint8))
        _library.tb_register(place)
        self._class, self._place = described, place

    def is_enabled(self):
        """True if events of this class are recorded."""
        return self._class is not None and self._class.enabled[0] != 0

    def __call__(self, **values):
        described = self._class
        if described is None or not described.enabled[0]:
            return
        try:
            data = b"".join([encode(values[field]) for field, encode in self._encoders])
        except KeyError as error:
            raise TypeError(f"{self.name}: missing field {error.args[0]}") from None
        if len(values) != len(self._encoders):
            unknown = ", ".join(sorted(set(values) - set(self.fields)))
            raise TypeError(f"{self.name}: unknown fields: {unknown}")
        _library.tb_record(self._place, data, len(data))


def event(name, /, **fields):
    """Declares an event class by the types of its fields; repeated calls return the same object."""
    with _lock:
        found = _events.get(name)
        if found is None:
            found = _events[name] = Event(name, fields)
    if found.fields != fields:
        raise TypeError(f"{name} exists already with other fields: {found.fields}")
    return found


def _kind(value):
    for kind in (bool, int, float, bytes):
        if isinstance(value, kind):
            return kind
    return bytes if isinstance(value, (bytearray, memoryview)) else str


def probe(name, /, **values):
    """Records an event."""
    if _library is None:
        return
    found = _events.get(name)
    if found is None:
        found = event(name, **{field: _kind(value) for field, value in values.items()})
    found(**values)


# Ids of spans, unique in the process.
_spans = itertools.count(1)


class span:
    """A named span of time that covers the body of a `with` statement."""

    def __init__(self, name):
        self._name = _text(name)[:-1] if _library is not None else b""

    def __enter__(self):
        if _library is not None:
            self._id = next(_spans)
            _library.tb_span_begin(self._id, self._name)
        return self

    def __exit__(self, *_):
        if _library is not None:
            _library.tb_span_end(self._id)


def traced(function):
    """Decorator that records each call of a function as a span with its name."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with span(function.__qualname__):
            return function(*args, **kwargs)

    return wrapper if _library is not None else function


def counter(name, value):
    """Records the value of a counter, an integer."""
    if _library is not None:
        _library.tb_counter(_text(name)[:-1], int(value))


# User-level threads, for runtimes that schedule coroutines. An LWP is a kernel thread that runs
# user-level threads. Ids are above 0, below 2**64 - 1, and unique among the live user-level threads
# of the process; 0 stands for none.


def ult_create(ult, name):
    """Records that a user-level thread is created, and is ready."""
    if _library is not None:
        _library.tb_ult_create(ult, _text(name)[:-1])


def ult_switch(prev_ult, next_ult):
    """Records that this LWP switches between user-level threads."""
    if _library is not None:
        _library.tb_ult_switch(prev_ult, next_ult)


def ult_block(ult, reason):
    """Records that a user-level thread waits; the reason is a word in lower case."""
    if _library is not None:
        _library.tb_ult_block(ult, _text(reason)[:-1])


def ult_wake(ult):
    """Records that a user-level thread is ready."""
    if _library is not None:
        _library.tb_ult_wake(ult)


def ult_exit(ult):
    """Records that a user-level thread ends."""
    if _library is not None:
        _library.tb_ult_exit(ult)


def ult_name(ult, name):
    """Records a new name of a user-level thread."""
    if _library is not None:
        _library.tb_ult_name(ult, _text(name)[:-1])


# States of ult_state().
ULT_READY, ULT_RUNNING, ULT_BLOCKED, ULT_CALLING = range(4)


def ult_state(ult, lwp, state, name="", reason=""):
    """Records the state of a user-level thread that exists already; lwp is a thread id, or -1."""
    if _library is not None:
        _library.tb_ult_state(ult, lwp, state, _text(name)[:-1], _text(reason)[:-1])


def ult_call_begin(ult):
    """Records that a user-level thread enters a system call."""
    if _library is not None:
        _library.tb_ult_call_begin(ult)


def ult_call_end(ult):
    """Records that a user-level thread leaves a system call."""
    if _library is not None:
        _library.tb_ult_call_end(ult)


def lwp_begin(runtime):
    """Records that this thread becomes an LWP of a runtime."""
    if _library is not None:
        _library.tb_lwp_begin(_text(runtime)[:-1])


def lwp_end():
    """Records that this thread is no longer an LWP."""
    if _library is not None:
        _library.tb_lwp_end()


def lwp_processor(processor):
    """Records the runtime's processor that this LWP holds from now on, or -1."""
    if _library is not None:
        _library.tb_lwp_processor(processor)
