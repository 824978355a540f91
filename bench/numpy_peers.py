#!/usr/bin/env python3
"""What people would run instead of rowmill: NumPy and h5py in blocks, as an expert would write it.

  numpy_peers.py FILE [--dataset X] [--job stats|gram] [--threads 2 | --processes 2]

Threads: Python threads for stats, those of NumPy's BLAS for gram. Processes: a range of rows for each, one BLAS thread
in each (the way round h5py's lock). Prints one line of JSON: seconds without starting Python, MiB at most (with
processes: of all), and the greatest mean or entry, for a look at whether it is right.
Needs h5py and NumPy; threadpoolctl too for --processes. Run it with GLIBC_TUNABLES=glibc.malloc.hugetlb=1: page faults
are dear on virtual machines.
"""
import argparse
import json
import multiprocessing
import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np

BLOCK_ROWS = {"stats": 2048, "gram": 16384}


class Rows:
    """Blocks of a part of a data set's rows as float32, each thread with a buffer of its own."""

    def __init__(self, path, name, block_rows, part=0, parts=1):
        self.data = h5py.File(path, "r")[name]
        self.block_rows = block_rows
        blocks = -(-self.data.shape[0] // block_rows)
        self.starts = range(blocks * part // parts * block_rows, blocks * (part + 1) // parts * block_rows, block_rows)
        self.local = threading.local()

    def block(self, first):
        rows = min(self.block_rows, self.data.shape[0] - first)
        if not hasattr(self.local, "buffer"):
            self.local.buffer = np.empty((self.block_rows, self.data.shape[1]), np.float32)
        self.data.read_direct(self.local.buffer, np.s_[first : first + rows], np.s_[0:rows])
        return self.local.buffer[:rows]


def stats(rows, threads):
    shift = rows.block(0).mean(axis=0, dtype=np.float64).astype(np.float32)

    def one_block(first):
        x = rows.block(first)
        least, most = x.min(axis=0), x.max(axis=0)
        y = x - shift
        return y.sum(axis=0), np.einsum("ij,ij->j", y, y), least, most

    columns = rows.data.shape[1]
    total, squares = np.zeros(columns), np.zeros(columns)
    least, most = np.full(columns, np.inf, np.float32), np.full(columns, -np.inf, np.float32)
    with ThreadPoolExecutor(threads) as pool:
        for s, q, low, high in pool.map(one_block, rows.starts):
            total += s
            squares += q
            np.minimum(least, low, out=least)
            np.maximum(most, high, out=most)
    return total, squares, least, most, shift


def gram(rows):
    product = np.zeros((rows.data.shape[1],) * 2)
    for first in rows.starts:
        x = rows.block(first)
        product += x.T @ x  # SYRK: NumPy sees that both are one matrix
    return product


def in_process(task):
    from threadpoolctl import threadpool_limits

    args, part = task
    with threadpool_limits(1):
        rows = Rows(args.file, args.dataset, BLOCK_ROWS[args.job], part, args.processes)
        return stats(rows, 1) if args.job == "stats" else gram(rows)


def greatest(args, parts):
    if args.job == "gram":
        return float(sum(parts).max())
    rows = h5py.File(args.file, "r")[args.dataset].shape[0]
    return float((sum(p[0] for p in parts) / rows + parts[0][4]).max())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--dataset", default="X")
    parser.add_argument("--job", choices=["stats", "gram"], default="stats")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processes", type=int, default=1)
    args = parser.parse_args()
    start = time.perf_counter()
    if args.processes > 1:
        with multiprocessing.get_context("fork").Pool(args.processes) as pool:
            parts = pool.map(in_process, [(args, part) for part in range(args.processes)], 1)
    else:
        rows = Rows(args.file, args.dataset, BLOCK_ROWS[args.job])
        parts = [stats(rows, args.threads) if args.job == "stats" else gram(rows)]
    answer = greatest(args, parts)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if args.processes > 1:
        peak += args.processes * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"job": args.job, "seconds": round(seconds, 3), "MiB": peak // 1024, "greatest": answer}))


if __name__ == "__main__":
    main()
