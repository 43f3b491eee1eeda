#!/usr/bin/env python3
"""Compares `cairn inspect --json` with the reader of the Python package gguf (PyPI, 0.19), file by
file: metadata with types and values, tensors with types, shapes and offsets. What cairn opens
without problems, that reader must open too and say the same of. Not part of the test run, since it
needs the package; run it after a change of the reader:

  tests/gguf/against_gguf_py.py build/cairn FILE.gguf...
"""
import json
import math
import subprocess
import sys

import gguf

# Names of value types, by gguf's.
TYPES = {"UINT8": "u8", "INT8": "i8", "UINT16": "u16", "INT16": "i16", "UINT32": "u32",
         "INT32": "i32", "FLOAT32": "f32", "BOOL": "bool", "STRING": "string", "ARRAY": "array",
         "UINT64": "u64", "INT64": "i64", "FLOAT64": "f64"}


def spelled(value):
    """A value as cairn's JSON has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def compare_field(key, ours, field, complain):
    names = [TYPES[kind.name] for kind in field.types]
    try:
        theirs = field.contents()
    except UnicodeDecodeError:
        return None  # cairn takes bytes that are no UTF-8; the other reader cannot show them.
    if ours["type"] != names[0]:
        return complain(f"{key}: type {ours['type']}, expected {names[0]}")
    if names[0] != "array":
        if ours["value"] != spelled(theirs):
            complain(f"{key}: {ours['value']!r}, expected {spelled(theirs)!r}")
        return None
    # An empty array's element type is not kept by the other reader.
    if len(names) > 1 and ours["element"] != names[1]:
        complain(f"{key}: element {ours['element']}, expected {names[1]}")
    if ours["count"] != len(theirs):
        return complain(f"{key}: {ours['count']} elements, expected {len(theirs)}")
    shown = ours.get("value", ours.get("first"))
    if shown != [spelled(value) for value in theirs[:len(shown)]]:
        complain(f"{key}: {shown!r}, expected {theirs[:len(shown)]!r}")
    return None


def compare_tensors(tensors, reader, complain):
    if len(tensors) != len(reader.tensors):
        return complain(f"{len(tensors)} tensors, expected {len(reader.tensors)}")
    for ours, theirs in zip(tensors, reader.tensors):
        found = (ours["name"], ours["type"], ours["shape"], ours["bytes"], ours["offset"])
        expected = (theirs.name, theirs.tensor_type.name, [int(dim) for dim in theirs.shape],
                    int(theirs.n_bytes), int(theirs.data_offset - reader.data_offset))
        if found != expected:
            complain(f"tensor {found}, expected {expected}")
    return None


def compare(program, path):
    """None if cairn refuses the file or finds problems in it, else how many differences."""
    run = subprocess.run([program, "inspect", "--json", path], capture_output=True, check=False)
    if run.returncode != 0:
        return None
    report = json.loads(run.stdout)
    if report["problem_count"] != 0:
        return None
    differences = []
    try:
        reader = gguf.GGUFReader(path)
    except Exception as error:  # Whatever it raises, it did not open what cairn did.
        print(f"{path}: cairn opens it, gguf-py: {error!r}")
        return 1
    fields = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    if list(report["metadata"]) != list(fields):
        differences.append(f"keys {list(report['metadata'])}, expected {list(fields)}")
    else:
        for key, field in fields.items():
            compare_field(key, report["metadata"][key], field, differences.append)
    compare_tensors(report["tensors"], reader, differences.append)
    for line in differences:
        print(f"{path}: {line}")
    return len(differences)


def main():
    program, paths = sys.argv[1], sys.argv[2:]
    results = [compare(program, path) for path in paths]
    wrong = sum(1 for result in results if result)
    print(f"{len(results)} files: {results.count(0)} equal, {wrong} different, "
          f"{results.count(None)} refused or with problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
