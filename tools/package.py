#!/usr/bin/env python3
"""Packages of the program that a build folder has: a .deb for this system, and a tarball that
brings its libraries.

  package.py BUILD OUT [--only deb|tar]

Both are made of what `cmake --install` stages. The .deb depends on the packages of the libraries
that the program was linked with. The tarball has these libraries, the C library and its loader
among them, so that it needs nothing of the system but its kernel (x86-64, Linux 3.2 and later; its
script in bin/ needs a shell).
"""
import argparse
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DESCRIPTION = """run language models on your own machine
 cairn runs language models from GGUF files. It remembers every conversation
 exactly: going back, editing, branching and continuing give the same answers,
 bit for bit, as reading everything again would, without reading it again.
 .
 It chats in a terminal and answers over HTTP as OpenAI's API and others do,
 fetches, converts and quantizes models, and measures what they cost."""


def call(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          stdout=subprocess.PIPE, **options).stdout


def maintainer():
    """Whoever builds the package, as Debian's tools have it, else as git knows them."""
    def known(variable, key):
        if variable in os.environ:
            return os.environ[variable]
        found = subprocess.run(["git", "-C", ROOT, "config", key], text=True, check=False,
                               stdout=subprocess.PIPE).stdout.strip()
        return found or sys.exit(f"{variable}: expected who builds the package, found nobody "
                                 f"(nor {key} of git)")
    return f"{known('DEBFULLNAME', 'user.name')} <{known('DEBEMAIL', 'user.email')}>"


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def write_compressed(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as out, gzip.GzipFile(
            filename="", fileobj=out, mode="wb", compresslevel=9, mtime=0) as packed:
        packed.write(data)
    path.chmod(0o644)


def version_of(build):
    version = call(build / "cairn", "--version").split()[1]
    return re.match(r"[0-9.]+", version).group()


def stage(build, root):
    """The program alone, as `cmake --install` has it, below root/usr."""
    shutil.rmtree(root, ignore_errors=True)
    call("cmake", "--install", build, "--prefix", "/usr", "--component", "Unspecified",
         env={**os.environ, "DESTDIR": str(root)})
    for path in root.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.name == "cairn" and
                   path.parent.name == "bin" else 0o644)
    call("strip", "--strip-unneeded", "--remove-section=.comment", root / "usr/bin/cairn")


def libraries_of(program):
    """Names and paths of the shared libraries that it is loaded with; the loader by itself."""
    libraries, loader = {}, None
    for line in call("ldd", program).splitlines():
        words = line.split()
        if "=>" in words and len(words) >= 3:
            if not words[2].startswith("/"):
                sys.exit(f"{program}: expected {words[0]} on this system, found none")
            libraries[words[0]] = pathlib.Path(words[2])
        elif words[0].startswith("/"):
            loader = pathlib.Path(words[0])
    return libraries, loader


def depends(root):
    """The packages of the libraries, as dpkg-shlibdeps finds them."""
    work = root.parent / "shlibdeps"
    write(work / "debian/control", "Source: cairn\n")
    line = call("dpkg-shlibdeps", "-O", "--ignore-missing-info", root / "usr/bin/cairn", cwd=work,
                stderr=subprocess.DEVNULL)
    return re.search(r"shlibs:Depends=(.*)", line).group(1)


def changelog(version):
    """Debian's of this package; what changed in the program is in CHANGELOG.md."""
    date = call("git", "-C", ROOT, "log", "-1", "--format=%aD").strip() or \
        "Thu, 01 Jan 2026 00:00:00 +0000"
    return f"""cairn ({version}) unstable; urgency=medium

  * What changed is in CHANGELOG.md.

 -- {maintainer()}  {date}
"""


def copyright_text():
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    indented = "\n".join(" " + (line or ".") for line in licence.strip().splitlines())
    template = (ROOT / "packaging/copyright").read_text(encoding="utf-8")
    return template.replace("@LICENSE@", indented)


def make_deb(build, out):
    version = version_of(build)
    architecture = call("dpkg", "--print-architecture").strip()
    root = build / "package/deb"
    stage(build, root)
    documents = root / "usr/share/doc/cairn"
    (documents / "LICENSE").unlink()  # Debian's place for it is the copyright file.
    write(documents / "copyright", copyright_text())
    # A version without a revision is a native package's, which has one changelog.
    write_compressed(documents / "changelog.gz", changelog(version).encode())
    for page in (root / "usr/share/man").rglob("*.1"):
        write_compressed(page.with_suffix(".1.gz"), page.read_bytes())
        page.unlink()
    functions = root / "usr/share/zsh/site-functions"
    functions.rename(functions.with_name("vendor-completions"))
    # It is nobody's first upload to Debian, which would close somebody's wish for it there.
    write(root / "usr/share/lintian/overrides/cairn", "cairn: initial-upload-closes-no-bugs\n")
    unit = root / "lib/systemd/system/cairn.service"
    write(unit, (ROOT / "packaging/cairn.service").read_text(encoding="utf-8"))
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    write(root / "DEBIAN/control", f"""Package: cairn
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer()}
Installed-Size: {(size + 1023) // 1024}
Depends: {depends(root)}
Recommends: ca-certificates
Section: science
Priority: optional
Description: {DESCRIPTION}
""")
    files = sorted(path for path in root.rglob("*")
                   if path.is_file() and "DEBIAN" not in path.parts)
    sums = call("md5sum", *[path.relative_to(root) for path in files], cwd=root)
    write(root / "DEBIAN/md5sums", sums)
    for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)
    package = out / f"cairn_{version}_{architecture}.deb"
    call("dpkg-deb", "--build", "--root-owner-group", root, package)
    return package


def make_tarball(build, out):
    version = version_of(build)
    machine = os.uname().machine
    name = f"cairn-{version}-linux-{machine}"
    root = build / "package/tar"
    stage(build, root)
    top = root / name
    (root / "usr").rename(top)
    inner = top / "lib/cairn"
    inner.mkdir(parents=True)
    (top / "bin/cairn").rename(inner / "cairn")
    libraries, loader = libraries_of(inner / "cairn")
    for library, path in libraries.items():
        shutil.copyfile(path, inner / library)
    shutil.copyfile(loader, inner / loader.name)
    (inner / loader.name).chmod(0o755)
    script = (ROOT / "packaging/cairn.sh").read_text(encoding="utf-8")
    write(top / "bin/cairn", script.replace("@LOADER@", loader.name), 0o755)
    # Whose the libraries are, with their licences.
    for path in set(libraries.values()) | {loader}:
        owner = subprocess.run(["dpkg", "-S", path.resolve()], text=True, capture_output=True,
                               check=False).stdout.split(":")[0]
        licence = pathlib.Path("/usr/share/doc", owner or "-", "copyright")
        if owner and licence.exists():
            target = top / "share/doc/cairn/libraries" / owner
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(licence, target)
    package = out / f"{name}.tar.xz"

    def as_root(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        return entry

    with tarfile.open(package, "w:xz", preset=6) as archive:
        archive.add(top, name, filter=as_root)
    return package


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", choices=["deb", "tar"])
    arguments = parser.parse_args()
    build, out = arguments.build.resolve(), arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if arguments.only != "tar":
        print(make_deb(build, out))
    if arguments.only != "deb":
        print(make_tarball(build, out))


if __name__ == "__main__":
    main()
