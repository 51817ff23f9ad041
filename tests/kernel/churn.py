"""Makes and ends containers below a cgroup, and reports what grew meanwhile in a daemon that
watches them.

It makes 100 containers a second, or as many as the machine can, each with a process that lives
for 2 s. The daemon is measured once a second.

churn.py CGROUP PID SECONDS WARM_UP, as root. Exit status 0: nothing grew in the SECONDS after
WARM_UP, or in a repetition of SECONDS.
"""
import ctypes
import errno
import os
import re
import signal
import statistics
import struct
import sys
import time

RATE, LIFE = 100, 2
# Share of the containers that RATE would make in the measured time. A slower machine takes longer.
LEAST = 0.9
LEVELLING = 3  # repetitions until nothing grows
# Growth allowed in anonymous memory, because the free blocks of a heap differ each time. A record
# for each of 60,000 containers would be more, however small.
KIB_MORE = 256
SWEEP = 60       # seconds between the daemon's searches for counted cgroups that are gone
SWEEP_LOOKS = SWEEP + 5
HASH, PER_CPU_HASH, NO_PREALLOC = 1, 5, 1  # of linux/bpf.h
GET_NEXT_KEY, GET_FD_BY_ID = 4, 14
TOLD = re.compile(r"^(map_\w+|key_size|max_entries|memlock):\s+(\w+)$", re.M)
BPF = {"x86_64": 321, "aarch64": 280}.get(os.uname().machine)
LIBC = ctypes.CDLL(None, use_errno=True)


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
        for _ in range(1000):  # an ended process leaves its cgroup a moment later
            try:
                return os.rmdir(path)
            except OSError:
                time.sleep(0.001)
        sys.exit(f"{path} cannot be removed after 1 s")


def bpf(command, attributes):
    """Calls bpf(2). Returns -1 if the kernel refuses."""
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    return LIBC.syscall(BPF, command, buffer, len(attributes))


def entries(map_id, key_bytes, most):
    """Number of keys in a hash map."""
    fd = bpf(GET_FD_BY_ID, struct.pack("III", map_id, 0, 0))
    if fd < 0:
        if ctypes.get_errno() != errno.ENOENT:  # it was closed meanwhile
            sys.exit("entries of BPF maps cannot be counted, so nothing is proved")
        return 0
    key, following = (ctypes.create_string_buffer(key_bytes) for _ in range(2))
    keys, at = set(), 0
    for _ in range(4 * most):  # if a key vanishes meanwhile, the iteration starts again
        if bpf(GET_NEXT_KEY, struct.pack("IxxxxQQ", fd, at, ctypes.addressof(following))) != 0:
            break
        key.raw = following.raw
        at = ctypes.addressof(key)
        keys.add(key.raw)
    os.close(fd)
    return len(keys)


class Daemon:
    def __init__(self, pid):
        self.proc = f"/proc/{pid}"

    def anonymous_kib(self):
        with open(f"{self.proc}/status") as status:
            return int(re.search(r"RssAnon:\s+(\d+)", status.read())[1])

    def descriptors(self):
        return len(os.listdir(f"{self.proc}/fd"))

    def maps(self):
        """The fdinfo numbers of each of the daemon's BPF maps, by name."""
        found = {}
        for number in os.listdir(f"{self.proc}/fdinfo"):
            try:
                with open(f"{self.proc}/fdinfo/{number}") as info:
                    text = info.read()
            except FileNotFoundError:  # closed meanwhile
                continue
            if "map_id:" in text:
                reported = {name: int(value, 0) for name, value in TOLD.findall(text)}
                found[reported["map_id"]] = reported
        return found.values()

    def map_kib(self):
        return sum(one["memlock"] for one in self.maps()) // 1024

    def entries(self, kind, flags):
        """Number of keys by map."""
        return {one["map_id"]: entries(one["map_id"], one["key_size"], one["max_entries"])
                for one in self.maps()
                if one["map_type"] == kind and one["map_flags"] & NO_PREALLOC == flags}

    def walked(self):
        """Number of containers that are walked over (collectors/ebpf/pull.bpf.h)."""
        return sum(self.entries(HASH, NO_PREALLOC).values())

    def counted(self):
        """Number of cgroups with counted events, by map (collectors/ebpf/counted_cgroups.bpf.h)."""
        return self.entries(PER_CPU_HASH, 0)


def most_left(looks):
    """The most entries left after a sweep, among the maps present in all readings."""
    return max((min(look[one] for look in looks) for one in looks[-1]
                if all(one in look for look in looks)), default=0)


def main(parent, pid, seconds, warm_up):
    churn, daemon = Churn(parent), Daemon(pid)
    others = daemon.walked()
    cgroups = sum(1 for _ in os.walk(os.path.dirname(parent)))
    # Upper bounds: functions of the early value and of the growth in live containers. A busy
    # machine makes fewer at a time.
    measures = {"anonymous memory in KiB":
                    (daemon.anonymous_kib, lambda early, _: early + KIB_MORE),
                "descriptors": (daemon.descriptors, lambda early, more: early * 1.1 * more),
                "BPF maps in KiB": (daemon.map_kib, lambda early, _: early * 1.1),
                "containers that are walked over":
                    (daemon.walked, lambda *_: others + 1.2 * statistics.median(alive[-5:]))}
    seen = {what: [] for what in measures}
    alive, counted = [], []
    start = time.monotonic()

    def watch(seconds, containers):
        """Measures until `seconds` have passed and `containers` more were made."""
        until, enough = time.monotonic() + seconds, churn.made + containers
        while (now := time.monotonic()) < until or churn.made < enough:
            # If that is too fast for the machine, the missing ones are not made all at once.
            for _ in range(min(int((now - start) * RATE) - churn.made, RATE // 10)):
                churn.begin()
            churn.end_those_before(now)
            if len(alive) < now - start:
                for what, (measure, _) in measures.items():
                    seen[what].append(measure())
                alive.append(len(churn.live))
                counted.append(daemon.counted())
            time.sleep(0.002)

    def grown():
        """Prints every measure, and returns those that grew during one measured time."""
        begin = len(alive)
        watch(seconds, LEAST * RATE * seconds)
        found = []
        early, now = (statistics.median(alive[begin - 5:begin + 1]), statistics.median(alive[-5:]))
        more = max(1, now / max(early, 1))
        for what, (_, at_most) in measures.items():
            before = statistics.median(seen[what][begin - 5:begin + 1])
            late = statistics.median(seen[what][-5:])
            print(f"{what}: {before:.0f}, in the end {late:.0f}", flush=True)
            if late > at_most(before, more):
                found.append(what)
        return found

    try:
        watch(warm_up, 0)
        # A heap needs time to reach its working size. A leak grows each time.
        for _ in range(LEVELLING):
            if not (more := grown()):
                break
    finally:
        churn.end_those_before(float("inf"))
    print(f"{churn.made} containers in {time.monotonic() - start:.0f} s")
    # Between two sweeps there are more entries than needed. After a sweep only the live cgroups are
    # left, and those that came and went until the map was read.
    print(f"entries of counted cgroups: at most {max(sum(look.values()) for look in counted)}")
    if seconds >= 2 * SWEEP:
        left, most = most_left(counted[-SWEEP_LOOKS:]), cgroups + RATE * (LIFE + 4)
        print(f"entries after the last sweep: {left} in one map, where {most} may be")
        if left > most:
            more.append("entries of counted cgroups")
    return f"grew: {', '.join(more)}" if more else 0


# All containers are removed, however the program ends.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
sys.exit(main(sys.argv[1], *map(int, sys.argv[2:5])))
