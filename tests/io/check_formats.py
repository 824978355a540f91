#!/usr/bin/env python3
"""Writes small files as other programs write them, mills them, and compares with answers that are known exactly.

usage: check_formats.py ROWMILL

Exit 77 (skipped) without h5py and NumPy. Each file is one rule of a format; sparse files are compared with dense twins.
"""
import json
import os
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

NAN = float("nan")
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


class Mill:
    def __init__(self, program, folder):
        self.program, self.folder, self.runs = program, folder, 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words):
        return subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, timeout=120)

    def result(self, job, target, *options):
        """The result's data sets, or None with a failure noted."""
        self.runs += 1
        out = self.path(f"out{self.runs}.h5")
        done = self.run(job, target, "-o", out, "--progress", "none", *options)
        if done.returncode != 0:
            check(False, f"{job} {target} {options}: exit {done.returncode}: {done.stderr.strip()}")
            return None
        with h5py.File(out, "r") as f:
            result = {name: f[name][()] for name in f}
        result["stderr"] = done.stderr
        return result

    def expect_matrix(self, target, dense, *options, names=None):
        """Counts, sums, minima and maxima of small numbers are exact, so that they tell one matrix from another."""
        dense = np.asarray(dense, "f8")
        got = self.result("stats", target, "--ddof", "0", *options)
        if got is None:
            return None
        where = f"{target} {' '.join(options)}"
        missing = np.isnan(dense)
        if np.size(got["count"]) != dense.shape[1]:
            check(False, f"{where}: {np.size(got['count'])} columns for {dense.shape[1]}")
            return got
        check(np.array_equal(np.ravel(got["count"]), (~missing).sum(0)), f"{where}: count {got['count']}")
        check(np.array_equal(np.ravel(got["missing"]), missing.sum(0)), f"{where}: missing {got['missing']}")
        for name, want in (("sum", np.nansum(dense, 0)), ("min", np.nanmin(dense, 0)), ("max", np.nanmax(dense, 0))):
            check(np.allclose(np.ravel(got[name]), want, rtol=1e-14, atol=1e-300), f"{where}: {name} {got[name]} for {want}")
        # rows in their order: the first and last alone
        for first, last in ((0, 1), (len(dense) - 1, len(dense))):
            if missing[first].any():
                continue
            one = self.result("stats", target, "--ddof", "0", "--rows", f"{first}:{last}", *options)
            if one is not None:
                check(np.allclose(np.ravel(one["sum"]), dense[first], rtol=1e-14), f"{where}: row {first} is {one['sum']}")
        if names is not None:
            found = [n.decode() if isinstance(n, bytes) else str(n) for n in np.ravel(got.get("column_names", []))]
            check(found == list(names), f"{where}: names {found}")
        return got

    def expect_refused(self, target, words, *options, code=3):
        out = self.path("refused.h5")
        done = self.run("stats", target, "-o", out, *options)
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        check(done.returncode == code and not os.path.exists(out), f"{target}: exit {done.returncode}, not {code}")
        check(len(lines) == 1 and words in lines[0], f"{target}: says {lines}, not '{words}'")


def text(group, name, values):
    group.create_dataset(name, data=np.array(values, "S"))


def write_sparse(group, dense, index="i4", pointers="i4", by_columns=False, **settings):
    """data, indices and indptr of AnnData and 10x."""
    lines = np.asarray(dense).T if by_columns else np.asarray(dense)
    rows = [np.flatnonzero(line) for line in lines]
    group["data"] = np.concatenate([line[at] for line, at in zip(lines, rows)]).astype(lines.dtype)
    group.create_dataset("indices", data=np.concatenate(rows).astype(index), **settings)
    group.create_dataset("indptr", data=np.cumsum([0] + [len(at) for at in rows]).astype(pointers), **settings)


