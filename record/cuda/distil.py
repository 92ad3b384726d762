#!/usr/bin/env python3
"""Distils facts from the headers of CUDA and CUPTI: functions.txt and layouts.txt.

    distil.py functions HEADERS... > functions.txt
    distil.py layouts HEADERS... > layouts.txt
    distil.py check layouts.txt HEADERS...

HEADERS are include directories of one CUDA version, joined by colons; versions from old to new. The
wheels of PyPI have them: nvidia-cuda-cupti-cu12, nvidia-cuda-runtime-cu12 and nvidia-cuda-nvcc-cu12
(for CUDA 13 nvidia-cuda-cupti, nvidia-cuda-runtime and nvidia-cuda-crt). A C compiler computes the
offsets. The heads of the files describe their formats.
"""

import os
import re
import subprocess
import sys
import tempfile

FUNCTIONS_HEAD = """\
# Functions of the driver API and the runtime API of CUDA: distilled from NVIDIA's headers by
# distil.py. Do not edit.
#
#   API NUMBER NAME
#     PARAMETER KIND OFFSET
#
# NUMBER is the callback id of CUPTI. OFFSET is that in the structure of arguments which callbacks
# get. Kinds:
#   handle, pointer              shown in base 16
#   i8, u8, i32, u32, i64, u64, f32, f64
#   text                         a text that ends with NUL
#   out KIND                     the address of a value that the function writes
"""

LAYOUTS_HEAD = """\
# Fields of structures of CUPTI: distilled from NVIDIA's headers by distil.py. Do not edit.
#
#   STRUCTURE
#     FIELD KIND OFFSET
#
# Structures of records are extended at their end from version to version (CUpti_ActivityKernel5,
# 6, ...): these fields have the same offsets in all versions from CUDA 11 on. The versions that were
# compared, with their sizes of records, are:
"""

# Structures of records, with the first version of each that CUDA 11.0 or later writes.
RECORDS = {
    "Kernel": (5, """kind start end completed deviceId contextId streamId gridX gridY gridZ blockX
        blockY blockZ staticSharedMemory dynamicSharedMemory registersPerThread correlationId gridId
        name queued submitted graphNodeId"""),
    "Memcpy": (4, """kind copyKind srcKind dstKind flags bytes start end deviceId contextId streamId
        correlationId runtimeCorrelationId graphNodeId"""),
    "MemcpyPtoP": (3, """kind copyKind srcKind dstKind flags bytes start end deviceId contextId
        streamId srcDeviceId srcContextId dstDeviceId dstContextId correlationId graphNodeId"""),
    "Memset": (3, """kind value bytes start end deviceId contextId streamId correlationId flags
        memoryKind graphNodeId"""),
    "Synchronization": (1, "kind type start end correlationId contextId streamId cudaEventId"),
    "UnifiedMemoryCounter": (2, """kind counterKind value start end address srcId dstId streamId
        processId flags"""),
    "Device": (3, """kind globalMemorySize numMultiprocessors computeCapabilityMajor
        computeCapabilityMinor id uuid name"""),
    "Context": (1, "kind contextId deviceId computeApiKind nullStreamId"),
    "Stream": (1, "kind contextId streamId priority flag correlationId"),
}
OTHERS = {
    "CUpti_CallbackData": """callbackSite functionName functionParams functionReturnValue symbolName
        context contextUid correlationId""",
    "CUpti_ResourceData": "context resourceHandle.stream",
    "CUpti_ActivityUnifiedMemoryCounterConfig": "scope kind deviceId enable",
}

# Functions whose first parameter is an array, or is read.
NOT_OUT = re.compile(r"Batch|Enumerate|SetValidDevices|ThreadExchange|Callback|Memcpy|Nodes|Edges")


