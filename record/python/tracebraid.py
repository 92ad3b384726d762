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

__all__ = ["Event", "counter", "event", "is_recording", "probe", "span", "traced"]

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
    library.tb_span_begin.argtypes = [ctypes.c_uint64, ctypes.c_char_p]
    library.tb_span_end.argtypes = [ctypes.c_uint64]
    library.tb_counter.argtypes = [ctypes.c_char_p, ctypes.c_int64]
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