def anndata_group(file, name, dense, kind="csr_matrix", **settings):
    group = file.create_group(name)
    group.attrs["encoding-type"] = kind
    group.attrs["encoding-version"] = "0.1.0"
    group.attrs["shape"] = np.array(np.shape(dense), "i8")
    write_sparse(group, dense, by_columns=kind == "csc_matrix", **settings)
    return group


def counts(random, rows, columns, share=0.2, dtype="f4"):
    return (random.integers(1, 50, (rows, columns)) * (random.random((rows, columns)) < share)).astype(dtype)


def check_anndata(mill, random):
    dense = counts(random, 60, 25)
    genes = [f"gene {j}" for j in range(25)]
    with h5py.File(mill.path("a.h5ad"), "w") as f:
        f.attrs["encoding-type"] = "anndata"
        anndata_group(f, "X", dense)
        anndata_group(f, "layers/columns", dense, "csc_matrix", index="i8", pointers="i8")
        anndata_group(f, "layers/gzip", dense, index=">i8", pointers=">i4", chunks=True, compression="gzip")
        anndata_group(f, "raw/X", dense[:, :10], index="u2", pointers="u8")
        f["layers/dense"] = dense
        f["obsm/X_pca"] = dense[:, :2]
        f["obs/n"] = np.arange(60)
        var = f.create_group("var")
        var.attrs["_index"] = "genes"
        var.create_dataset("genes", data=genes, dtype=h5py.string_dtype())
        raw = f.create_group("raw/var")
        raw.attrs["_index"] = "_index"
        text(raw, "_index", genes[:10])
    mill.expect_matrix("a.h5ad", dense, names=genes)
    mill.expect_matrix("a.h5ad:/X", dense, "--format", "anndata", names=genes)
    mill.expect_matrix("a.h5ad:/X/", dense)
    mill.expect_matrix("a.h5ad:/layers/columns", dense, names=genes)
    mill.expect_matrix("a.h5ad:/layers/gzip", dense)
    mill.expect_matrix("a.h5ad:/layers/dense", dense, names=genes)
    mill.expect_matrix("a.h5ad:/raw/X", dense[:, :10], names=genes[:10])
    mill.expect_matrix("a.h5ad:/X/data", dense[dense != 0].reshape(-1, 1))
    mill.expect_matrix("a.h5ad:/X", dense.T, "--row-axis", "1")
    mill.expect_matrix("a.h5ad:/layers/columns", dense.T, "--row-axis", "1")
    mill.expect_matrix("a.h5ad", dense[:, [7, 3, 4, 5]], "--columns", "7,3:6", names=[genes[j] for j in (7, 3, 4, 5)])
    mill.expect_matrix("a.h5ad", dense, "--block-rows", "7")
    mill.expect_refused("a.h5ad:/X", "group", "--format", "hdf5")
    mill.expect_refused("a.h5ad:/X", "axis", "--row-axis", "2", code=2)
    told = json.loads(mill.run("info", "a.h5ad", "--json").stdout)
    check(told["format"] == "anndata" and told["would_mill"]["format"] == "anndata", "info names AnnData")
    check(told["would_mill"]["rows"] == 60 and "by rows" in told["would_mill"]["storage"], "info tells of sparse rows")
    with h5py.File(mill.path("old.h5ad"), "w") as f:
        group = f.create_group("raw.X")
        group.attrs["h5sparse_format"] = "csr"
        group.attrs["h5sparse_shape"] = np.array(dense.shape)
        write_sparse(group, dense)
        f["raw.var"] = np.array([(g.encode(), 1.0) for g in genes], [("index", "S9"), ("n", "f4")])
        f["X"] = dense[:, :3]
    mill.expect_matrix("old.h5ad:/raw.X", dense, names=genes)
    mill.expect_matrix("old.h5ad:/X", dense[:, :3])


