"""The experiment `gap` of bench/host/run: what replay promised, and what the daemon then did."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

JOBS = ["train", "serve", "batch"]
RESOURCES = {"cpu": ("core_seconds", "cpu_cores"), "memory": ("byte_seconds", "memory_bytes")}
MODES = ["observe", "enforce"]


def read_json(path):
    """The JSON of a file."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Arm:
    """The runs of one value of `enforce.cpu`. Each seed knows the earlier ones."""

    def __init__(self, tree, build, lever, folder):
        self.tree, self.build, self.folder = tree, build, folder
        os.makedirs(folder)
        self.config = f"{folder}/cgphase.toml"
        with open(f"{tree}/tests/workloads/demo.toml", encoding="utf-8") as shipped:
            text = shipped.read()
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f'{text}enforce.cpu = "{lever}"\n'
                       f'model = "{tree}/model/default_model.json"\n')
        self.states = {mode: "/nonexistent" for mode in MODES}

    def start(self, mode, seed, seconds):
        """Starts one run of the demo's jobs in a guest of its own."""
        to = f"{self.folder}/{mode}-{seed}"
        os.makedirs(to)
        mix = [f"{self.build}/bin/demo_mix", "--seed", str(seed), "--seconds", f"{seconds:g}",
               "--mode", mode, "--config", self.config, *JOBS]
        with open(f"{to}/guest.log", "wb") as log:
            return subprocess.Popen(
                [f"{self.tree}/scripts/guest", "--results", to, "--show", self.folder, "--show",
                 self.build, "--ext4", "512M", "--timeout", str(int(seconds * 2) + 120), "--",
                 f"{self.tree}/tests/workloads/demo-run", "/results", "/scratch",
                 self.states[mode], *mix], stdout=log, stderr=log)

    def run(self, seed, seconds):
        """One run in each mode, at the same time. Ends the program if one fails."""
        guests = {mode: self.start(mode, seed, seconds) for mode in MODES}
        statuses = {mode: guest.wait() for mode, guest in guests.items()}
        if 77 in statuses.values():
            sys.exit(77)
        for mode, status in statuses.items():
            if status != 0:
                with open(f"{self.folder}/{mode}-{seed}/guest.log", encoding="utf-8") as log:
                    sys.exit(log.read())
            self.states[mode] = f"{self.folder}/{mode}-{seed}/state"

    def live(self, seed):
        """Per job and resource, the share of the limit that the enforcing daemon gave back."""
        jobs = read_json(f"{self.folder}/enforce-{seed}/run.json")["containers"]
        return {job["name"]: {
            resource: 1 - job[used] / (job["static"][limit] * job["seconds"])
            for resource, (used, limit) in RESOURCES.items()} for job in jobs}

    def replayed(self, seed):
        """The same, as `cgphase replay --host` says from the history of the observing daemon."""
        shares = {}
        for job in read_json(f"{self.folder}/observe-{seed}/run.json")["containers"]:
            done = subprocess.run(
                [f"{self.build}/bin/cgphase", "replay", "--container", job["name"], "--until",
                 str(job["ended_at"]), "--state-dir", self.states["observe"], "--config",
                 self.config, "--model", f"{self.tree}/model/default_model.json", "--policy",
                 "phase", "--closed-loop", "--bootstrap", "0", "--json"],
                stdout=subprocess.PIPE, check=False)
            if done.returncode != 0:
                sys.exit(1)
            shares[job["name"]] = {
                policy["resource"]: 1 - policy["by_execution"][-1]["alloc_vs_static"]
                for policy in json.loads(done.stdout)["policies"] if policy["rails"]}
        return shares


def rounded(value, decimals):
    """The value, never -0.0."""
    return round(value, decimals) + 0.0


def lines_of(arm, seed, live, replayed):
    """One line of JSON per job."""
    for job, shares in live.items():
        line = {"arm": arm, "seed": seed, "job": job}
        for resource, share in shares.items():
            promised = replayed[job][resource]
            line |= {f"{resource}_live": rounded(share, 3),
                     f"{resource}_replayed": rounded(promised, 3),
                     f"{resource}_gap_points": rounded(100 * (promised - share), 1)}
        yield line


def medians(arm, lines):
    """One line per job, and one for all."""
    for job in [*JOBS, "all"]:
        chosen = [line for line in lines if line["arm"] == arm and job in (line["job"], "all")]
        yield {"arm": arm, "job": job, "runs": len(chosen)} | {
            key: round(statistics.median(line[key] for line in chosen), 3)
            for key in chosen[0] if key.startswith(tuple(RESOURCES))} | {
            f"{resource}_median_distance": round(statistics.median(
                abs(line[f"{resource}_gap_points"]) for line in chosen), 1)
            for resource in RESOURCES}


def run(tree, build, levers, seeds, seconds):
    """All runs, then the medians."""
    os.environ["CGPHASE_TEST_KEYS"] = "1"  # tests/workloads/demo.toml shortens waiting times
    folder = tempfile.mkdtemp(prefix="cgphase-gap.", dir=os.environ.get("TMPDIR", "/tmp"))
    lines = []
    try:
        arms = {lever: Arm(tree, build, lever, f"{folder}/{lever}") for lever in levers}
        for seed in range(1, seeds + 1):
            for lever, arm in arms.items():
                arm.run(seed, seconds)
                for line in lines_of(lever, seed, arm.live(seed), arm.replayed(seed)):
                    lines.append(line)
                    print(json.dumps(line), flush=True)
    finally:
        shutil.rmtree(folder)
    for lever in levers:
        for line in medians(lever, lines):
            print(json.dumps(line))
