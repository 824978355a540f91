#!/usr/bin/env python3
"""check_includes.py [ROOT]: do includes keep to the rules of the rooms?

core includes nothing else of ours; kernels, comm and io only core; pipeline io and core; engine all of those and jobs; jobs
only kernels/ops.hpp and core; nobody includes app. Headers of libraries stay in their rooms. Prints each breach as
FILE:LINE: what, and exits 1 if there is one.
"""
import pathlib
import re
import sys

# room: the folder that holds it, and the rooms that it may include besides itself
ROOMS = {
    "core": ("src/core", ()),
    "io": ("io", ("core",)),
    "kernels": ("kernels", ("core",)),
    "comm": ("comm", ("core",)),
    "pipeline": ("src/pipeline", ("core", "io")),
    "jobs": ("src/jobs", ("core",)),
    "engine": ("src/engine", ("core", "io", "kernels", "comm", "pipeline", "jobs")),
    "app": ("src/app", ("core", "io", "kernels", "comm", "pipeline", "jobs", "engine")),
}
# single headers that a room may include besides
EXTRA = {"jobs": ("kernels/ops.hpp",)}

# header of a library, and where it may be included (beside tests)
VENDORS = (
    (r"mpi\.h", (r"comm/[^/]*\.cpp", r"io/row_writer[^/]*\.cpp", r"io/rank_meeting\.cpp", r"io/mpiio/[^/]*\.cpp")),
    (r"(hdf5|H5[A-Z][A-Za-z]*)\.h", (r"io/.*", r"bench/chunk_rates\.cpp")),
    (r"(libdeflate|libaec|lzf|blosc|lz4[a-z]*|zstd[a-z_]*)\.h", (r"io/filters/.*", r"bench/(filter_bench|chunk_rates)\.cpp")),
    (r"hwy/.*", (r"kernels/.*",)),
    (r"(cblas|lapacke?|openblas_config)\.h", (r"kernels/host/.*",)),
    (r"(cuda|cublas|cusolver|curand|nvtx|nvml)[A-Za-z0-9_]*\.h|cub/.*|thrust/.*|nvtx3/.*",
     (r"src/core/cuda_.*", r"kernels/cuda/.*", r"comm/nccl_communicator\.cpp", r"bench/gpu_.*")),
    (r"nccl\.h", (r"comm/nccl_communicator\.cpp",)),
    (r"(x86intrin|[a-z]*mmintrin|arm_neon|arm_sve)\.h", ()),
)

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SUFFIXES = {".cpp", ".hpp", ".h", ".cu", ".cuh"}


def room_of(path):
    """The room of a path relative to the root, or None."""
    for room, (folder, _) in ROOMS.items():
        if path.startswith(folder + "/"):
            return room
    return None


def resolve(root, name):
    """Our own file that an include names, relative to the root, or None."""
    for base in ("src/", ""):
        if (root / base / name).is_file():
            return base + name
    return None


def check_ours(root, path, room, name):
    target = resolve(root, name)
    if target is None and any((root / "src").rglob(name + ".in")):
        return  # made by configuring
    if target is None:
        yield f'"{name}" is no file of ours; write it from the root or from src'
        return
    other = room_of(target)
    in_tests = path.startswith("tests/") or path.startswith("bench/")
    if target.startswith("tests/") and not in_tests:
        yield f'"{name}" is for tests only'
    if room is None or other is None or other == room or name in EXTRA.get(room, ()):
        return
    if other not in ROOMS[room][1]:
        yield f'{room} may not include "{name}" of {other}'


def check_vendor(path, name):
    if path.startswith("tests/"):
        return
    for header, places in VENDORS:
        if re.fullmatch(header, name) and not any(re.fullmatch(place, path) for place in places):
            yield f"<{name}> may not be included here (only in: {', '.join(places) or 'nowhere'})"


def breaches(root):
    for folder in ("bench", "comm", "io", "kernels", "src", "tests"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root).as_posix()
            lines = file.read_text(encoding="utf-8").splitlines()
            if file.suffix == ".hpp" and "-inl" not in file.stem and "#pragma once" not in lines:
                yield f"{path}:1: a header begins with #pragma once"
            for number, line in enumerate(lines, 1):
                found = INCLUDE.match(line)
                if not found:
                    continue
                quote, name = found.groups()
                vendor = list(check_vendor(path, name))
                is_vendor = any(re.fullmatch(header, name) for header, _ in VENDORS)
                ours = check_ours(root, path, room_of(path), name) if quote == '"' and not is_vendor else ()
                for breach in (*vendor, *ours):
                    yield f"{path}:{number}: {breach}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    found = list(breaches(root))
    for breach in found:
        print(breach)
    if not found:
        print("includes keep to the rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
