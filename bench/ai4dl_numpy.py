#!/usr/bin/python3
"""The released AI4DL (github HiEST/AI4DL, crbm_tools.py) transcribed to plain numpy, to time it.

usage: ai4dl_numpy.py INPUT.json      (started by bench_model, which writes INPUT.json)

Prints {"numpy": version}, then answers each line of stdin with a line of JSON:

  row      the online step, row by row: scaler, CRBM as in `predict`, nearest centroid
  batch    the same rows at once, as an experienced numpy user would write it
  train N  N epochs of `fit`: CD-1 on means, one window after the other, float32 weights

Times are CPU time. The other costs of the release are left out, in its favour: scikit-learn's
checks of every argument, and numexpr for the sigmoid. As in the release, its random numbers are
drawn but not used. Exit status 3: this Python has no numpy.
"""

import json
import sys
import time

try:
    import numpy as np
except ImportError:
    sys.exit(3)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Crbm:
    """W, A, B and biases as in the release: float32, biases as columns, B time-major."""

    def __init__(self, parameters):
        self.n_vis, self.n_hid = parameters["n_vis"], parameters["n_hid"]
        self.n_his = parameters["n_his"]
        past = self.n_vis * self.n_his
        shapes = {"W": (self.n_hid, self.n_vis), "A": (self.n_vis, past), "B": (self.n_hid, past),
                  "v_bias": (self.n_vis, 1), "h_bias": (self.n_hid, 1)}
        for name, shape in shapes.items():
            setattr(self, name, np.array(parameters[name], dtype=np.float32).reshape(shape))

    def hidden(self, visible, history):
        mean = sigmoid(np.dot(self.W, visible) + np.dot(self.B, history) + self.h_bias)
        sample = mean > np.random.random(mean.shape).astype(np.float32)
        return sample, mean

    def visible(self, hidden, history):
        return np.dot(self.W.T, hidden) + np.dot(self.A, history) + self.v_bias

    def gradient(self, window):
        """The update of CD-1 for one window [n_his + 1, n_vis], and its reconstruction error."""
        visible = window[[-1], :].T
        # The transposed history, flattened by columns: time-major.
        history = np.array([window[:-1, :].T.flatten("F")]).T
        _, h0 = self.hidden(visible, history)
        v1 = self.visible(h0, history)
        _, h1 = self.hidden(v1, history)
        count = visible.shape[1]
        d_w = (np.dot(h0, visible.T) - np.dot(h1, v1.T)) * (1.0 / count)
        d_a = (np.dot(visible, history.T) - np.dot(v1, history.T)) * (1.0 / count)
        d_b = (np.dot(h0, history.T) - np.dot(h1, history.T)) * (1.0 / count)
        d_v = np.mean(visible - v1, axis=1, keepdims=True)
        d_h = np.mean(h0 - h1, axis=1, keepdims=True)
        return d_w, d_a, d_b, d_v, d_h, np.linalg.norm(visible - v1)

    def train_epoch(self, windows, rate):
        """Mean reconstruction error of the windows, each with the weights at its turn."""
        error = 0
        for window in windows:
            d_w, d_a, d_b, d_v, d_h, window_error = self.gradient(window)
            self.W += d_w * rate
            self.A += d_a * rate
            self.B += d_b * rate
            self.v_bias += d_v * rate
            self.h_bias += d_h * rate
            error += window_error
        return error / len(windows)


class Steps:
    """Turns raw rows into phases, with the model from bench_model."""

    def __init__(self, given):
        self.mean = np.array(given["scaler"]["mean"])
        self.scale = np.array(given["scaler"]["scale"])
        self.crbm = Crbm(given["crbm"])
        self.centroids = np.array(given["centroids"]).reshape(-1, self.crbm.n_hid)
        self.rows = np.array(given["rows"])
        # `predict` flattens the history feature-major, although it was trained time-major. With the
        # columns of B in that order it gives the intended phases.
        n_vis, n_his = self.crbm.n_vis, self.crbm.n_his
        self.feature_major = Crbm(given["crbm"])
        order = np.arange(n_vis * n_his).reshape(n_his, n_vis).T.flatten()
        self.feature_major.B = self.crbm.B[:, order]

    def row_by_row(self):
        crbm = self.feature_major
        width = crbm.n_his + 1
        scaled = np.zeros((len(self.rows), crbm.n_vis))
        phases = []
        for k in range(len(self.rows)):
            scaled[k] = ((self.rows[[k], :] - self.mean) / self.scale)[0]
            if k < crbm.n_his:
                continue
            window = scaled[k + 1 - width:k + 1, :]
            history = np.array([window[:-1, :].flatten("F")]).T
            _, activation = crbm.hidden(window[[-1], :].T, history)
            distances = ((self.centroids - activation.T) ** 2).sum(axis=1)
            phases.append(int(np.argmin(distances)))
        return phases

    def at_once(self):
        crbm = self.crbm
        scaled = (self.rows - self.mean) / self.scale
        count = len(scaled) - crbm.n_his
        history = np.hstack([scaled[i:i + count] for i in range(crbm.n_his)])
        activation = sigmoid(scaled[crbm.n_his:] @ crbm.W.T + history @ crbm.B.T + crbm.h_bias.T)
        products = activation @ self.centroids.T
        distances = (self.centroids ** 2).sum(axis=1) - 2 * products
        return np.argmin(distances, axis=1).tolist()


def timed(work):
    begin = time.process_time_ns()
    phases = work()
    return {"ns_per_step": (time.process_time_ns() - begin) / len(phases), "phases": phases}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        given = json.load(file)
    steps = Steps(given["step"])
    training = given["train"]
    crbm = Crbm(training["crbm"])
    rows = np.array(training["rows"]).reshape(-1, crbm.n_vis)
    windows = [rows[first:first + crbm.n_his + 1, :] for first in training["windows"]]
    print(json.dumps({"numpy": np.__version__}), flush=True)
    for line in sys.stdin:
        command, _, count = line.strip().partition(" ")
        if command == "row":
            answer = timed(steps.row_by_row)
        elif command == "batch":
            answer = timed(steps.at_once)
        elif command == "train":
            answer = {"seconds": [], "errors": []}
            for _ in range(int(count)):
                begin = time.process_time()
                error = crbm.train_epoch(windows, training["learning_rate"])
                answer["seconds"].append(time.process_time() - begin)
                answer["errors"].append(float(error))
        else:
            sys.exit(f"ai4dl_numpy.py: unknown command {command}; use row, batch or train N")
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
