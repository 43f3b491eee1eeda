#!/usr/bin/env python3
"""What the program and the library are made of, as SPDX 2.3 in JSON: the packages of this system
whose headers were compiled in (as the build has noted them), whose libraries are linked, and whose
compiler was used. The same build gives the same bytes.

  tools/sbom.py [BUILD]      BUILD: the folder of a build, default: build
"""
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def headers_of(deps, build):
    """Absolute paths in the text of `ninja -t deps` that objects of src/ were compiled from."""
    found, is_own = set(), False
    for line in deps.splitlines():
        if line and not line[0].isspace():
            is_own = line.startswith("src/")
        elif is_own and line.strip():
            found.add(os.path.normpath(os.path.join(build, line.strip())))
    return found


def libraries_of(listing):
    """Paths in the text of `ldd`."""
    return {match for match in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listing, re.M)}


def packages_of(paths):
    """Debian packages that the files belong to; files that belong to none are left out."""
    names = set()
    paths = sorted({os.path.realpath(path) for path in paths} | set(paths))
    for at in range(0, len(paths), 500):
        answer = subprocess.run(["dpkg-query", "-S", *paths[at:at + 500]], capture_output=True,
                                text=True)
        for line in answer.stdout.splitlines():
            if not line.startswith("diversion "):
                names |= {name.strip() for name in line.rsplit(": ", 1)[0].split(", ")}
    return names


def described(names):
    """Name, version and source of packages, in the order of their names."""
    form = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n"
    lines = run("dpkg-query", "-W", "-f", form, *sorted(names)).splitlines() if names else []
    return [dict(zip(("name", "version", "architecture", "source", "source_version"),
                     line.split("\t"))) for line in sorted(set(lines))]


def spdx_id(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


def package_of(entry):
    return {
        "SPDXID": spdx_id(entry["name"]),
        "name": entry["name"],
        "versionInfo": entry["version"],
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"Debian source {entry['source']} {entry['source_version']}",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{entry['name']}@{entry['version']}"
                                f"?arch={entry['architecture']}",
        }],
    }


def document(version, created, products, linked, compiled, tools):
    """`products`: paths by names of what was built; the others: as described() gives them."""
    main = {
        "SPDXID": "SPDXRef-cairn",
        "name": "cairn",
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "MIT",
        "copyrightText": "NOASSERTION",
    }
    files = [{
        "SPDXID": spdx_id("file-" + name),
        "fileName": "./" + name,
        "checksums": [
            {"algorithm": kind.upper(), "checksumValue": hashlib.new(kind, data).hexdigest()}
            for kind in ("sha1", "sha256")],
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
    } for name, data in sorted(products.items())]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", main["SPDXID"])]
    relations += [(file["SPDXID"], "GENERATED_FROM", main["SPDXID"]) for file in files]
    packages = {}
    for entries, kind, is_of in ((linked, "DYNAMIC_LINK", False),
                                 (compiled, "BUILD_DEPENDENCY_OF", True),
                                 (tools, "BUILD_TOOL_OF", True)):
        for entry in entries:
            package = package_of(entry)
            packages[package["SPDXID"]] = package
            pair = (package["SPDXID"], main["SPDXID"])
            first, second = pair if is_of else pair[::-1]
            relations.append((first, kind, second))
    body = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"cairn-{version}",
        "creationInfo": {"created": created, "creators": ["Tool: cairn-sbom"]},
        "packages": [main] + [packages[key] for key in sorted(packages)],
        "files": files,
        "relationships": [{"spdxElementId": first, "relationshipType": kind,
                           "relatedSpdxElement": second} for first, kind, second in relations],
    }
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    body["documentNamespace"] = f"https://spdx.org/spdxdocs/cairn-{version}-{digest}"
    return body


def created_at():
    """The time of the commit, or SOURCE_DATE_EPOCH: not the moment, so that bytes are the same."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds is None:
        try:
            seconds = run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
        except (OSError, subprocess.CalledProcessError):
            seconds = 0
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    cache = (build / "CMakeCache.txt").read_text()
    version = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.+)$", cache, re.M).group(1)
    compiler = re.search(r"^CMAKE_CXX_COMPILER:[A-Z]+=(.+)$", cache, re.M).group(1)
    products = {path.name: path for path in
                [build / "cairn", *sorted((build / "src").glob(f"libcairn.so.{version}"))]
                if path.is_file()}
    if not products:
        sys.exit(f"{build}: expected what `./dev build` makes, found neither program nor library")
    libraries = set()
    for path in products.values():
        libraries |= libraries_of(run("ldd", str(path)))
    headers = {path for path in headers_of(run("ninja", "-C", str(build), "-t", "deps"), build)
               if not Path(path).is_relative_to(ROOT) and not Path(path).is_relative_to(build)}
    linked = described(packages_of(libraries))
    names = {entry["name"] for entry in linked}
    compiled = [each for each in described(packages_of(headers)) if each["name"] not in names]
    tools = described(packages_of([os.path.realpath(compiler), os.path.realpath("/usr/bin/ld"),
                                   os.path.realpath("/usr/bin/cmake")]))
    sbom = document(version, created_at(),
                    {name: path.read_bytes() for name, path in products.items()}, linked, compiled,
                    tools)
    out = build / "cairn.spdx.json"
    out.write_text(json.dumps(sbom, indent=1, sort_keys=True) + "\n")
    print(f"{out}: {len(linked)} packages are linked, {len(compiled)} more were compiled in, "
          f"{len(tools)} are tools")


if __name__ == "__main__":
    main()
