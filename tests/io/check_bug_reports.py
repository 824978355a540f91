#!/usr/bin/env python3
"""Mills the inputs of a list of public bug reports of other programs, and compares with what the list says is right.

usage: check_bug_reports.py ROWMILL CORPUS_FOLDER [--mpiexec MPIEXEC] [--only B21] [--sanitized] [-v]

Exit 77 (skipped) without the corpus, h5py or NumPy. What has no command yet (PCA, k-means, results as halves) is
checked by what it is made of: mean, std, covariance. --sanitized leaves out what is too large for a slow program.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    # another interpreter may come first in PATH than the one that the system's packages belong to
    if sys.executable != "/usr/bin/python3" and os.access("/usr/bin/python3", os.X_OK):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("skipped: python3-h5py or python3-numpy is not installed")
    sys.exit(77)


class Result:
    """What a command answered: `data` are the data sets of its result, flat."""

    def __init__(self, done, out):
        self.code, self.stdout = done.returncode, done.stdout
        self.lines = [line for line in done.stderr.splitlines() if line.strip()]
        self.data, self.told = {}, {}
        self.has_file = os.path.exists(out)
        if self.code == 0:
            self.told = json.loads(done.stdout)
            with h5py.File(out, "r") as f:
                self.data = {name: np.asarray(f[name][()]) for name in f if f[name].dtype.kind == "f"}


class Reports:
    def __init__(self, args, folder):
        self.program, self.bugs = os.path.abspath(args.program), os.path.join(args.corpus, "bugs")
        self.files = os.path.join(args.corpus, "files", "open")
        self.mpiexec, self.sanitized, self.folder = args.mpiexec, args.sanitized, folder
        self.entry, self.runs, self.failed = "", 0, {}

    def check(self, condition, what):
        if not condition:
            self.failed.setdefault(self.entry, []).append(what)

    def mill(self, job, *words, ranks=0, cwd=None):
        self.runs += 1
        out = os.path.join(self.folder, f"{self.runs}.h5")
        command = [self.program, job, *words, "-o", out, "--json", "--progress", "none"]
        if ranks:
            command = [self.mpiexec, "-q", "--oversubscribe", "-n", str(ranks), *command]
        env = dict(os.environ, HDF5_PLUGIN_PATH="")
        done = subprocess.run(command, cwd=cwd or self.bugs, capture_output=True, text=True, timeout=300, env=env, check=False)
        return Result(done, out)

    def expect(self, job, *words, ranks=0, cwd=None, tolerance=1e-12, **wanted):
        """Each data set as far as it is given, relative to what is right."""
        got = self.mill(job, *words, ranks=ranks, cwd=cwd)
        where = " ".join([job, *words]) + (f" on {ranks} ranks" if ranks else "")
        self.check(got.code == 0, f"{where}: exit {got.code}: {' '.join(got.lines)[:200]}")
        for name, want in wanted.items():
            want = np.ravel(np.asarray(want, "f8"))
            have = np.ravel(got.data.get(name, np.empty(0)))
            fits = len(have) >= len(want) and np.allclose(have[: len(want)], want, rtol=tolerance, atol=tolerance * np.max(np.abs(want)))
            self.check(fits, f"{where}: {name} {have[:6]} for {want[:6]}")
        return got

    def refused(self, job, *words, says=(), codes=(3,), ranks=0, cwd=None):
        got = self.mill(job, *words, ranks=ranks, cwd=cwd)
        where = " ".join([job, *words])
        self.check(got.code in codes, f"{where}: exit {got.code}, not {codes}")
        self.check(not got.has_file, f"{where}: an error, yet a result")
        self.check(len(got.lines) == 1, f"{where}: says {got.lines}")
        for word in says:
            self.check(any(word in line for line in got.lines), f"{where}: says {got.lines}, not '{word}'")

    # element types and sums

    def b01(self):
        self.expect("stats", "b01_half_sum.h5:/X", "--ddof", "0", sum=[1e5, 2e5], mean=[1, 2], std=[0, 2**0.5])

    def b03(self):
        got = self.expect("stats", "b03_be_u2_convert.h5:/X", sum=[133693440, 133697536])
        self.check(got.code or got.data["sum"].sum() == 34359214080, "the total of a big-endian matrix")
        self.check(got.code or got.told["bytes_read"] == 4096 * 256 * 2, "bytes are read as they are stored, by ourselves")

    def b04(self):
        self.expect("stats", "b04_half_rounding.h5:/X", mean=[0.006054677734375], min=[0.000976552734375], max=[0.015624990234375])

    def b06(self):
        self.expect("stats", "b13_twenty_million.h5:/X", sum=[2e7, 2e7], mean=[1, 1], std=[0, 0])

    def b07(self):
        std = np.array([9.745442534777016e19, 9.985093497642326e19, 9.841370107673502e19])
        self.expect("stats", "b34_float32_overflow.h5:/X", "--ddof", "0", std=std)
        self.expect("cov", "b34_float32_overflow.h5:/X", "--ddof", "0", tolerance=1e-5, std=std)

    # covariance, of which principal components are made

    def axes_of(self, got):
        """Eigenvalues, the greatest first, and the first axis."""
        if got.code:
            return np.full(4, np.nan), np.full(4, np.nan)
        values, vectors = np.linalg.eigh(got.data["covariance"])
        return values[::-1], vectors[:, -1]

    def b09(self):
        for k in (1, 1000, 10000, 100000):
            got = self.expect("cov", f"b14_pairs.h5:/d{k}", covariance=[0.5, -0.5, -0.5, 0.5], mean=[k + 0.5, k + 0.5])
            values, first = self.axes_of(got)
            self.check(np.allclose(values[:2], [1, 0], atol=1e-12), f"/d{k}: eigenvalues {values}")
            self.check(np.allclose(np.abs(first[:2]), 0.5**0.5) and first[0] * first[1] < 0, f"/d{k}: first axis {first}")

    def b10(self):
        for rows in ("10", "1", "100", "101"):
            values, _ = self.axes_of(self.expect("cov", "b15_iris101.h5:/X", "--block-rows", rows))
            self.check(np.allclose(values[:2], [2.863553397339098, 0.22737549498859233], rtol=1e-12), f"blocks of {rows}: {values}")

    def b12(self):
        values, first = self.axes_of(self.expect("cov", "b17_sparse_pca.h5ad:/X"))
        want = [1.9078788271689149, 1.2263081702106657, 0.37917889901942675, 0.15330077026765807]
        self.check(np.allclose(values, want, rtol=1e-6), f"eigenvalues {values}")
        axis = np.array([-0.4141, 0.8193, -0.1080, -0.3816])
        self.check(min(np.abs(first - axis).max(), np.abs(first + axis).max()) < 1e-4, f"first axis {first}")

    def b13(self):
        if self.sanitized:
            return
        ones = np.ones(50)
        self.expect("stats", "b22_over_2p31_elements.h5:/X", sum=5e7 * ones, mean=ones, std=0 * ones)
        self.expect("gram", "b22_over_2p31_elements.h5:/X", gram=5e7 * np.ones((50, 50)))

    # storage and files

    def b16(self):
        self.refused("stats", "b05_vds_renamed.h5:/X", says=["b05_vds_renamed.h5:/X", "b05_old_name.h5"])

    def b17(self):
        with h5py.File(os.path.join(self.bugs, "b06_column_chunks.h5"), "r") as f:
            stored = f["X"].id.get_storage_size()
        got = self.expect("stats", "b06_column_chunks.h5:/X", "--block-rows", "64", sum=[-66.43771485835896, 12.477249022223987])
        self.check(got.code or got.told["bytes_read"] == stored, f"{got.told.get('bytes_read')} bytes of {stored} were decoded")

    def b18(self):
        i, j = np.arange(33.0)[:, None], np.arange(12.0)[None]
        x = 1000 * i + 7 * j % 13 - 500
        for name in ("shuffle", "deflate"):
            self.expect("stats", f"gen/unfiltered_edge.h5:/{name}", cwd=self.files, sum=x.sum(0), min=x.min(0), max=x.max(0))

    def b20(self):
        got = self.expect("stats", "b07_scaleoffset_nan.h5:/X", sum=[10.75, 71.25])
        warned = any("warning" in line and "filter 6" in line and "lossy" in line for line in got.lines)
        self.check(warned, f"says {got.lines}")

    def b21(self):
        parts = [f"b08_part{i}.h5" for i in range(3)]
        self.refused("stats", *parts, says=["b08_part1.h5", "truncated"])
        self.refused("stats", "b08_part*.h5", says=["b08_part1.h5", "truncated"])
        if self.mpiexec:
            self.refused("stats", *parts, says=["b08_part1.h5", "truncated"], ranks=3)

    def b23(self):
        if self.sanitized:
            return
        ones = np.ones(2000)
        self.expect("stats", "b10_over_2gib.h5:/X", "--block-rows", "300000", sum=3e5 * ones, mean=ones, std=0 * ones)

    def b24(self):
        for ranks in (0, 4, 16) if self.mpiexec else (0,):
            self.expect("stats", "b11_three_rows.h5:/X", ranks=ranks, sum=[15, 18, 21, 24], count=[3] * 4)
            self.refused("stats", "b11_three_rows.h5:/empty", says=["/empty", "no rows"], ranks=ranks)

    def b25(self):
        right = {"sum": [19500] * 8, "mean": [19.5] * 8, "max": [39] * 8}
        for _ in range(5 if self.sanitized else 40):
            self.expect("stats", "b12_workers.h5:/X", "--threads", "8", "--io-threads", "8", "--block-rows", "10", **right)
        for _ in range(1 if self.sanitized else 5) if self.mpiexec else ():
            self.expect("stats", "b12_workers.h5:/X", "--block-rows", "10", ranks=8, **right)

    def b26(self):
        with open(os.path.join(os.path.dirname(self.bugs), "manifest.json"), encoding="utf-8") as f:
            entries = json.load(f)["entries"]
        for entry in entries:
            name, wanted = entry["file"], entry["expected"]
            if not re.search(r"hdf5_plugins/|gen/filters_plugin|gen/filter_tricks", name):
                continue
            path = os.path.join(os.path.dirname(self.files), name)
            words = [os.path.basename(path) + ":/" + entry["dataset"], "--ddof", "0", "--format", "hdf5"]
            got = self.mill("stats", *words, cwd=os.path.dirname(path))
            if got.code == 0:
                self.check(wanted["cls"] == "ok", f"{words[0]}: a result, where there is none")
                mean = [float(v) for v in wanted["columns"]["mean"]]
                self.check(np.allclose(np.ravel(got.data["mean"])[: len(mean)], mean, rtol=1e-10), f"{words[0]}: mean")
                continue
            ids = [str(i) for i in wanted.get("needs_filters") or []]
            self.check(got.code == 3 and len(got.lines) == 1 and words[0] in got.lines[0], f"{words[0]}: says {got.lines}")
            self.check(any(re.search(rf"filter {i} \(\w+\)", got.lines[0]) for i in ids), f"{words[0]}: says {got.lines}")

    # formats

    def b28(self):
        for job in ("stats", "cov"):
            self.expect(job, "b19_unsorted_duplicates.h5ad:/X", "--ddof", "0", std=[0.5, 2.75, 2], mean=[0.5, 2.75, 2])
        x = np.array([[1, 5.5, 0], [0, 0, 4]])
        self.expect("gram", "b19_unsorted_duplicates.h5ad:/X", gram=x.T @ x)

    def b29(self):
        for name, rows in (("mm10", [[10, 0, 0, 0, 20], [0, 30, 0, 0, 0]]), ("hg19", [[1, 0, 2], [0, 3, 0]])):
            for i, row in enumerate(rows):
                self.expect("stats", f"b20_two_genomes.h5:/{name}", "--rows", f"{i}:{i + 1}", "--ddof", "0", sum=row)
        self.refused("stats", "b20_two_genomes.h5", says=["/hg19", "/mm10"], codes=(2,))

    def b32(self):
        with h5py.File(os.path.join(self.bugs, "b26_unsigned.nc"), "r") as f, \
                h5py.File(os.path.join(self.folder, "signed.nc"), "w") as g:
            f.copy("rr", g)
            g["rr"].attrs["_Unsigned"] = "false"
            g["rr"].attrs["valid_range"] = np.array([-32768, 0], "i2")
        for i, (first, second) in enumerate([(0, 50), (np.nan, 32765), (32764.5, 16383.5)]):
            values = np.array([first, second])
            words = ["b26_unsigned.nc:/rr", "--rows", f"{i}:{i + 1}", "--ddof", "0"]
            one = self.expect("stats", *words, count=~np.isnan(values), missing=np.isnan(values))
            means = np.ravel(one.data.get("mean", [np.inf] * 2))
            self.check(np.array_equal(means, values, equal_nan=True), f"row {i}: {means}")
        # 100 and 32767 lie beyond the range, and -1 is the fill value
        self.expect("stats", os.path.join(self.folder, "signed.nc:/rr"), count=[2, 1], sum=[-3.5, -3])

    def b33(self):
        self.expect("stats", "b27_default_fill.nc:/u", count=[2, 2], missing=[4, 4], mean=[2, 3])
        got = self.expect("stats", "b27_default_fill.nc:/u", "--format", "hdf5", count=[6, 6], mean=[6.646139978924579e36] * 2)
        self.check(any("warning" in line and "fill value" in line for line in got.lines), f"as HDF5: says {got.lines}")

    def b34(self):
        view = self.expect("stats", "b28_matlab.mat:/x", sum=[3, 12, 21, 30])
        told = view.told.get("input", {})
        self.check((view.told.get("rows"), view.told.get("columns"), told.get("format")) == (3, 20, "matlab"), f"says {told}")
        stored = self.expect("stats", "b28_matlab.mat:/x", "--format", "hdf5", sum=[120, 125, 130, 135])
        told = stored.told.get("input", {})
        self.check((stored.told.get("rows"), stored.told.get("columns"), told.get("format")) == (5, 12, "hdf5"), f"says {told}")
        self.refused("stats", "b28_matlab.mat:/e", says=["empty"])
        got = self.mill("stats", "b28_matlab.mat:/e", "--format", "hdf5")
        self.check(any("empty MATLAB array" in line for line in got.lines), f"an empty array as stored: says {got.lines}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("corpus")
    parser.add_argument("--mpiexec", default="", help="without it nothing is run on several ranks")
    parser.add_argument("--only", default="")
    parser.add_argument("--sanitized", action="store_true")
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    listed = os.path.join(args.corpus, "bug_reports.md")
    if not os.path.exists(listed):
        print(f"skipped: no bug reports at {args.corpus}")
        return 77
    args.corpus = os.path.abspath(args.corpus)
    with open(listed, encoding="utf-8") as f:
        entries = re.findall(r"^\*\*(B\d+) (.*?)\*\*", f.read(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        reports = Reports(args, folder)
        for number, title in entries:
            if args.only not in number:
                continue
            reports.entry = number
            run = getattr(reports, number.lower(), None)
            if run is None:
                reports.check(False, "is not checked here")
            else:
                run()
            for what in reports.failed.get(number, []):
                print(f"FAILED {number} {title}: {what}")
            if args.v and number not in reports.failed:
                print(f"ok     {number} {title}")
    print(f"{len(entries)} reports, {reports.runs} runs, {len(reports.failed)} failed")
    return int(bool(reports.failed))


if __name__ == "__main__":
    sys.exit(main())