def compiled(headers, source):
    """The output of a C program."""
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "facts")
        with open(program + ".c", "w", encoding="utf-8") as file:
            file.write(source)
        include = [f"-I{part}" for part in headers.split(":")]
        subprocess.run(["cc", "-w", "-o", program, program + ".c", *include], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def text_of(headers, names):
    """The text of headers without comments."""
    text = ""
    for directory in headers.split(":"):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text += file.read()
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))


SOURCE = """\
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cupti.h>
/* 5: a pointer, 12: a structure. */
#define KIND(X) _Generic((X), float: "f32", double: "f64", char: "i8", signed char: "i8", \\
    unsigned char: "u8", short: "i16", unsigned short: "u16", int: "i32", unsigned: "u32", \\
    long: "i64", unsigned long: "u64", long long: "i64", unsigned long long: "u64", \\
    default: __builtin_classify_type(X) == 5 ? "handle" : "-")
#define SAY(LABEL, KIND, MORE, T, F) printf("%s %s %zu\\n", LABEL, KIND, offsetof(T, F) + MORE)
"""
FUNCTIONS_SOURCE = SOURCE + """
static const char *out(const char *kind) {
    static char text[16];
    if (!strcmp(kind, "-")) return "pointer";
    snprintf(text, sizeof text, "out %s", kind);
    return text;
}
int main(void) {
"""
def fact(label, structure, field):
    """C code that prints the kind and the offset of a field."""
    kind = '"bytes"' if field == "uuid" else f"KIND((({structure} *)0)->{field})"
    return f'SAY("{label} {field}", {kind}, 0, {structure}, {field});\n'


def layouts_of(headers):
    """Fields of all structures of one version, and the sizes of its records."""
    text = text_of(headers, ["cupti_activity.h", "cupti_activity_deprecated.h"])
    source, sizes = SOURCE + "int main(void) {\n", {}
    for record, (first, fields) in RECORDS.items():
        found = re.findall(r"\}\s*CUpti_Activity%s(\d*);" % record, text)
        for version in sorted({int(number or 1) for number in found}):
            if version < first:
                continue
            name = f"CUpti_Activity{record}{version if version > 1 else ''}"
            source += f'printf("size {record} {version} %zu\\n", sizeof({name}));\n'
            for field in fields.split():
                source += fact(f"CUpti_Activity{record} {version}", name, field)
    for name, fields in OTHERS.items():
        for field in fields.split():
            source += fact(f"{name} 0", name, field)
    source += 'printf("api %d\\n", CUPTI_API_VERSION);\n}\n'
    facts, api = {}, None
    for line in compiled(headers, source).splitlines():
        words = line.split()
        if words[0] == "size":
            sizes[words[1]] = (int(words[2]), int(words[3]))
        elif words[0] == "api":
            api = int(words[1])
        else:
            name, version, field, kind, offset = words
            known = facts.setdefault((name, field), (kind, int(offset)))
            if known != (kind, int(offset)):
                sys.exit(f"{name} {version}: {field} of API {api} at {offset}, not as {known}")
    return facts, sizes, api


def layouts(versions):
    known, lines = {}, []
    for headers in versions:
        facts, sizes, api = layouts_of(headers)
        for key, fact in facts.items():
            if known.setdefault(key, fact) != fact:
                sys.exit(f"{key} of API {api}: {fact}, not {known[key]}")
        shown = [f"{name}{version}={size}" for name, (version, size) in sizes.items()]
        lines.append(f"#   API {api}: {' '.join(shown)}")
    print(LAYOUTS_HEAD + "\n".join(lines))
    last = None
    for (name, field), (kind, offset) in known.items():
        if name != last:
            print(f"\n{name}")
            last = name
        print(f"  {field} {kind} {offset}")


def check(path, versions):
    """Compares a file of layouts with headers."""
    known, name = {}, ""
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if len(words) == 1:
                name = words[0]
            elif words:
                known[name, words[0]] = (words[1], int(words[2]))
    for headers in versions:
        facts, _, api = layouts_of(headers)
        if facts != known:
            differing = {key for key in facts.keys() | known.keys() if facts.get(key) != known.get(key)}
            sys.exit(f"API {api} differs: {sorted(differing)}")
        print(f"API {api}: {len(facts)} fields agree")


