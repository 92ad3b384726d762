"""Reads kernel traces of `tracebraid record` (CTF 1.8), only as far as is needed to leave event
records out: the offsets of their fields. Standard library only."""

import re
import struct

WORD = re.compile(r'\s*("[^"]*"|:=|\.\.\.|[\w.]+|[{}\[\]<>()=;:,-])')
METADATA_MAGIC = 0x75D11D57
# Magic number, UUID, stream; instance, begin, end, content and packet size in bits, sequence number,
# lost records, CPU.
PACKET = struct.Struct("<I16sIQQQQQQQI")


def text_of(metadata):
    """The text of a metadata file, packetized or plain."""
    if metadata.startswith(b"/* CTF"):
        return metadata.decode()
    text, at = b"", 0
    while at < len(metadata):
        if struct.unpack_from("<I", metadata, at)[0] != METADATA_MAGIC:
            raise SystemExit("metadata: no packet at the expected offset")
        content, packet = struct.unpack_from("<II", metadata, at + 24)
        text += metadata[at + 37:at + content // 8]
        at += packet // 8
    return text.decode()


class Integer:
    """An integer. It has a value only if it is a whole number of bytes, as all lengths and tags are."""

    def __init__(self, properties, labels=()):
        self.size, self.align = properties["size"], properties["align"]
        self.labels = labels

    def pass_over(self, data, bit, _):
        bit += -bit % self.align
        end = bit + self.size
        value = None if self.size % 8 or bit % 8 else int.from_bytes(data[bit // 8:end // 8], "little")
        return value, end


class Text:
    """A string. Its value is its begin and end in bytes, without the final zero."""

    def pass_over(self, data, bit, _):
        begin = (bit + 7) // 8
        end = data.index(0, begin)
        return (begin, end), (end + 1) * 8


class Array:
    """An array of whole bytes. Its length is a number or the name of a field; its value is its begin
    and end in bytes."""

    def __init__(self, of, length):
        self.of, self.length = of, length

    def pass_over(self, data, bit, around):
        length = self.length if isinstance(self.length, int) else around[self.length][0]
        begin = bit
        if isinstance(self.of, Integer):
            return (begin // 8, (begin + length * self.of.size) // 8), begin + length * self.of.size
        for _ in range(length):
            _, bit = self.of.pass_over(data, bit, around)
        return (begin // 8, bit // 8), bit


class Struct:
    """A structure. Its value has the value, begin and end of each field by name."""

    align = 8

    def __init__(self, fields):
        self.fields = fields

    def pass_over(self, data, bit, _):
        bit += -bit % 8
        found = {}
        for name, of in self.fields:
            value, end = of.pass_over(data, bit, found)
            found[name] = (value, bit // 8, end // 8)
            bit = end
        return found, bit


class Variant:
    def __init__(self, tag, choices):
        self.tag, self.choices = tag, dict(choices)

    def pass_over(self, data, bit, around):
        value = around[self.tag[0]][0]
        name = next(name for name, low, high in self.tag[1] if low <= value <= high)
        return self.choices[name].pass_over(data, bit, around)


class Parser:
    """Parses types of fields."""

    def __init__(self, text):
        self.words, self.at = WORD.findall(text), 0

    def take(self, wanted=None):
        word = self.words[self.at]
        self.at += 1
        if wanted and word != wanted:
            raise SystemExit(f"metadata: found {word}, expected {wanted}")
        return word

    def is_next(self, word):
        if self.words[self.at] != word:
            return False
        self.at += 1
        return True

    def number(self):
        return -int(self.take()) if self.is_next("-") else int(self.take())

    def integer(self):
        properties = {}
        self.take("{")
        while not self.is_next("}"):
            name = self.take()
            self.take("=")
            value = self.take()
            properties[name] = int(value) if value.isdigit() else value
            self.take(";")
        return Integer(properties)

    def labels(self):
        labels = []
        self.take("{")
        while not self.is_next("}"):
            name = self.take()
            self.take("=")
            low = self.number()
            labels.append((name, low, self.number() if self.is_next("...") else low))
            self.is_next(",")
        return labels

    def fields(self):
        fields, labels = [], {}
        self.take("{")
        while not self.is_next("}"):
            of = self.type(labels)
            name = self.take()
            if self.is_next("["):
                length = self.take()
                of = Array(of, int(length) if length.isdigit() else length)
                self.take("]")
            if isinstance(of, Integer):
                labels[name] = of.labels
            fields.append((name, of))
            self.take(";")
        return fields

    def type(self, labels):
        kind = self.take()
        if kind == "integer":
            return self.integer()
        if kind == "string":
            return Text()
        if kind == "enum":
            self.take(":")
            self.take("integer")
            of = self.integer()
            of.labels = self.labels()
            return of
        if kind == "struct":
            of = Struct(self.fields())
            if self.is_next("align"):
                self.take("("), self.take(), self.take(")")
            return of
        if kind == "variant":
            self.take("<")
            tag = self.take()
            self.take(">")
            return Variant((tag, labels[tag]), self.fields())
        raise SystemExit(f"metadata: unknown type {kind}")


EVENT = re.compile(r'event \{\n\tname = "([^"]+)";\n\tid = (\d+);\n\tstream_id = 0;\n\tfields := struct (.*?)\n\t(\}[^\n]*;)\n\};\n', re.S)


def classes_of(text):
    """Name and fields of each event class, by id."""
    found = {}
    for name, number, fields, end in EVENT.findall(text):
        found[int(number)] = (name, Struct(Parser(fields + "\n" + end).fields()))
    return found


def without_unused(text, used):
    """The metadata without event classes that are not in `used`."""
    return EVENT.sub(lambda match: match.group(0) if int(match.group(2)) in used else "", text)


def rewritten(stream, classes, change):
    """A stream with the event records for which `change` returns a payload; None leaves one out."""
    out, at = bytearray(), 0
    while at < len(stream):
        magic, uuid, number, instance, begin, end, content, size, *rest = PACKET.unpack_from(stream, at)
        data, bit, now, last = stream[at:at + content // 8], PACKET.size * 8, begin, begin
        body = bytearray()
        while bit < len(data) * 8:
            event, = struct.unpack_from("<H", data, bit // 8)
            if event == 0xFFFF:
                event, now = struct.unpack_from("<IQ", data, bit // 8 + 2)
                bit += 14 * 8
            else:
                low, = struct.unpack_from("<I", data, bit // 8 + 2)
                now += (low - now) % (1 << 32)
                bit += 6 * 8
            name, of = classes[event]
            fields, after = of.pass_over(data, bit, None)
            after += -after % 8
            payload = change(name, fields, data, bit // 8, after // 8)
            bit = after
            if payload is None:
                continue
            # A short header has 32 bits of time: ambiguous after a longer gap.
            short = event < 0xFFFF and now - last < 1 << 32
            body += struct.pack("<HI", event, now & 0xFFFFFFFF) if short else struct.pack("<HIQ", 0xFFFF, event, now)
            body += payload
            last = now
        bits = (PACKET.size + len(body)) * 8
        out += PACKET.pack(magic, uuid, number, instance, begin, end, bits, bits, *rest) + body
        at += size // 8
    return bytes(out)
