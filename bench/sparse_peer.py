#!/usr/bin/env python3
"""rowmill against SciPy on one sparse file, interleaved: seconds of whole processes (SciPy's without starting Python).

usage: sparse_peer.py ROWMILL FOLDER [--rounds N] [--options "…"]

Makes FOLDER/sparse.h5ad, 200,000 × 2,000 float32 of which 2% are stored (CSR), if it is not there. Needs NumPy, SciPy
and h5py.
"""
import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

import h5py
import numpy as np
import scipy.sparse


def make(path, rows=200_000, columns=2_000, density=0.02):
    random = np.random.default_rng(1)
    counts = random.binomial(columns, density, rows)
    pointers = np.concatenate([[0], np.cumsum(counts)])
    indices = np.concatenate([np.sort(random.choice(columns, n, replace=False)) for n in counts])
    values = np.log1p(random.poisson(2, pointers[-1]) + 1)
    with h5py.File(path, "w") as f:
        group = f.create_group("X")
        group.attrs["encoding-type"], group.attrs["encoding-version"] = "csr_matrix", "0.1.0"
        group.attrs["shape"] = np.array([rows, columns])
        group["data"], group["indices"], group["indptr"] = values.astype("f4"), indices.astype("i4"), pointers.astype("i8")


def load(path):
    with h5py.File(path) as f:
        group = f["X"]
        parts = (group["data"][:], group["indices"][:], group["indptr"][:])
        return scipy.sparse.csr_matrix(parts, shape=tuple(group.attrs["shape"]))


def scipy_gram(path):
    x = load(path)
    return (x.T @ x).toarray()


def scipy_stats(path):
    x = load(path)
    mean = np.asarray(x.mean(axis=0, dtype="f8")).ravel()
    second = np.asarray(x.multiply(x).mean(axis=0, dtype="f8")).ravel()
    return mean, second - mean**2, x.min(axis=0).toarray(), x.max(axis=0).toarray()


def peer(job, path):
    """In a process of its own: wall seconds, seconds of processors, MiB."""
    wall, used = time.perf_counter(), time.process_time()
    {"gram": scipy_gram, "stats": scipy_stats}[job](path)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.perf_counter() - wall, time.process_time() - used, most)


def measure(command):
    """Wall seconds, seconds of processors, MiB of a whole process."""
    wall = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{command} failed: {status}")
    return time.perf_counter() - wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    if sys.argv[1] == "--peer":
        return peer(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("rowmill")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--options", default="--threads 2")
    chosen = parser.parse_args()
    path, out = os.path.join(chosen.folder, "sparse.h5ad"), os.path.join(chosen.folder, "sparse_out.h5")
    if not os.path.exists(path):
        make(path)
    for job in ("gram", "stats"):
        ours, theirs = [], []
        for _ in range(chosen.rounds):
            ours.append(measure([chosen.rowmill, job, path, "-o", out, "--overwrite", *chosen.options.split()]))
            told = subprocess.run([sys.executable, __file__, "--peer", job, path], capture_output=True, text=True, check=True)
            theirs.append(tuple(float(word) for word in told.stdout.split()))
        for who, runs in (("rowmill", ours), ("SciPy", theirs)):
            wall, used, most = (statistics.median(column) for column in zip(*runs))
            print(f"{job} {who}: {wall:.2f} s, {used:.2f} s of processors, {most:.0f} MiB")
        for place, what in enumerate(("wall", "processors")):
            ratios = [b[place] / a[place] for a, b in zip(ours, theirs)]
            print(f"{job}, {what}: SciPy takes {statistics.median(ratios):.2f} times as long ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
