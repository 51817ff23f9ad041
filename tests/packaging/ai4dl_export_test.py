"""Tests the export script: it writes a document that `cgphase model import` accepts, or one clear
line."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import types
import unittest

SCRIPT = os.path.join(os.path.dirname(__file__), "../../packaging/ai4dl/ai4dl-export")
COMMAND = os.environ.get("CGPHASE_COMMAND")


def script():
    loader = importlib.machinery.SourceFileLoader("ai4dl_export", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Array:
    """Stands in for numpy's array. It is at module level so that pickle finds it."""

    def __init__(self, rows):
        self.rows = rows

    def tolist(self):
        return self.rows


def rows(count, columns, value):
    return Array([[value + row + column / 8 for column in range(columns)] for row in range(count)])


def weights():
    return {"n_vis": 2, "n_hid": 3, "n_his": 1, "W": rows(3, 2, 0.5), "A": rows(2, 2, 0.25),
            "B": rows(3, 2, -1), "v_bias": Array([[0.5], [1.5]]),
            "h_bias": Array([[0.0], [1.0], [2.0]])}


SCALER = types.SimpleNamespace(mean_=Array([1.0, 2.0]), scale_=Array([0.5, 4.0]))
KMEANS = types.SimpleNamespace(cluster_centers_=Array([[0.1, 0.2, 0.3], [0.9, 0.8, 0.7]]))


class Parameters(unittest.TestCase):
    def setUp(self):
        self.script = script()

    def test_everything_is_there_and_biases_are_flat(self):
        document = self.script.parameters(weights(), SCALER, KMEANS, ["a", "b"], KMEANS, 1)
        self.assertEqual(document["crbm"]["h_bias"], [0.0, 1.0, 2.0])
        self.assertEqual(document["crbm"]["B"][2], [1.0, 1.125])
        self.assertEqual(document["scaler"], {"mean": [1.0, 2.0], "scale": [0.5, 4.0]})
        self.assertEqual(document["kmeans_sub"]["first_id"], 2)

    def test_what_does_not_fit_is_refused_in_one_sentence(self):
        broken = weights()
        del broken["B"]
        infinite = weights()
        infinite["W"] = Array([[math.inf, 0], [0, 0], [0, 0]])
        for crbm, scaler, kmeans, features, said in [
                (broken, SCALER, KMEANS, ["a", "b"], "has no 'B'"),
                (infinite, SCALER, KMEANS, ["a", "b"], "not finite"),
                (weights(), SCALER, KMEANS, ["a"], "1 names"),
                (weights(), KMEANS, KMEANS, ["a", "b"], "has no 'mean_'"),
                (weights(), SCALER, SCALER, ["a", "b"], "has no 'cluster_centers_'")]:
            with self.assertRaises(self.script.Refused) as refused:
                self.script.parameters(crbm, scaler, kmeans, features)
            self.assertIn(said, str(refused.exception))


class Program(unittest.TestCase):
    def setUp(self):
        self.script = script()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(self.path("model_dict.pickle"), "wb") as file:
            pickle.dump(weights(), file)
        joblib = types.ModuleType("joblib")
        joblib.load = {"s": SCALER, "k": KMEANS}.__getitem__
        self.use_joblib(joblib)

    def use_joblib(self, module):
        before = sys.modules.get("joblib")
        sys.modules["joblib"] = module

        def restore():
            if before is None:
                sys.modules.pop("joblib", None)
            else:
                sys.modules["joblib"] = before
        self.addCleanup(restore)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_script(self, *more):
        error = io.StringIO()
        with contextlib.redirect_stderr(error):
            status = self.script.main(["--crbm", self.folder.name, "--scaler", "s", "--kmeans",
                                       "k", "--features", "a,b", "-o", self.path("p.json"), *more])
        return status, error.getvalue()

    def test_the_document_is_one_that_cgphase_imports(self):
        self.assertEqual(self.run_script("--kmeans-sub", "k", "--parent-phase", "1"), (0, ""))
        with open(self.path("p.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["features"], ["a", "b"])
        self.assertTrue(COMMAND, "CGPHASE_COMMAND names the built command")
        imported = subprocess.run(
            [COMMAND, "model", "import", "--expanded", self.path("p.json"), "-o",
             self.path("m.json")], capture_output=True, text=True, check=False)
        self.assertEqual((imported.returncode, imported.stderr), (0, ""))

    def test_without_joblib_the_way_out_is_named_and_nothing_is_written(self):
        self.use_joblib(None)
        status, error = self.run_script()
        self.assertEqual(status, 6)
        self.assertEqual(error.count("\n"), 1)
        self.assertIn("run this on the Python that AI4DL ran on", error)
        self.assertFalse(os.path.exists(self.path("p.json")))

    def test_a_damaged_pickle_is_one_line(self):
        with open(self.path("model_dict.pickle"), "wb") as file:
            file.write(b"\x80\x04not a pickle")
        status, error = self.run_script()
        self.assertEqual((status, error.count("\n")), (6, 1))
        self.assertIn("model_dict.pickle", error)


if __name__ == "__main__":
    unittest.main()
