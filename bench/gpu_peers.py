#!/usr/bin/env python3
"""gpu_peers.py FILE [--dataset X] [--gram RESULT] [--stats RESULT] [--json OUT]: what people would run instead on a GPU.

PyTorch with h5py: blocks of rows are read into pinned memory, copied without blocking on a stream of their own, multiplied or
reduced on another, and added up in float64; three blocks are under way. gram in TF32 and in bf16 (with float32 results where
this PyTorch can), stats as float32 values added up in float64. Prints seconds, GB/s and the greatest error against a float64 pass on the same GPU;
with results of rowmill on the same file also their errors. Times are medians of three, from opening the file to the result
on the host, without starting Python and after a first block that is not counted. Exit 77, with the reason, where it cannot
run.
"""
import argparse
import json
import statistics
import sys
import time

BLOCK_BYTES = 64 << 20
SLOTS = 3
ROUNDS = 3


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


try:
    import h5py
    import numpy as np
    import torch
except ImportError as error:
    skip("%s is not installed" % error.name)


class Blocks:
    """Blocks of rows on the device, read ahead through pinned memory. Iterate once."""

    def __init__(self, dataset):
        self.dataset = dataset
        rows, columns = dataset.shape
        self.block_rows = max(1, min(rows, BLOCK_BYTES // (columns * dataset.dtype.itemsize)))
        kind = torch.from_numpy(np.empty(0, dataset.dtype.newbyteorder("="))).dtype
        self.pinned = [torch.empty((self.block_rows, columns), dtype=kind, pin_memory=True) for _ in range(SLOTS)]
        self.device = [torch.empty((self.block_rows, columns), dtype=kind, device="cuda") for _ in range(SLOTS)]
        self.copying = torch.cuda.Stream()
        self.used = [torch.cuda.Event() for _ in range(SLOTS)]  # the block is no longer needed
        self.copied = [torch.cuda.Event() for _ in range(SLOTS)]

    def __iter__(self):
        computing = torch.cuda.current_stream()
        rows = self.dataset.shape[0]
        for number, first in enumerate(range(0, rows, self.block_rows)):
            slot, count = number % SLOTS, min(self.block_rows, rows - first)
            if number >= SLOTS:
                self.copied[slot].synchronize()  # the pinned memory may be written again
            self.dataset.read_direct(self.pinned[slot].numpy(), np.s_[first : first + count], np.s_[:count])
            with torch.cuda.stream(self.copying):
                if number >= SLOTS:
                    self.copying.wait_event(self.used[slot])
                self.device[slot][:count].copy_(self.pinned[slot][:count], non_blocking=True)
                self.copied[slot].record()
            computing.wait_event(self.copied[slot])
            yield self.device[slot][:count]
            self.used[slot].record(computing)


def product(block, mode):
    if mode == "fp64":
        wide = block.double()
        return wide.T @ wide
    if mode == "bf16":
        narrow = block.to(torch.bfloat16)
        try:
            return torch.mm(narrow.T, narrow, out_dtype=torch.float32)
        except (TypeError, RuntimeError):  # an older PyTorch rounds the result to bf16, too
            return narrow.T @ narrow
    torch.backends.cuda.matmul.allow_tf32 = mode == "tf32"
    narrow = block.float()
    return narrow.T @ narrow


def gram(blocks, mode):
    columns = blocks.dataset.shape[1]
    total = torch.zeros((columns, columns), dtype=torch.float64, device="cuda")
    for block in blocks:
        total += product(block, mode)
    return {"gram": total.cpu().numpy()}


def stats(blocks, mode):
    rows, columns = blocks.dataset.shape
    total, squares = (torch.zeros(columns, dtype=torch.float64, device="cuda") for _ in range(2))
    missing = torch.zeros(columns, dtype=torch.int64, device="cuda")
    low, high = None, None
    for block in blocks:
        if block.dtype.is_floating_point:
            missing += block.isnan().sum(0)
        smallest, largest = torch.aminmax(block, dim=0)
        low = smallest if low is None else torch.minimum(low, smallest)
        high = largest if high is None else torch.maximum(high, largest)
        if mode == "fp64":
            wide = block.double()
            total += wide.sum(0)
            squares += (wide * wide).sum(0)
        else:  # float32 values, added up in float64
            narrow = block.float()
            total += narrow.sum(0, dtype=torch.float64)
            squares += (narrow * narrow).sum(0, dtype=torch.float64)
    mean = total / rows
    return {
        "mean": mean.cpu().numpy(),
        "variance": ((squares - rows * mean * mean) / (rows - 1)).cpu().numpy(),
        "min": low.cpu().numpy(),
        "max": high.cpu().numpy(),
    }


def two_pass_stats(blocks_of):
    """The reference: means first, then squares about them, in float64."""
    rows, columns = blocks_of().dataset.shape
    total, squares = (torch.zeros(columns, dtype=torch.float64, device="cuda") for _ in range(2))
    for block in blocks_of():
        total += block.double().sum(0)
    mean = total / rows
    for block in blocks_of():
        squares += ((block.double() - mean) ** 2).sum(0)
    return {"mean": mean.cpu().numpy(), "variance": (squares / (rows - 1)).cpu().numpy()}


def error_of(found, exact):
    """Greatest error: of a product relative to sqrt(g_ii g_jj), of moments relative to their value."""
    if "gram" in exact:
        scale = np.sqrt(np.diag(exact["gram"]))
        return {"gram": float(np.max(np.abs(found["gram"] - exact["gram"]) / np.outer(scale, scale)))}
    return {
        name: float(np.max(np.abs(found[name] - exact[name]) / np.maximum(np.abs(exact[name]), 1e-300)))
        for name in ("mean", "variance")
    }


def measured(path, dataset, job, mode):
    seconds = []
    for number in range(ROUNDS + 1):
        start = time.perf_counter()
        with h5py.File(path, "r") as file:
            source = file[dataset]
            blocks = Blocks(source)
            if number == 0:  # loads code, not counted
                for block in blocks:
                    product(block, mode) if job is gram else block.double().sum(0)
                    break
                torch.cuda.synchronize()
                continue
            found = job(blocks, mode)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), found


def result_of(path, names):
    with h5py.File(path, "r") as file:
        return {name: file[name][()] for name in names}, float(file.attrs["seconds"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--dataset", default="X")
    parser.add_argument("--gram", help="rowmill's result on the same file")
    parser.add_argument("--stats", help="rowmill's result on the same file")
    parser.add_argument("--json")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        skip("PyTorch %s finds no GPU" % torch.__version__)

    with h5py.File(options.file, "r") as file:
        total_bytes = file[options.dataset].size * file[options.dataset].dtype.itemsize
    lines = []

    def say(job, who, seconds, error):
        lines.append({"job": job, "who": who, "seconds": seconds, "gb_per_s": total_bytes / seconds / 1e9, "error": error})
        words = ", ".join("%s %.2g" % pair for pair in error.items())
        print("%-6s %-14s %8.3f s %8.2f GB/s  error %s" % (job, who, seconds, total_bytes / seconds / 1e9, words), flush=True)

    def blocks_of():
        return Blocks(h5py.File(options.file, "r")[options.dataset])

    for job, modes, ours in ((gram, ("tf32", "bf16"), options.gram), (stats, ("fp32",), options.stats)):
        exact = gram(blocks_of(), "fp64") if job is gram else two_pass_stats(blocks_of)
        for mode in modes:
            seconds, found = measured(options.file, options.dataset, job, mode)
            say(job.__name__, "PyTorch " + mode, seconds, error_of(found, exact))
        if ours:
            found, seconds = result_of(ours, exact)
            say(job.__name__, "rowmill", seconds, error_of(found, exact))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(), "figures": lines}, file, indent=1)


if __name__ == "__main__":
    main()