def check_twins(mill, random):
    """Products of sparse rows equal those of the dense twin within the bound."""
    dense = counts(random, 500, 40, 0.1)
    with h5py.File(mill.path("sparse.h5ad"), "w") as f:
        anndata_group(f, "X", dense)
    with h5py.File(mill.path("dense.h5"), "w") as f:
        f["X"] = dense
    for job, name in (("gram", "gram"), ("cov", "covariance")):
        for options in ((), ("--block-rows", "64"), ("--columns", "5:20")):
            one, other = mill.result(job, "sparse.h5ad", *options), mill.result(job, "dense.h5", *options)
            if one is None or other is None:
                continue
            scale = np.sqrt(np.outer(np.diag(other[name]), np.diag(other[name])))
            check(np.all(np.abs(one[name] - other[name]) <= 6e-5 * scale), f"{job} {options} of sparse rows and of their twin")
    x = dense.astype("f8")
    # of so few entries products are made entry by entry, else by tiles
    for share, means in ((0.02, 0), (0.02, 1000), (0.6, 0)):
        check_products(mill, random, share, means)
    exact = mill.result("gram", "sparse.h5ad", "--precision", "fp64")
    check(exact is not None and np.array_equal(exact["gram"], x.T @ x), "gram of small integers is exact")


def check_products(mill, random, share, mean):
    """The same bits however it is run, fp64 where entries are multiplied, and right beside columns with large means."""
    x = np.where(random.random((3000, 50)) < share, random.normal(1, 1, (3000, 50)), 0)
    x[:, 7] = random.normal(0, 1, 3000) + mean if mean else x[:, 7]
    x[:, 9] = 0
    x[100:200] = 0
    name = f"products{share}_{mean}.h5ad"
    with h5py.File(mill.path(name), "w") as f:
        anndata_group(f, "X", x)
    scale = np.sqrt(np.outer(np.diag(x.T @ x), np.diag(x.T @ x)))
    gram, cov, stats = (mill.result(job, name) for job in ("gram", "cov", "stats"))
    if gram is None or cov is None or stats is None:
        return
    check(np.all(np.abs(gram["gram"] - x.T @ x) <= 1e-12 * scale), f"{name}: gram")
    spread = np.outer(x.std(0), x.std(0))
    check(np.all(np.abs(cov["covariance"] - np.cov(x.T)) <= 1e-11 * spread), f"{name}: covariance")
    check(np.allclose(stats["variance"], x.var(0, ddof=1), rtol=1e-11, atol=0), f"{name}: variance")
    for options in (("--threads", "1", "--prefetch", "1"), ("--threads", "3"), ("--memory", "200MiB")):
        for job, wanted in (("gram", gram), ("cov", cov), ("stats", stats)):
            got = mill.result(job, name, *options)
            same = got is not None and all(np.array_equal(got[key], wanted[key], equal_nan=True) for key in wanted if key != "stderr")
            check(same, f"{name}: {job} {options} gives other bits")


def damaged(mill, name, change, words, shape=(3, 3)):
    with h5py.File(mill.path(name + ".h5ad"), "w") as f:
        group = f.create_group("X")
        group.attrs["encoding-type"] = "csr_matrix"
        group.attrs["shape"] = np.array(shape)
        parts = {"indptr": np.array([0, 1, 2, 3], "i4"), "indices": np.array([0, 1, 2], "i4"), "data": np.ones(3, "f4")}
        change(parts)
        for part, values in parts.items():
            if values is not None:
                group[part] = values
    mill.expect_refused(name + ".h5ad", words)


