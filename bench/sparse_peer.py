#!/usr/bin/env python3
"""rowmill against SciPy on one sparse file, interleaved: seconds of whole processes (SciPy's without starting Python).

usage: sparse_peer.py ROWMILL FOLDER [--rounds N] [--options "…"]

Makes FOLDER/sparse.h5ad, 200,000 × 2,000 float32 of which 2% are stored (CSR), if it is not there. Needs NumPy, SciPy
and h5py.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
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


def scipy_cov(path):
    x = load(path)
    mean = np.asarray(x.mean(axis=0, dtype="f8")).ravel()
    product = (x.T @ x).toarray().astype("f8")
    product -= x.shape[0] * np.outer(mean, mean)
    product /= x.shape[0] - 1
    return product


def scipy_stats(path):
    x = load(path)
    mean = np.asarray(x.mean(axis=0, dtype="f8")).ravel()
    second = np.asarray(x.multiply(x).mean(axis=0, dtype="f8")).ravel()
    return mean, second - mean**2, x.min(axis=0).toarray(), x.max(axis=0).toarray()


def peer(job, path):
    """In a process of its own: wall seconds, seconds of processors, MiB."""
    wall, used = time.perf_counter(), time.process_time()
    {"gram": scipy_gram, "cov": scipy_cov, "stats": scipy_stats}[job](path)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.perf_counter() - wall, time.process_time() - used, most)


def measure(command):
    """Wall seconds, seconds of processors, MiB of a whole process (as it says itself: wait4's outlive exec)."""
    wall = time.perf_counter()
    with tempfile.TemporaryFile() as told:
        child = subprocess.Popen([*command, "--json"], stdout=told, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"{command} failed: {status}")
        seconds = time.perf_counter() - wall
        told.seek(0)
        return seconds, usage.ru_utime + usage.ru_stime, json.load(told)["memory"]["peak"] / 2**20


def main():
    if sys.argv[1] == "--peer":
        return peer(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("rowmill")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--options", default="")
    chosen = parser.parse_args()
    path, out = os.path.join(chosen.folder, "sparse.h5ad"), os.path.join(chosen.folder, "sparse_out.h5")
    if not os.path.exists(path):
        make(path)
    for job in ("stats", "gram", "cov"):
        ours, theirs = [], []
        for _ in range(chosen.rounds):
            ours.append(measure([chosen.rowmill, job, path, "-o", out, "--overwrite", *chosen.options.split()]))
            told = subprocess.run([sys.executable, __file__, "--peer", job, path], capture_output=True, text=True, check=True)
            theirs.append(tuple(float(word) for word in told.stdout.split()))
        for who, runs in (("rowmill", ours), ("SciPy", theirs)):
            wall, used, most = zip(*runs)
            times = f"{statistics.median(wall):.2f} s, {statistics.median(used):.2f} s of processors"
            print(f"{job} {who}: {times}, {max(most):.0f} MiB at most")
        for place, what in enumerate(("wall", "processors")):
            of_medians = statistics.median(b[place] for b in theirs) / statistics.median(a[place] for a in ours)
            ratios = [b[place] / a[place] for a, b in zip(ours, theirs)]
            print(f"{job}, {what}: SciPy takes {of_medians:.2f} times as long ({min(ratios):.2f} to {max(ratios):.2f} over rounds)")


if __name__ == "__main__":
    main()
