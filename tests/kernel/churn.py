"""Makes and ends containers, 100 a second, each with a process of 2 s, below a cgroup, and looks at
a daemon that watches them once a second: what grew while they came and went?

churn.py CGROUP PID SECONDS WARM_UP, as root; exit status 0: nothing grew in SECONDS after WARM_UP.
"""
import os
import re
import signal
import statistics
import sys
import time

RATE, LIFE = 100, 2
KIB_MORE = 128   # of anonymous memory: the free places in a heap are not the same twice
BYTES_MORE = 64  # and so many for each container that came and went: a record of it has more


class Churn:
    def __init__(self, parent):
        self.parent, self.made, self.live = parent, 0, []

    def begin(self):
        path = f"{self.parent}/c{self.made}"
        os.mkdir(path)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with open(f"{path}/cgroup.procs", "w") as procs:
                procs.write("0")
            signal.pause()
        self.live.append((time.monotonic() + LIFE, pid, path))
        self.made += 1

    def end_those_before(self, now):
        while self.live and self.live[0][0] < now:
            _, pid, path = self.live.pop(0)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.remove(path)

    @staticmethod
    def remove(path):
        for _ in range(1000):  # a process that ended is gone from its cgroup a moment later
            try:
                return os.rmdir(path)
            except OSError:
                time.sleep(0.001)
        sys.exit(f"{path} cannot be removed")


class Daemon:
    def __init__(self, pid):
        self.proc = f"/proc/{pid}"

    def anonymous_kib(self):
        with open(f"{self.proc}/status") as status:
            return int(re.search(r"RssAnon:\s+(\d+)", status.read())[1])

    def descriptors(self):
        return len(os.listdir(f"{self.proc}/fd"))

    def map_kib(self):
        """What the kernel accounts for its BPF maps."""
        total = 0
        for number in os.listdir(f"{self.proc}/fdinfo"):
            try:
                with open(f"{self.proc}/fdinfo/{number}") as info:
                    text = info.read()
            except FileNotFoundError:  # closed meanwhile
                continue
            if "map_id:" in text:
                total += int(re.search(r"memlock:\s+(\d+)", text)[1])
        return total // 1024


def main(parent, pid, seconds, warm_up):
    churn, daemon = Churn(parent), Daemon(pid)
    kib_more = KIB_MORE + RATE * seconds * BYTES_MORE / 1024
    # What there may be more: descriptors and maps follow those who live, a few more or less.
    measures = {"anonymous memory in KiB": (daemon.anonymous_kib, lambda early: early + kib_more),
                "descriptors": (daemon.descriptors, lambda early: early * 1.1),
                "BPF maps in KiB": (daemon.map_kib, lambda early: early * 1.1)}
    seen = {what: [] for what in measures}
    start = time.monotonic()
    looks = 0
    try:
        while (now := time.monotonic() - start) < warm_up + seconds:
            while churn.made < now * RATE:
                churn.begin()
            churn.end_those_before(start + now)
            if looks < now:
                looks += 1
                for what, (measure, _) in measures.items():
                    seen[what].append(measure())
            time.sleep(0.002)
    finally:
        churn.end_those_before(float("inf"))
    if churn.made < RATE * (warm_up + seconds) * 0.9:
        return f"{churn.made} containers, fewer than 90 a second: nothing is proved"
    print(f"{churn.made} containers in {time.monotonic() - start:.0f} s")
    grown = []
    for what, (_, at_most) in measures.items():
        early = statistics.median(seen[what][warm_up - 5:warm_up])
        late = statistics.median(seen[what][-5:])
        print(f"{what}: {early:.0f}, in the end {late:.0f}")
        if late > at_most(early):
            grown.append(what)
    return f"grew: {', '.join(grown)}" if grown else 0


# What was made is removed however it ends.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
sys.exit(main(sys.argv[1], *map(int, sys.argv[2:5])))