def check_damaged(mill):
    def put(part, values, dtype="i4"):
        return lambda parts: parts.update({part: None if values is None else np.array(values, dtype)})

    damaged(mill, "decreasing", put("indptr", [0, 2, 1, 3]), "row 1 ends at entry 1 before it begins")
    damaged(mill, "wrapped", put("indptr", [0, 1, 2, -(2**31)]), "write them with 64 bits")
    damaged(mill, "too_far", put("indptr", [0, 1, 2, 4]), "row 2 ends at entry 4")
    damaged(mill, "late", put("indptr", [1, 1, 2, 3]), "begins at entry 1")
    damaged(mill, "few", put("indptr", [0, 1, 3]), "3 index pointers for 3 rows")
    damaged(mill, "beyond", put("indices", [0, 1, 3]), "row 2 has a value in column 3")
    damaged(mill, "negative", put("indices", [0, -1, 2]), "row 1 has a value in column -1")
    damaged(mill, "short", put("data", [1, 1], "f4"), "3 indices and 2 values")
    damaged(mill, "fractions", put("indices", [0, 1, 2], "f8"), "no integers")
    damaged(mill, "square", put("indices", [[0, 1, 2]]), "more than one axis")
    damaged(mill, "gone", put("data", None), "/X: its values are missing")
    damaged(mill, "words", put("data", [b"a", b"b", b"c"], "S1"), "not numeric")
    damaged(mill, "negative_shape", put("indptr", [0, 1, 2, 3]), "shape makes no sense", shape=(-1, 3))
    damaged(mill, "cube", put("indptr", [0, 1, 2, 3]), "no shape of two extents", shape=(3, 3, 3))
    with h5py.File(mill.path("claims.h5ad"), "w") as f:
        group = f.create_group("X")
        group.attrs["encoding-type"] = "csr_matrix"
        group.attrs["shape"] = np.array([2**36, 3])
        for part, length in (("indptr", 2**36 + 1), ("indices", 2**40), ("data", 2**40)):
            group.create_dataset(part, (length,), "i4", chunks=(1024,))
    mill.expect_refused("claims.h5ad", "nothing was ever written")
    with open(mill.path("names.txt"), "wb") as f:
        f.write(b"secret" * 3)
    with h5py.File(mill.path("secret.h5ad"), "w") as f:
        anndata_group(f, "X", np.eye(3))
        f.create_group("obs")
        f.create_dataset("var/_index", (3,), "S6", external=[(mill.path("names.txt"), 0, 18)])
    mill.expect_matrix("secret.h5ad", np.eye(3), names=[])
    with h5py.File(mill.path("outside.h5ad"), "w") as f:
        f["X"] = h5py.ExternalLink("/tmp/elsewhere.h5", "/X")
    mill.expect_refused("outside.h5ad:/X", "external link")


def check_missing(mill):
    dense = np.array([[0, 1, 0], [2, 0, NAN], [0, 0, 3]])
    with h5py.File(mill.path("nan.h5ad"), "w") as f:
        anndata_group(f, "X", dense)
    mill.expect_matrix("nan.h5ad", dense)
    for options in ((), ("--columns", "2,1")):
        done = mill.run("gram", "nan.h5ad", *options)
        told = done.returncode == 3 and "row 1" in done.stderr and "column 2" in done.stderr
        check(told, f"a missing value of sparse rows is named: {done.stderr}")


def check_duplicates(mill):
    with h5py.File(mill.path("twice.h5ad"), "w") as f:
        group = f.create_group("X")
        group.attrs["encoding-type"] = "csr_matrix"
        group.attrs["shape"] = np.array([2, 3])
        group["data"], group["indices"], group["indptr"] = [2, 3.5, 1, 4], np.array([1, 1, 0, 2]), np.array([0, 3, 4])
    mill.expect_matrix("twice.h5ad", [[1, 5.5, 0], [0, 0, 4]])


def tenx_group(file, name, dense, features):
    group = file.create_group(name)
    write_sparse(group, dense, index="i8", pointers="i8")
    group["shape"] = np.array(np.shape(dense)[::-1], "i4")  # features × barcodes, by columns
    text(group, "barcodes", [f"AC{i}-1" for i in range(len(dense))])
    for place, names in features.items():
        text(group, place, names)


