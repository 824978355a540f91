#!/usr/bin/env python3
"""Reads every entry of a corpus of real files with rowmill-io-dump and compares with the corpus' manifest.

usage: check_corpus.py DUMP_TOOL CORPUS_FOLDER [--only SUBSTRING] [--block-rows N] [--sanitized]

Exit 77 (skipped) where the corpus is not there. Classes as in the manifest: ok: the numbers; must-error: exit 2 or 3;
policy: either; no-crash: neither signal nor hang. An ok entry that needs a filter may be refused with the filter's id.
"""
import argparse
import json
import os
import resource
import subprocess
import sys

FORMATS = {
    "hdf5": "hdf5", "npy": "npy", "any": "auto", "cf": "netcdf", "matlab": "matlab", "matlab_sparse": "matlab",
    "csr": "anndata", "csc": "anndata", "10x": "10x", "pandas_fixed": "pandas",
}


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def numbers(values):
    return [float(v) for v in values]


def same(a, b, tolerance=0.0):
    return a == b or (a != a and b != b) or abs(a - b) <= tolerance


def compare(out, expected):
    want = expected["columns"]
    if [out["rows"], out["columns"]] != expected["view_shape"]:
        return f"shape {out['rows']} x {out['columns']} for {expected['view_shape']}"
    for j in range(min(64, expected["view_shape"][1])):
        n = want["n"][j]
        if out["n"][j] != n or out["nan"][j] != want["nan"][j]:
            return f"column {j}: count {out['n'][j]}, missing {out['nan'][j]}"
        if n == 0:
            continue
        for key in ("min", "max"):
            if not same(float(out[key][j]), float(want[key][j])):
                return f"column {j}: {key} {out[key][j]} for {want[key][j]}"
        mean, got = float(want["mean"][j]), float(out["mean"][j])
        if not same(mean, got, 1e-12 * float(want["abs_sum"][j]) / n + 4e-16 * abs(mean)):
            return f"column {j}: mean {got!r} for {mean!r}"
    return None


def judge(entry, run):
    expected, cls = entry["expected"], entry["expected"]["cls"]
    if run is None:
        return "no answer in time"
    if run.returncode < 0 or run.returncode >= 128:
        return f"signal: exit {run.returncode}"
    if cls == "no-crash":
        return None
    if run.returncode in (2, 3):
        if len(run.stderr.splitlines()) != 1:
            return "not one line of error"
        if cls in ("must-error", "policy"):
            return None
        ids = [str(i) for i in expected.get("needs_filters") or []]
        if any(i in run.stderr for i in ids):
            return None
        return run.stderr.strip()
    if run.returncode:
        return f"exit {run.returncode}: {run.stderr.strip()[-200:]}"
    if cls == "must-error":
        return "a result, where there is none"
    if "columns" not in expected:
        return None
    return compare(json.loads(run.stdout), expected)


def one_of_each_kind(entries):
    """All that are damaged or hostile; of those that are well, which all are read as released, one of each kind."""
    seen, chosen = set(), []
    for entry in entries:
        kind = (entry["view"], *entry["kind"])
        if entry["expected"]["cls"] != "ok" or kind not in seen:
            chosen.append(entry)
        seen.add(kind)
    return chosen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--block-rows", default="0")
    parser.add_argument("--sanitized", action="store_true",
                        help="the tool reserves terabytes of addresses and is slow: no limit on them, and more time")
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    manifest = os.path.join(args.folder, "manifest.json")
    if not os.path.exists(manifest):
        print(f"skipped: no corpus at {args.folder}")
        return 77
    program = os.path.abspath(args.program)
    with open(manifest, encoding="utf-8") as f:
        entries = json.load(f)["entries"]
    if args.sanitized:
        entries = one_of_each_kind(entries)
    passed = failed = skipped = 0
    seconds = 240 if args.sanitized else 60  # a slow tool, on a machine that may be busy
    ways = {}
    for entry in entries:
        view, kind = entry["view"], entry["kind"]
        name = f"{entry['file']}:{entry['dataset']} ({view})"
        if args.only not in name:
            continue
        form, extra = FORMATS.get(view), []
        if view == "transposed":
            form, extra = ("loom", []) if "loom" in kind else ("hdf5", ["--row-axis", "1"])
        if form is None:
            skipped += 1
            continue
        path = os.path.join(args.folder, "files", entry["file"])
        dataset = entry["dataset"] if view not in ("npy", "any") else ""
        target = os.path.basename(path) + (":/" + dataset.lstrip("/") if dataset else "")
        command = [program, target, "--format", form, "--block-rows", args.block_rows, *extra]
        try:
            run = subprocess.run(command, cwd=os.path.dirname(path), capture_output=True, text=True, errors="replace",
                                 timeout=seconds, preexec_fn=None if args.sanitized else limits, check=False)
        except subprocess.TimeoutExpired:
            run = None
        why = judge(entry, run)
        if why:
            failed += 1
            print(f"FAIL {entry['id']} {name} [{entry['expected']['cls']}; {', '.join(kind)}]: {why}")
        else:
            passed += 1
            if run.returncode == 0:
                way = json.loads(run.stdout)["way"]
                ways[way] = ways.get(way, 0) + 1
            if args.v:
                print(f"ok   {entry['id']} {name}: {(run.stderr or json.loads(run.stdout)['way']).strip()[:300]}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped; read by: {ways}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
