#!/usr/bin/env python3
"""check_spills.py BUILD: do the kernels of librowmill_cuda.so keep their values in registers?

The assembler itself refuses kernels that spill registers or keep arrays in local memory, as long as it is told to. This
checks that every CUDA source of the module in BUILD is compiled so, that the module holds kernels, and that this compiler
does refuse a kernel that must spill. Says how many kernels there are; exits 1 if there is none, or one unchecked.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

FLAGS = {"-warn-spills", "-warn-lmem-usage", "-Werror"}

# two hundred sums at once do not fit into 32 registers
SPILLING = """
__global__ void __launch_bounds__(1024, 2) must_spill(const double* from, double* to) {
  double sums[200];
#pragma unroll
  for (int k = 0; k < 200; ++k) sums[k] = from[k];
  for (int i = 0; i < 1000; ++i) {
#pragma unroll
    for (int k = 0; k < 200; ++k) sums[k] = sums[k] * from[i] + sums[(k + 7) % 200];
  }
#pragma unroll
  for (int k = 0; k < 200; ++k) to[k] = sums[k];
}
"""


def fail(message):
    print(f"check_spills.py: {message}", file=sys.stderr)
    sys.exit(1)


def assembler_flags(command):
    """All flags that a command line of nvcc hands to ptxas."""
    flags = set()
    for word in command:
        match = re.match(r"(?:-Xptxas|--ptxas-options)=(.*)", word)
        if match:
            flags.update(match.group(1).split(","))
    return flags


def cuda_commands(build):
    """Source and command line of each CUDA source that goes into the module."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        command = shlex.split(entry["command"])
        if entry["file"].endswith(".cu") and "-Drowmill_cuda_EXPORTS" in command:
            yield entry["file"], command


def launchers(symbols):
    """The host functions that launch kernels, by name: in symbols of theirs, or of variables in them if inlined."""
    for length, rest in re.findall(r"(?<=[A-Z])(\d+)(__device_stub__\S+)", symbols):
        yield rest[: int(length)]


def refuses_spills(command):
    """Compiles a kernel that must spill as a source of ours is compiled; returns nvcc's word if it is refused."""
    compiler = next(i for i, word in enumerate(command) if pathlib.Path(word).name == "nvcc")
    keep = [w for w in command[compiler:] if re.match(r"-Xptxas|--ptxas-options|--generate-code|-gencode|-arch|-O3", w)]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "must_spill.cu"
        source.write_text(SPILLING)
        run = subprocess.run([command[compiler], *keep, "-c", str(source), "-o", str(source.with_suffix(".o"))],
                             capture_output=True, text=True, check=False)
    return run.returncode != 0 and "spilled" in run.stderr + run.stdout


def main():
    if len(sys.argv) != 2:
        fail("usage: check_spills.py BUILD")
    build = pathlib.Path(sys.argv[1])
    commands = list(cuda_commands(build))
    if not commands:
        fail("no CUDA source is compiled for the module")
    for source, command in commands:
        missing = FLAGS - assembler_flags(command)
        if missing:
            fail(f"{source} is compiled without {' '.join(sorted(missing))}")
    symbols = subprocess.run(["nm", str(build / "bin/librowmill_cuda.so")], capture_output=True, text=True, check=True)
    kernels = len(set(launchers(symbols.stdout)))
    if kernels == 0:
        fail("the module holds no kernel")
    if not refuses_spills(commands[0][1]):
        fail("the compiler takes a kernel that spills, although it is told not to")
    print(f"{kernels} kernels from {len(commands)} sources keep to registers")


if __name__ == "__main__":
    main()