def check_tenx(mill, random):
    dense = counts(random, 40, 30, dtype="i4")
    ids, names = [f"ENSG{j:03}" for j in range(30)], [f"G{j}" for j in range(30)]
    with h5py.File(mill.path("v3.h5"), "w") as f:
        tenx_group(f, "matrix", dense, {"features/id": ids, "features/name": names})
    mill.expect_matrix("v3.h5", dense, names=names)
    mill.expect_matrix("v3.h5:/matrix", dense, "--format", "10x", names=names)
    mill.expect_refused("v3.h5:/matrix/data", "group of several", "--format", "10x")
    with h5py.File(mill.path("v2.h5"), "w") as f:
        tenx_group(f, "hg19", dense, {"genes": ids, "gene_names": names})
    mill.expect_matrix("v2.h5", dense, names=names)
    with h5py.File(mill.path("two.h5"), "w") as f:
        tenx_group(f, "hg19", dense, {"genes": ids})
        tenx_group(f, "mm10", dense[:, :5], {"genes": ids[:5]})
    mill.expect_matrix("two.h5:/mm10", dense[:, :5], names=ids[:5])
    for genome in ("/hg19 (40 x 30", "/mm10 (40 x 5"):
        mill.expect_refused("two.h5", genome, code=2)


def check_loom(mill, random):
    cells = counts(random, 33, 20)
    with h5py.File(mill.path("c.loom"), "w") as f:
        f.create_dataset("matrix", data=cells.T, chunks=(20, 64), maxshape=(20, None), compression="gzip")
        f.create_dataset("layers/twice", data=2 * cells.T)
        text(f, "row_attrs/Gene", [f"G{j}" for j in range(20)])
        text(f, "col_attrs/CellID", [f"c{i}" for i in range(33)])
    got = mill.expect_matrix("c.loom", cells, names=[f"G{j}" for j in range(20)])
    check(got is not None and "cells are rows" in got["stderr"], "loom says that cells are rows")
    mill.expect_matrix("c.loom:/layers/twice", 2 * cells, "--format", "loom")
    mill.expect_matrix("c.loom:/matrix", cells.T, "--row-axis", "1")
    mill.expect_matrix("c.loom:/matrix", cells.T, "--format", "hdf5")


def write_matlab(path, arrays):
    """arrays: name -> (MATLAB's array, class, further attributes). MATLAB's files have a user block and reversed axes."""
    with h5py.File(path, "w", userblock_size=512) as f:
        for name, (array, kind, attributes) in arrays.items():
            f[name] = np.asarray(array).T
            f[name].attrs["MATLAB_class"] = np.bytes_(kind)
            for key, value in attributes.items():
                f[name].attrs[key] = value
    with open(path, "r+b") as f:
        f.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")


