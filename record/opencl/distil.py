#!/usr/bin/env python3
"""Distils the functions of OpenCL from the registry of Khronos into functions.txt.

    distil.py cl.xml cl_icd.h > functions.txt

cl.xml is the registry (KhronosGroup/OpenCL-Docs, xml/cl.xml). The order of the entries of the
dispatch table that loaders and layers share is in cl_icd.h (KhronosGroup/OpenCL-Headers, CL/cl_icd.h).
functions.txt keeps what a recorder needs: names, indexes in the dispatch table, and for each
parameter its name, size and direction. Its head describes the format.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

HEAD = """\
# Functions of OpenCL: distilled from the registry of Khronos by distil.py. Do not edit.
#
#   NAME INDEX RESULT [TYPE OF A HANDLE]
#     PARAMETER KIND
#
# INDEX is that in the dispatch table of loaders, - if a function has no entry there.
# Kinds:
#   handle, pointer, i32, u32, i64, u64, usize   a value; handles and pointers are hexadecimal
#   text                                         a text that ends with NUL
#   TYPE[COUNT]                                  an array; COUNT is a parameter or a number
#   TYPE[]                                       pairs of names and values; the name 0 ends them
#   TYPE[0]                                      a list that ends with its first 0
#   out TYPE                                     where the function writes a value
#   out TYPE[COUNT,USED]                         where it writes up to COUNT values, USED of them
#   any                                          is passed on unread: versions of an extension differ
"""

# Extensions of other systems.
FOREIGN = re.compile(r"D3D1[01]|DX9|_android_|Gralloc")
# Functions of loaders and layers themselves.
OF_LOADERS = {
    "clGetICDLoaderInfoOCLICD", "clGetLayerInfo", "clInitLayer", "clInitLayerWithProperties",
    "clDeinitLayer", "clIcdGetPlatformIDsKHR", "clIcdGetFunctionAddressForPlatformKHR",
    "clIcdSetPlatformDispatchDataKHR",
}
SCALARS = {
    "int": "i32", "unsigned int": "u32", "int32_t": "i32", "uint32_t": "u32", "int64_t": "i64",
    "uint64_t": "u64", "size_t": "usize", "intptr_t": "i64", "cl_bitfield": "u64",
    "cl_properties": "u64", "VASurfaceID": "u32",
}
# The parameter that has the number of values of an array of that name.
COUNTS = {
    "event_wait_list": ["num_events_in_wait_list"],
    "event_list": ["num_events"],
    "devices": ["num_devices"],
    "device_list": ["num_devices"],
    "mem_objects": ["num_mem_objects", "num_objects"],
    "mem_list": ["num_mem_objects"],
    "global_work_offset": ["work_dim"],
    "global_work_size": ["work_dim"],
    "local_work_size": ["work_dim"],
    "sync_point_wait_list": ["num_sync_points_in_wait_list"],
    "queues": ["num_queues"],
    "input_programs": ["num_input_programs"],
    "input_headers": ["num_input_headers"],
    "svm_pointers": ["num_svm_pointers"],
    "sizes": ["num_svm_pointers"],
    "lengths": ["num_devices", "count"],
    "sema_objects": ["num_sema_objects"],
    "command_buffers": ["num_command_buffers"],
}
THREE = {"region", "origin", "src_origin", "dst_origin", "buffer_origin", "host_origin",
         "buffer_offset", "host_offset"}
# Arrays that a function fills: the parameters with their capacity and with the number of values.
FILLED = {
    "platforms": ("num_entries", "num_platforms"),
    "clGetDeviceIDs.devices": ("num_entries", "num_devices"),
    "out_devices": ("num_devices", "num_devices_ret"),
    "kernels": ("num_kernels", "num_kernels_ret"),
}


# Functions of extensions that have got further parameters since they were first published, with the
# number of those at the beginning that are the same in all versions. (cl_khr_command_buffer 0.9.5;
# cl_khr_command_buffer_mutable_dispatch 0.9.2.)
CHANGED = {name: 2 for name in (
    "clCommandBarrierWithWaitListKHR", "clCommandCopyBufferKHR", "clCommandCopyBufferRectKHR",
    "clCommandCopyBufferToImageKHR", "clCommandCopyImageKHR", "clCommandCopyImageToBufferKHR",
    "clCommandFillBufferKHR", "clCommandFillImageKHR", "clCommandSVMMemcpyKHR",
    "clCommandSVMMemFillKHR")}
CHANGED["clUpdateMutableCommandsKHR"] = 1


def types(registry):
    """Kinds of type names: scalars, and handles, which are pointers to opaque structures."""
    known = dict(SCALARS)
    pending = {}
    for of_type in registry.iter("type"):
        text = "".join(of_type.itertext())
        name = of_type.find("name")
        if name is None or "typedef" not in text:
            continue
        if re.search(r"struct\s+\w+\s*\*", text):
            known[name.text] = "handle"
        elif "*" in text:
            known[name.text] = "pointer"
        elif of_type.find("type") is not None:
            pending[name.text] = of_type.find("type").text
    for name in pending:
        base = name
        while base in pending and base not in known:
            base = pending[base]
        if base in known:
            known[name] = known[base]
    return known


def kind(known, function, parameters, name, text):
    """The kind of a parameter, or None if it is not known."""
    declared = re.sub(r"\s+", " ", text).strip()
    if "CL_CALLBACK" in declared:
        return "pointer"
    declared = re.sub(r"\b%s\b\s*(\[\])?$" % re.escape(name), "", declared).strip()
    is_constant = declared.startswith("const ")
    base = declared.removeprefix("const ").replace("*", "").strip()
    stars = declared.count("*")
    if stars == 0:
        return known.get(base)
    value = known.get(base)
    counts = [count for count in COUNTS.get(name, []) if count in parameters]
    if base == "char" and is_constant and stars == 1:
        return "text"
    if stars > 1 or value is None:
        return f"pointer[{counts[0]}]" if counts and base == "void" and name == "svm_pointers" else "pointer"
    if is_constant:
        if counts:
            return f"{value}[{counts[0]}]"
        if name in THREE:
            return f"{value}[3]"
        if function.startswith("clCreateSubDevices") and name == "properties":
            return f"{value}[0]"
        if "properties" in name and value in ("u64", "i64"):
            return f"{value}[]"
        return "pointer"
    filled = FILLED.get(f"{function}.{name}") or FILLED.get(name)
    if filled and all(part in parameters for part in filled):
        return f"out {value}[{','.join(filled)}]"
    return f"out {value}"


def main():
    registry = ElementTree.parse(sys.argv[1]).getroot()
    with open(sys.argv[2], encoding="utf-8") as header:
        table = re.findall(r"(?:\w+_t|void)\s*\*\s*(cl\w+);", header.read())
    # Entries of other systems are declared twice.
    index = {name: at for at, name in enumerate(dict.fromkeys(table))}
    foreign = set()
    for extension in registry.iter("extension"):
        if re.search(r"d3d1|dx9|android|gralloc", extension.get("name")):
            foreign.update(command.get("name") for command in extension.iter("command"))
    known = types(registry)
    print(HEAD)
    for command in registry.find("commands"):
        name = command.find("proto/name").text
        if name in OF_LOADERS or name in foreign or FOREIGN.search(name):
            continue
        returned = "".join(command.find("proto").itertext()).replace(name, "").strip()
        result = "pointer" if "*" in returned else known.get(returned, returned)
        if result == "handle":
            result = "handle " + returned.removeprefix("cl_")
        parameters = {}
        for parameter in command.findall("param"):
            of_name = parameter.find("name")
            if of_name is not None:
                parameters[of_name.text] = "".join(parameter.itertext())
        print(f"{name} {index.get(name, '-')} {result}")
        for at, (of_name, text) in enumerate(parameters.items()):
            if at >= CHANGED.get(name, len(parameters)):
                print(f"  {of_name} any")
                continue
            found = kind(known, name, parameters, of_name, text)
            if found is None:
                sys.exit(f"{name}: the type of {of_name} is unknown: {text}")
            print(f"  {of_name} {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
