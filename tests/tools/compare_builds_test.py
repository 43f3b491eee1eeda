"""tools/compare_builds.py sees each difference between two builds."""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/compare_builds.py"
spec = importlib.util.spec_from_file_location("compare_builds", TOOL)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


class CompareBuilds(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.builds = [pathlib.Path(self.folder.name) / name for name in "ab"]
        for build in self.builds:
            (build / "src").mkdir(parents=True)
            (build / "cairn").write_bytes(b"program")
            (build / "src/libcairn_base.a").write_bytes(b"library")
            (build / "libcairn.so.0.1.0").write_bytes(b"shared library")
            (build / "libcairn.so").symlink_to("libcairn.so.0.1.0")
            (build / "CMakeCache.txt").write_text(str(build))

    def tearDown(self):
        self.folder.cleanup()

    def run_tool(self):
        return subprocess.run([sys.executable, TOOL, *self.builds], capture_output=True, text=True)

    def test_equal_builds(self):
        done = self.run_tool()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 files, the same bytes", done.stdout)

    def test_a_byte_and_a_missing_file(self):
        (self.builds[1] / "cairn").write_bytes(b"Program")
        self.assertIn("1 of 3 files differ: cairn", self.run_tool().stderr)
        (self.builds[1] / "src/libcairn_base.a").unlink()
        done = self.run_tool()
        self.assertEqual(done.returncode, 1)
        self.assertIn("src/libcairn_base.a", done.stderr)

    def test_the_shared_library(self):
        (self.builds[1] / "libcairn.so.0.1.0").write_bytes(b"Shared library")
        self.assertIn("1 of 3 files differ: libcairn.so.0.1.0", self.run_tool().stderr)

    def test_nothing_is_no_success(self):
        self.builds[0] = pathlib.Path(self.folder.name) / "none"
        self.assertEqual(self.run_tool().returncode, 1)


if __name__ == "__main__":
    unittest.main()