def check_matlab(mill):
    a = np.arange(21.0).reshape(7, 3)
    b = np.arange(60.0).reshape(3, 4, 5, order="F")
    path = mill.path("m.mat")
    write_matlab(path, {
        "A": (a, "double", {}),
        "B": (b, "double", {}),
        "L": ((a % 2).astype("u1"), "logical", {"MATLAB_int_decode": np.int32(1)}),
        "C": (np.array([[(1, 2), (3, 4)]], [("real", "f8"), ("imag", "f8")]), "double", {}),
        "T": (np.array([[72, 105]], "u2"), "char", {"MATLAB_int_decode": np.int32(2)}),
        "E": (np.array([4, 2, 0], "u8"), "double", {"MATLAB_empty": np.uint8(1)}),
        "O": (np.array([[3707764736, 2, 1, 1, 1, 1]], "u4"), "string", {"MATLAB_object_decode": np.int32(3)})})
    sparse = np.array([[0, 1, 0, 2.0], [0, 0, 0, 0], [3, 0, 0, 4]])
    with h5py.File(path, "r+") as f:
        group = f.create_group("S")
        group.attrs["MATLAB_class"], group.attrs["MATLAB_sparse"] = np.bytes_("double"), np.uint64(3)
        write_sparse(group, sparse, index="u8", pointers="u8", by_columns=True)
        for old, new in (("indices", "ir"), ("indptr", "jc")):
            group.move(old, new)
        zeros = f.create_group("Z")
        zeros.attrs["MATLAB_class"], zeros.attrs["MATLAB_sparse"] = np.bytes_("double"), np.uint64(5)
        zeros["jc"] = np.zeros(3, "u8")
        f.create_group("struct").attrs["MATLAB_class"] = np.bytes_("struct")
        f["struct/x"] = a.T
        f["struct/x"].attrs["MATLAB_class"] = np.bytes_("double")
    mill.expect_matrix("m.mat:/A", a)
    mill.expect_matrix("m.mat:/A", a, "--format", "matlab")
    mill.expect_matrix("m.mat:/A", a.T, "--row-axis", "1")
    mill.expect_matrix("m.mat:/A", a.T, "--format", "hdf5")
    mill.expect_matrix("m.mat:/B", b.reshape(3, 20, order="F"))
    mill.expect_matrix("m.mat:/B", b.transpose(1, 0, 2).reshape(4, 15, order="F"), "--row-axis", "1")
    mill.expect_matrix("m.mat:/L", a % 2)
    mill.expect_matrix("m.mat:/struct/x", a)
    mill.expect_matrix("m.mat:/S", sparse)
    mill.expect_matrix("m.mat:/Z", np.zeros((5, 2)))
    mill.expect_refused("m.mat:/E", "empty MATLAB array")
    as_stored = mill.expect_matrix("m.mat:/E", np.array([[4], [2], [0]]), "--format", "hdf5")
    check(as_stored is None or "empty MATLAB array" in as_stored["stderr"], "an empty array read as stored is said to be one")
    mill.expect_refused("m.mat:/T", "text")
    mill.expect_refused("m.mat:/C", "complex128")
    mill.expect_refused("m.mat:/O", "MATLAB object")
    mill.expect_refused("m.mat:/struct", "name a numeric field")
    listing = mill.run("info", "m.mat").stdout
    check("matlab" in listing and "axis" not in listing.split("would mill")[0], "info names MATLAB")
    check("rows are axis 1" in mill.run("info", "m.mat:/A").stdout, "info tells which axis is rows")


