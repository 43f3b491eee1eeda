"""What tools/sbom.py reads of the build's notes, and what it writes: whole, and the same twice."""
import importlib.util
import json
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("sbom", ROOT / "tools/sbom.py")
sbom = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sbom)

DEPS = """src/a.o: #deps 3, deps mtime 1 (VALID)
    ../src/a.cpp
    /usr/include/fmt/core.h
    /usr/include/fmt/../fmt/format.h

tests/b.o: #deps 1, deps mtime 1 (VALID)
    /usr/include/gtest/gtest.h
"""
LDD = """\tlinux-vdso.so.1 (0x00007ffd)
\tlibfmt.so.9 => /lib/x86_64-linux-gnu/libfmt.so.9 (0x00007f00)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f01)
"""


def entry(name):
    return {"name": name, "version": "1:2~3+4", "architecture": "amd64", "source": name,
            "source_version": "1"}


class Sbom(unittest.TestCase):
    def test_headers_of_the_program_alone(self):
        found = sbom.headers_of(DEPS, "/x/build")
        self.assertEqual(found, {"/x/src/a.cpp", "/usr/include/fmt/core.h",
                                 "/usr/include/fmt/format.h"})

    def test_libraries(self):
        self.assertEqual(sbom.libraries_of(LDD), {"/lib/x86_64-linux-gnu/libfmt.so.9",
                                                  "/lib64/ld-linux-x86-64.so.2"})

    def test_packages_of_this_system(self):
        names = {each["name"] for each in sbom.described(sbom.packages_of(["/bin/bash"]))}
        self.assertEqual(names, {"bash"})
        self.assertEqual(sbom.packages_of(["/nonesuch"]), set())

    def test_the_document_is_whole_and_the_same_twice(self):
        made = [sbom.document("1.0", "2026-01-01T00:00:00Z", {"cairn": b"x"}, [entry("libfmt9")],
                              [entry("libfmt-dev")], [entry("g++-12")]) for _ in range(2)]
        self.assertEqual(json.dumps(made[0]), json.dumps(made[1]))
        document = made[0]
        for field in ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace",
                      "creationInfo"):
            self.assertIn(field, document)
        ids = {each["SPDXID"] for each in document["packages"] + document["files"]}
        ids.add("SPDXRef-DOCUMENT")
        self.assertEqual(len(ids), len(document["packages"]) + len(document["files"]) + 1)
        for relation in document["relationships"]:
            self.assertIn(relation["spdxElementId"], ids)
            self.assertIn(relation["relatedSpdxElement"], ids)
        kinds = {each["relationshipType"] for each in document["relationships"]}
        self.assertEqual(kinds, {"DESCRIBES", "GENERATED_FROM", "DYNAMIC_LINK",
                                 "BUILD_DEPENDENCY_OF", "BUILD_TOOL_OF"})
        other = sbom.document("1.0", "2026-01-01T00:00:00Z", {"cairn": b"y"}, [], [], [])
        self.assertNotEqual(document["documentNamespace"], other["documentNamespace"])


if __name__ == "__main__":
    unittest.main()
