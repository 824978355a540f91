#!/usr/bin/env python3
"""Does scripts/check_includes.py find every kind of breach, and nothing else?"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_includes.py"

RIGHT = {
    "src/core/error.hpp": "#pragma once\n#include <string>\n",
    "src/core/error.cpp": '#include "core/error.hpp"\n',
    "io/source.hpp": '#pragma once\n#include "core/error.hpp"\n',
    "io/h5.cpp": '#include <hdf5.h>\n#include "io/source.hpp"\n',
    "io/row_writer.cpp": "#include <mpi.h>\n",
    "kernels/ops.hpp": '#pragma once\n#include "core/error.hpp"\n',
    "kernels/host/add.cpp": '#include "kernels/ops.hpp"\n#include <hwy/highway.h>\n',
    "comm/world.hpp": '#pragma once\n#include "core/error.hpp"\n',
    "comm/world.cpp": '#include <mpi.h>\n#include "comm/world.hpp"\n',
    "src/pipeline/slots.hpp": '#pragma once\n#include "io/source.hpp"\n',
    "src/jobs/job.hpp": '#pragma once\n#include "kernels/ops.hpp"\n',
    "src/jobs/gram.cpp": '#include "jobs/job.hpp"\n',
    "src/engine/run.hpp": '#pragma once\n#include "comm/world.hpp"\n#include "jobs/job.hpp"\n#include "pipeline/slots.hpp"\n',
    "src/engine/version.hpp.in": "#pragma once\n",
    "src/app/main.cpp": '#include "engine/run.hpp"\n#include "version.hpp"\n',
    "tests/io/a_test.cpp": '#include <hdf5.h>\n#include "engine/run.hpp"\n#include "tests/support/b.hpp"\n',
    "tests/support/b.hpp": "#pragma once\n",
}

WRONG = [
    ("src/core/x.cpp", '#include "io/source.hpp"', "core may not include"),
    ("kernels/x.cpp", '#include "io/source.hpp"', "kernels may not include"),
    ("io/x.cpp", '#include "comm/world.hpp"', "io may not include"),
    ("comm/x.cpp", '  #  include "kernels/ops.hpp"', "comm may not include"),
    ("src/pipeline/x.cpp", '#include "kernels/ops.hpp"', "pipeline may not include"),
    ("src/jobs/x.cpp", '#include "io/source.hpp"', "jobs may not include"),
    ("src/engine/x.cpp", '#include "app/options.hpp"', "engine may not include"),
    ("src/app/x.cpp", '#include "tests/support/b.hpp"', "for tests only"),
    ("src/core/x.cpp", '#include "error.hpp"', "no file of ours"),
    ("src/engine/x.cpp", "#include <hdf5.h>", "may not be included here"),
    ("src/engine/x.cpp", '#include "hdf5.h"', "may not be included here"),
    ("comm/x.hpp", "#pragma once\n#include <mpi.h>", "may not be included here"),
    ("io/x.cpp", "#include <mpi.h>", "may not be included here"),
    ("src/core/x.cpp", "#include <hwy/highway.h>", "may not be included here"),
    ("kernels/host/x.cpp", "#include <immintrin.h>", "may not be included here"),
    ("src/core/pool.cpp", "#include <cuda_runtime.h>", "may not be included here"),
    ("src/core/x.hpp", "#include <string>", "#pragma once"),
]


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        (root / "src/app").mkdir(parents=True, exist_ok=True)
        (root / "src/app/options.hpp").write_text("#pragma once\n")
        done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


class CheckIncludes(unittest.TestCase):
    def test_right_includes_pass(self):
        self.assertEqual(run(RIGHT), (0, "includes keep to the rules\n"))

    def test_every_kind_of_breach_is_found_and_named(self):
        for path, text, message in WRONG:
            with self.subTest(path=path, text=text):
                code, printed = run({**RIGHT, path: text + "\n"})
                self.assertEqual(code, 1)
                lines = printed.splitlines()
                self.assertEqual(len(lines), 1, printed)
                self.assertTrue(lines[0].startswith(path + ":"), printed)
                self.assertIn(message, lines[0])


if __name__ == "__main__":
    unittest.main()