def functions_of(headers):
    """Functions of one version: (api, number) to (name, parameters)."""
    found = {}
    source = FUNCTIONS_SOURCE
    meta = text_of(headers, ["generated_cuda_meta.h", "generated_cuda_runtime_api_meta.h"])
    bodies = dict(re.findall(r"typedef struct (\w+)_params_st \{(.*?)\} \w+;", meta, flags=re.S))
    for api, header in (("driver", "cupti_driver_cbid.h"), ("runtime", "cupti_runtime_cbid.h")):
        prefix = f"CUPTI_{api.upper()}_TRACE_CBID_"
        for name, at in re.findall(prefix + r"(\w+)\s*=\s*(\d+)", text_of(headers, [header])):
            # Of functions that were removed, headers keep only the number.
            if name in ("INVALID", "SIZE", "FORCE_INT") or re.fullmatch(r"cuda\d+", name):
                continue
            found[api, int(at)] = (name, [])
            for place, (of_type, parameter) in enumerate(parameters(bodies.get(name, ""))):
                source += fact_of(f"{api} {at} {parameter}", (f"{name}_params", parameter), of_type,
                                  place == 0 and not NOT_OUT.search(name))
    for line in compiled(headers, source + "}\n").splitlines():
        api, at, parameter, *kind, offset = line.split()
        if kind and kind[-1] != "-":
            found[api, int(at)][1].append(" ".join([parameter, *kind, offset]))
    return found


def parameters(body):
    """Type and name of each parameter."""
    for declaration in body.split(";"):
        match = re.match(r"\s*(.*?)\s*(\w+)\s*(\[.*\])?\s*$", declaration, flags=re.S)
        if match and match.group(1):
            yield re.sub(r"\s+", " ", match.group(1)), match.group(2)


def fact_of(label, place, of_type, may_be_out):
    """C code that prints the kind and the offset of a parameter."""
    base = of_type.removeprefix("const ")
    if of_type in ("dim3", "struct dim3"):
        return "".join(f'SAY("{label}_{axis}", "u32", {at}, {place[0]}, {place[1]});\n'
                       for axis, at in (("x", 0), ("y", 4), ("z", 8)))
    if re.fullmatch(r"const char ?\*( ?const)?", of_type):
        kind = '"text"'
    elif re.fullmatch(r"CU(deviceptr(_v[12])?|texObject|surfObject)", base):
        kind = '"handle"'
    elif "*" not in of_type and "[" not in of_type:
        kind = f"KIND(((({place[0]} *)0)->{place[1]}))"
    elif of_type == base and may_be_out and not re.fullmatch(r"(void|char) ?\*", of_type):
        pointee = f"KIND(*((({place[0]} *)0)->{place[1]}))"
        is_device = re.match(r"CUdeviceptr", of_type)
        kind = '"out handle"' if is_device else f"out({pointee})"
    else:
        kind = '"pointer"'
    return f'SAY("{label}", {kind}, 0, {place[0]}, {place[1]});\n'


def functions(versions):
    known = {}
    for headers in versions:
        known.update(functions_of(headers))
    print(FUNCTIONS_HEAD)
    for (api, at), (name, facts) in sorted(known.items()):
        # The runtime's names end with the version in which the function changed.
        print(f"{api} {at} {re.sub(r'_v[0-9]{4,5}$', '', name) if api == 'runtime' else name}")
        for fact in facts:
            print(f"  {fact}")


def main():
    command, *rest = sys.argv[1:]
    {"functions": functions, "layouts": layouts}.get(command, lambda _: check(rest[0], rest[1:]))(rest)


if __name__ == "__main__":
    main()