def check_netcdf(mill):
    fill = 9.9692099683868690e36
    with h5py.File(mill.path("c.h5"), "w") as f:
        def variable(name, data, dtype, **attributes):
            f[name] = np.array(data).astype(dtype)
            for key, value in attributes.items():
                f[name].attrs[key] = value

        packed = [[0, -32767], [100, 3], [7, 8]]
        variable("packed", packed, ">i2", _FillValue=np.int16(-32767), scale_factor=0.01, add_offset=273.15)
        variable("rr", [[0, 100], [-1, -6], [-7, 32767]], "<i2", _FillValue=np.int16(-1), _Unsigned="true",
                 scale_factor=np.float32(0.5), valid_range=np.array([0, -6], "i2"))
        variable("signed", [[0, 100], [-1, -6], [-7, 32767]], "<i2", _FillValue=np.int16(-1), _Unsigned=np.bytes_("false"))
        variable("as_signed", [[255, 1], [254, 2]], "u1", _Unsigned="false", valid_min=np.int8(-1))
        variable("several", [[1, -9], [-99, 4], [-999, 6]], "f4", missing_value=np.array([-9, -99, -999.0]))
        variable("rounded", [[1, -999.9], [2, 3]], "f4", missing_value=-999.9)
        variable("limits", [[-5, 1], [2, 3], [4, 90]], "f8", valid_min=-1.0, valid_max=np.int32(50))
        variable("counted", [[1, 2], [3, 255]], "u1", _FillValue=np.uint8(255))
        variable("nan", [[1, NAN], [3, 4]], "f4", _FillValue=np.float32(NAN))
        variable("default", [[1, fill], [3, 4]], "f4", missing_value=np.float32(-1))
        variable("cube", np.arange(12).reshape(3, 2, 2), "i4", _FillValue=np.int32(5))
        variable("wrong", [[1, 2], [3, 4]], "f4", scale_factor="two")
        variable("odd", [[1, 2], [3, 4]], "f4", _FillValue="none", scale_factor=2.0)
    f = "c.h5:/"
    scaled = np.array([[0, NAN], [100, 3], [7, 8]]) * 0.01 + 273.15
    mill.expect_matrix(f + "packed", scaled)
    mill.expect_matrix(f + "packed", scaled, "--format", "netcdf")
    mill.expect_matrix(f + "packed", [[0, -32767], [100, 3], [7, 8]], "--format", "hdf5")
    mill.expect_matrix(f + "packed", scaled.T, "--row-axis", "1")
    mill.expect_matrix(f + "packed", scaled[:, [1]], "--columns", "1")
    mill.expect_matrix(f + "rr", [[0, 50], [NAN, 32765], [32764.5, 16383.5]])
    mill.expect_matrix(f + "signed", [[0, 100], [NAN, -6], [-7, 32767]])
    mill.expect_matrix(f + "as_signed", [[-1, 1], [NAN, 2]])
    mill.expect_matrix(f + "several", [[1, NAN], [NAN, 4], [NAN, 6]])
    mill.expect_matrix(f + "rounded", [[1, NAN], [2, 3]])
    mill.expect_matrix(f + "limits", [[NAN, 1], [2, 3], [4, NAN]])
    mill.expect_matrix(f + "counted", [[1, 2], [3, NAN]])
    mill.expect_matrix(f + "nan", [[1, NAN], [3, 4]])
    mill.expect_matrix(f + "default", [[1, NAN], [3, 4]])
    mill.expect_matrix(f + "cube", [[0, 1, 2, 3], [4, NAN, 6, 7], [8, 9, 10, 11]])
    mill.expect_refused(f + "wrong", "scale_factor")
    got = mill.expect_matrix(f + "odd", [[2, 4], [6, 8]])
    check(got is not None and "_FillValue is not applied" in got["stderr"], "an attribute of another type is said")
    for job in ("gram", "cov"):
        done = mill.run(job, f + "counted")
        check(done.returncode == 3 and "row 1, column 1 is missing (NaN or a fill value)" in done.stderr, f"{job} names the row that is marked missing: {done.stderr}")
    with h5py.File(mill.path("u.nc"), "w") as f:
        data = f.create_dataset("u", (6, 2), "f4", chunks=(2, 2), fillvalue=np.float32(fill))
        data[:2] = [[1, 2], [3, 4]]
        f["time"] = np.arange(6)
        f["time"].make_scale("time")
        data.dims[0].attach_scale(f["time"])
    never = [[1, 2], [3, 4]] + [[NAN, NAN]] * 4
    mill.expect_matrix("u.nc", never)
    got = mill.expect_matrix("u.nc:/u", np.where(np.isnan(never), np.float32(fill), never), "--format", "hdf5")
    check(got is not None and "--format netcdf" in got["stderr"], "netCDF's fill value in another view is said")


def frame(file, name, blocks, order):
    """A frame as pandas writes it: blocks of (names, values), order of all columns."""
    group = file.create_group(name)
    group.attrs["pandas_type"], group.attrs["nblocks"] = np.bytes_("frame"), np.int64(len(blocks))
    group.attrs["ndim"] = np.int64(2)
    text(group, "axis0", order)
    for i, (items, values) in enumerate(blocks):
        text(group, f"block{i}_items", items)
        values = np.asarray(values)
        group[f"block{i}_values"] = values
        group[f"block{i}_values"].attrs["transposed"] = np.uint8(1)
    return group


