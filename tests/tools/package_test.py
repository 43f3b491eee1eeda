#!/usr/bin/env python3
"""What ./dev package makes, tried: the tarball in an empty folder that it cannot look out of, the
package's contents and lintian's opinion, and cmake's installation, which goes without a trace.

  package_test.py BUILD

Parts that this machine cannot try are said to be skipped; exit code 77 where that is all of them.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
QUESTION = ["run", "-p", "What is the capital of France?"]
ANSWER = "The capital of France is Paris.\n"
# With another C library each than the one that cairn is built with, or the same one.
RELEASES = ["bookworm", "bullseye"]
failures, skipped, done = [], [], []


def call(*command, **options):
    return subprocess.run([str(word) for word in command], text=True, capture_output=True,
                          check=False, **options)


def expect(what, is_so, more=""):
    (done if is_so else failures).append(what)
    if not is_so:
        print(f"failed: {what}: {more}")


def make(build, out, kind):
    made = call(sys.executable, ROOT / "tools/package.py", build, out, "--only", kind,
                env={**os.environ, "DEBFULLNAME": "Ada Lovelace", "DEBEMAIL": "ada@example.org"})
    expect(f"package.py --only {kind}", made.returncode == 0, made.stderr)
    return pathlib.Path(made.stdout.strip()) if made.returncode == 0 else None


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")
                  if path.is_file() or path.is_symlink())


def try_installation(build, work):
    """Everything that is installed is listed, and goes."""
    environment = {**os.environ, "DESTDIR": str(work / "staged")}
    manifest = build / "install_manifest.txt"
    kept = manifest.read_bytes() if manifest.exists() else None
    # Of a copy: whoever has installed from this folder still wants to remove that.
    installed = call("cmake", "--install", build, "--prefix", "/usr/local", "--component",
                     "Unspecified", env=environment)
    expect("cmake --install", installed.returncode == 0, installed.stderr)
    listed = build / "install_manifest_Unspecified.txt"
    if not listed.exists():
        listed = manifest
    staged = work / "staged"
    names = sorted(line.lstrip("/") for line in listed.read_text().split())
    expect("the list of installed files has them all", names == files_below(staged),
           f"{names} {files_below(staged)}")
    removed = call("cmake", f"-DMANIFEST={listed}", "-P", ROOT / "cmake/uninstall.cmake",
                   env=environment)
    expect("uninstall", removed.returncode == 0, removed.stderr)
    left = list(staged.rglob("*")) if staged.exists() else []
    expect("uninstall leaves nothing", not left, str(left))
    if kept is not None:
        manifest.write_bytes(kept)


def try_tarball(build, work):
    package = make(build, work, "tar")
    if package is None:
        return
    root = work / "root"
    root.mkdir()
    call("tar", "xf", package, "-C", root)
    top = next(root.iterdir())
    here = call(top / "bin/cairn", *QUESTION)
    expect("the tarball's program answers", here.stdout == ANSWER, here.stderr)
    link = work / "link"
    link.symlink_to(top / "bin/cairn")
    expect("also through a link", call(link, *QUESTION).stdout == ANSWER)
    try_releases(top, work)
    loader = next((top / "lib/cairn").glob("ld-linux*"))
    inside = [f"/{top.name}/lib/cairn/{loader.name}", "--library-path", f"/{top.name}/lib/cairn",
              f"/{top.name}/lib/cairn/cairn", *QUESTION]
    enter = ["chroot"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "chroot"]
    probe = call(*enter, root, *inside)
    may_not = "Operation not permitted" in probe.stderr or probe.returncode == 126
    if may_not and ANSWER not in probe.stdout:
        skipped.append("the tarball in an empty folder: needs root or user namespaces")
    else:
        expect("the tarball alone in an empty folder answers", probe.stdout == ANSWER,
               probe.stderr)


def try_releases(top, work):
    """Bare systems, as debootstrap unpacks them: the program runs there as a user starts it."""
    sites = call("apt-get", "indextargets", "--format", "$(SITE)").stdout.split()
    if shutil.which("debootstrap") is None or os.geteuid() != 0 or not sites:
        skipped.append("the tarball on bare systems: needs debootstrap, root and a mirror")
        return
    begun = [(release, work / release, subprocess.Popen(
        ["debootstrap", "--foreign", "--variant=minbase", release, work / release, sites[0]],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)) for release in RELEASES]
    for release, root, unpacking in begun:
        said, _ = unpacking.communicate()
        if unpacking.returncode != 0:
            skipped.append(f"the tarball on {release}: {(said.strip().splitlines() or [''])[-1]}")
            continue
        shutil.copytree(top, root / "opt" / top.name, symlinks=True)
        answered = call("chroot", root, f"/opt/{top.name}/bin/cairn", *QUESTION)
        expect(f"the tarball answers on a bare {release}", answered.stdout == ANSWER,
               answered.stderr)


def try_deb(build, work):
    if shutil.which("dpkg-shlibdeps") is None:
        skipped.append("the .deb: needs dpkg-dev")
        return
    package = make(build, work, "deb")
    if package is None:
        return
    root = work / "deb"
    call("dpkg-deb", "-x", package, root)
    there = files_below(root)
    for name in ["usr/bin/cairn", "usr/share/man/man1/cairn.1.gz", "usr/share/doc/cairn/copyright",
                 "usr/share/bash-completion/completions/cairn",
                 "usr/share/zsh/vendor-completions/_cairn",
                 "usr/share/fish/vendor_completions.d/cairn.fish",
                 "lib/systemd/system/cairn.service"]:
        expect(f"the package has {name}", name in there, str(there))
    expect("its program answers", call(root / "usr/bin/cairn", *QUESTION).stdout == ANSWER)
    depends = call("dpkg-deb", "-f", package, "Depends").stdout
    expect("it depends on libc6 and libcurl4", "libc6 (" in depends and "libcurl4" in depends,
           depends)
    if shutil.which("lintian") is None:
        skipped.append("lintian: it is not installed")
    else:
        checked = call("lintian", "--allow-root", package)
        tags = [line for line in checked.stdout.splitlines()
                if line[:2] in ("E:", "W:")]
        expect("lintian has nothing to say", not tags and checked.returncode in (0, 2),
               "\n".join(tags) + checked.stderr)
    if shutil.which("systemd-analyze") is None:
        skipped.append("the unit: needs systemd-analyze")
    else:
        unit = call("systemd-analyze", "verify", f"--root={root}", "cairn.service")
        # In this folder there is nothing else of a system, which it says as well.
        wrong = [line for line in unit.stderr.splitlines()
                 if re.search(r"cairn\.service.*(Unknown|Invalid|parse|ignoring)", line)]
        expect("systemd reads the unit", not wrong, unit.stderr)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        try_installation(build, work)
        try_tarball(build, work)
        try_deb(build, work)
    for what in skipped:
        print(f"skipped: {what}")
    print(f"{len(done)} held, {len(failures)} failed, {len(skipped)} skipped")
    sys.exit(1 if failures else 0 if done else 77)


if __name__ == "__main__":
    main()
