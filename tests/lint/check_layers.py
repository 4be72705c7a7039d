#!/usr/bin/env python3
"""Checks the layout of the tree and the direction of its includes (ARCHITECTURE.md). `--self-test` proves that each rule
can fail."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A folder under src/ and the folders whose headers its files may include besides its own.
ALLOWED = {
    "core/base": set(),
    "core/device": {"core/base"},
    "kernels": {"core/base", "core/device"},
    "core/model": {"core/base", "core/device", "kernels"},
    "core/optim": {"core/base", "core/device", "kernels", "core/model"},
    "core/data": {"core/base"},
    "core/checkpoint": {"core/base", "core/model"},
    "comm": {"core/base", "core/device", "kernels/reduce.h", "kernels/cuda/ops.h"},
    "trainer": {"core", "kernels", "comm"},
}

# A library outside the standard one, and the .cpp files that may include it. No header may.
LIBRARIES = {
    "CLI11": (re.compile(r"^CLI/"), {"core/base/command_line.cpp"}),
    "protobuf": (re.compile(r"(^google/protobuf/|\.pb\.h$)"),
                 {"core/checkpoint", "core/data", "comm", "trainer"}),
    "Boost": (re.compile(r"^boost/"), {"comm"}),
    "MPI": (re.compile(r"^mpi\.h$"), {"comm/mpi_bootstrap.cpp"}),
    "libsodium": (re.compile(r"^sodium\.h$"), {"core/base/digest.cpp", "comm"}),
    "CUDA": (re.compile(r"^(cuda|nv|cooperative_groups|mma\.h)"), {"kernels/cuda", "core/device", "comm"}),
}

FOLDERS = {
    "core/base", "core/device", "core/model", "core/optim", "core/data", "core/checkpoint",
    "kernels", "kernels/layout", "kernels/cpu", "kernels/cuda",
    "kernels/cuda/attention", "kernels/cuda/gemm", "kernels/cuda/ladder", "kernels/cuda/ptx", "kernels/cuda/tma",
    "kernels/cuda/wgmma",
    "comm", "comm/cuda", "trainer",
}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def layer_of(path):
    """The layer that a path under src/ belongs to."""
    matches = [layer for layer in ALLOWED if path == layer or path.startswith(layer + "/")]
    return max(matches, key=len) if matches else None


def within(path, places):
    return any(path == place or path.startswith(place + "/") for place in places)


def check_file(path, text):
    """Yields one line per broken rule of the file `path` (relative to src/)."""
    layer = layer_of(path)
    if layer is None:
        yield f"src/{path}: not in a folder of the layout"
        return
    if str(pathlib.PurePosixPath(path).parent) not in FOLDERS:
        yield f"src/{path}: its folder is not part of the layout; add it to FOLDERS with a reason"
    header = path.endswith((".h", ".cuh"))
    if header and "#pragma once" not in text:
        yield f"src/{path}: a header without #pragma once"
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, target = match.groups()
        where = f"src/{path}:{number}"
        for name, (pattern, places) in LIBRARIES.items():
            if pattern.search(target):
                if header and not path.endswith(".cuh"):
                    yield f"{where}: {name} in a header ({target})"
                elif not within(path, places):
                    yield f"{where}: {name} belongs to {', '.join(sorted(places))} ({target})"
                break
        else:
            if quote == "<":
                continue
            if layer_of(target) is None:
                yield f"{where}: \"{target}\" is not rooted at src/"
            elif layer_of(target) != layer and not within(target, ALLOWED[layer]):
                yield f"{where}: {layer} may not include {target}"


def check_listed(sources, listings):
    """Yields the source files that no CMakeLists.txt names."""
    for path in sources:
        if pathlib.PurePosixPath(path).name not in listings:
            yield f"{path}: in no CMakeLists.txt, so never built"


def check_folders(folders, root):
    """Yields the folders of the layout that are not there."""
    for folder in sorted(folders):
        if not (root / folder).is_dir():
            yield f"src/{folder}: is part of the layout but does not exist; remove it from FOLDERS"


def check_tree():
    yield from check_folders(FOLDERS, ROOT / "src")
    for file in sorted((ROOT / "src").rglob("*")):
        if file.suffix in {".h", ".cpp", ".cu", ".cuh"}:
            yield from check_file(str(file.relative_to(ROOT / "src")), file.read_text())
    tops = ("src", "tests", "tools", "bench", "proto")
    listings = "".join(f.read_text() for top in tops for f in (ROOT / top).rglob("CMakeLists.txt"))
    listings += "".join(f.read_text() for f in (ROOT / "cmake").glob("*.cmake"))
    sources = [str(f.relative_to(ROOT)) for top in tops for f in sorted((ROOT / top).rglob("*"))
               if f.suffix in {".cpp", ".cu", ".proto"}]
    yield from check_listed(sources, listings)


def self_test():
    """Each seeded fault must be reported."""
    faults = [
        ("core/base/a.h", '#pragma once\n#include "comm/bootstrap.h"\n'),
        ("core/model/a.h", '#pragma once\n#include "comm/bootstrap.h"\n'),
        ("comm/a.h", '#pragma once\n#include "core/model/gpt.h"\n'),
        ("comm/a.h", '#pragma once\n#include "kernels/gemm.h"\n'),
        ("core/data/a.h", '#pragma once\n#include <google/protobuf/message.h>\n'),
        ("comm/a.h", "#pragma once\n#include <boost/asio/io_context.hpp>\n"),
        ("trainer/a.cpp", "#include <mpi.h>\n"),
        ("trainer/a.cpp", '#include "config.h"\n'),
        ("core/base/a.h", "#include <vector>\n"),
        ("core/utils/a.h", "#pragma once\n"),
        ("core/model/deep/a.h", "#pragma once\n"),
    ]
    missed = [fault for fault in faults if not list(check_file(*fault))]
    if list(check_file("comm/a.h", '#pragma once\n#include "kernels/reduce.h"\n#include "core/base/error.h"\n')):
        missed.append("a correct file is refused")
    if not list(check_listed(["src/core/base/orphan.cpp"], "add_library(core log.cpp)")):
        missed.append("an unlisted source is accepted")
    if len(list(check_folders({"core/base", "core/none"}, ROOT / "src"))) != 1:
        missed.append("a folder that does not exist is accepted")
    return [f"self-test: not reported: {fault}" for fault in missed]


def main():
    problems = self_test() if "--self-test" in sys.argv else list(check_tree())
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