def check_pandas(mill, random):
    whole, parts = random.integers(-9, 9, (50, 2)), random.integers(0, 99, (50, 3)) / 4
    with h5py.File(mill.path("p.h5"), "w") as f:
        f.attrs["PYTABLES_FORMAT_VERSION"] = np.bytes_("2.1")
        frame(f, "one", [(["a", "b", "c"], parts)], ["a", "b", "c"])
    mill.expect_matrix("p.h5", parts, names=["a", "b", "c"])
    with h5py.File(mill.path("q.h5"), "w") as f:
        frame(f, "mixed", [(["x", "y", "z"], parts), (["m", "n"], whole)], ["m", "x", "y", "n", "z"])
        frame(f, "twice", [(["x", "y", "z"], parts), (["m", "x"], whole)], ["m", "x", "y", "x", "z"])
        words = frame(f, "words", [(["x", "y", "z"], parts)], ["x", "y", "z", "w"])
        words.attrs["nblocks"] = np.int64(2)
        text(words, "block1_values", ["w"] * 50)
        text(words, "block1_items", ["w"])
        old = frame(f, "items_first", [(["x", "y", "z"], parts.T)], ["x", "y", "z"])
        del old["block0_values"].attrs["transposed"]
        dates = frame(f, "dates", [(["d", "e"], whole)], ["d", "e"])
        dates["block0_values"].attrs["value_type"] = np.bytes_("datetime64")
        table = f.create_group("table")
        table.attrs["pandas_type"] = np.bytes_("frame_table")
        series = f.create_group("series")
        series.attrs["pandas_type"] = np.bytes_("series")
        series["values"] = parts[:, 0]
        f["plain"] = whole
    joined = np.column_stack([whole[:, 0], parts[:, 0], parts[:, 1], whole[:, 1], parts[:, 2]])
    mill.expect_matrix("q.h5:/mixed", joined, names=["m", "x", "y", "n", "z"])
    mill.expect_matrix("q.h5:/mixed", joined, "--format", "pandas", "--block-rows", "7")
    mill.expect_matrix("q.h5:/mixed/block1_values", whole)
    mill.expect_matrix("q.h5:/series", parts[:, :1])
    mill.expect_matrix("q.h5:/items_first", parts, names=["x", "y", "z"])
    mill.expect_matrix("q.h5:/plain", whole, "--format", "pandas")
    mill.expect_refused("q.h5:/twice", "names of their own")
    mill.expect_refused("q.h5:/words", "block1_values is not numeric")
    mill.expect_refused("q.h5:/dates", "datetime64")
    mill.expect_refused("q.h5:/table", "pandas table")


def check_tables(mill, random):
    table = np.zeros(50, [("index", "<i8"), ("w", "S3"), ("values_block_0", "<f8", (3,)), ("n", ">i2"), ("c", "c8")])
    table["index"], table["n"] = np.arange(50), random.integers(-9, 9, 50)
    table["values_block_0"] = random.integers(0, 99, (50, 3)) / 4
    with h5py.File(mill.path("t.h5"), "w") as f:
        f.create_dataset("g/table", data=table, chunks=(16,), compression="gzip", shuffle=True)
        f["flat"] = table
        f.create_dataset("grid", data=table.reshape(10, 5))
    for name in ("/g/table", "/flat"):
        mill.expect_matrix(f"t.h5:{name}/values_block_0", table["values_block_0"])
        mill.expect_matrix(f"t.h5:{name}/values_block_0", table["values_block_0"], "--block-rows", "7")
        mill.expect_matrix(f"t.h5:{name}/n", table["n"].reshape(-1, 1), names=["n"])
        mill.expect_refused(f"t.h5:{name}", "can be named, as in :/TABLE/index")
        mill.expect_refused(f"t.h5:{name}/w", "string")
        mill.expect_refused(f"t.h5:{name}/c", "complex64")
        mill.expect_refused(f"t.h5:{name}/none", "no column of that name")
    mill.expect_refused("t.h5:/flat/values_block_0", "are its axis 0", "--row-axis", "1", code=2)
    mill.expect_refused("t.h5:/grid/n", "nothing of that name")


def main():
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        mill = Mill(os.path.abspath(sys.argv[1]), folder)
        check_anndata(mill, random)
        check_twins(mill, random)
        check_damaged(mill)
        check_missing(mill)
        check_duplicates(mill)
        check_tenx(mill, random)
        check_loom(mill, random)
        check_matlab(mill)
        check_netcdf(mill)
        check_pandas(mill, random)
        check_tables(mill, random)
    print(f"{mill.runs} matrices, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
