"""Cuts the power of a machine that writes the history, and checks what is left on its disk.

The machine is tests/kernel/psi_guest. Its disk has a volatile cache, and QEMU logs every write and
flush (driver blklogwrites). The machine is killed while it writes. The host's page cache survives
that, so a cut is made from the log. For a place in the log, the disk gets everything written
before the last flush. Of the sectors written since then it gets a random part, as if a cache
lost its power. Each such disk is treated as after a power cut: e2fsck replays ext4's journal, the
file system must be whole, and power_writer checks the database that it wrote. The last disk of a
round is the one that the next round boots with, so that the guest's kernel recovers it too.

power_cuts.py [--rounds N] [--cuts N] [--seed N] [--kernels FOLDER] POWER_WRITER
"""
import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

SECTOR = 512
DISK_BYTES, MARK_BYTES = 64 << 20, 4096  # the marks are behind the file system
LOG_MAGIC = 0x6a736677736872
FLUSH, FUA, DISCARD = 1, 2, 4
SHORTEST, LONGEST = 300, 1500  # decisions before the machine is killed


class Entry:
    def __init__(self, sector, flags, data):
        self.sector, self.flags, self.data = sector, flags, data

    def sector_count(self):
        return len(self.data) // SECTOR


def read_log(path):
    """Yields the entries. Format: Documentation/admin-guide/device-mapper/log-writes.rst."""
    with open(path, "rb") as log:
        magic, version, count, size = struct.unpack("<QQQI", log.read(28))
        assert (magic, version, size) == (LOG_MAGIC, 1, SECTOR), "not a log of writes"
        place = SECTOR
        for _ in range(count):
            log.seek(place)
            sector, length, flags, _ = struct.unpack("<QQQQ", log.read(32))
            place += SECTOR
            data = b""
            if flags & DISCARD:
                data = bytes(length * SECTOR)
            elif length:
                log.seek(place)
                data = log.read(length * SECTOR)
                place += length * SECTOR
            yield Entry(sector, flags, data)


def mark_of(entry):
    """(taken, durable) if the entry is a mark of the writer, else None."""
    if entry.sector != DISK_BYTES // SECTOR - 1 or entry.sector_count() != 1:
        return None
    return tuple(int(word) for word in entry.data.split(b"\n")[0].split())


class Disk:
    """Replays a log entry by entry: sectors that are safe, and those that the cache may lose."""

    def __init__(self, path):
        self.path, self.file = path, open(path, "r+b")
        self.volatile = {}  # written since the last flush: sector -> all versions of it

    def put(self, sector, data):
        self.file.seek(sector * SECTOR)
        self.file.write(data)

    def take(self, entry):
        if entry.flags & FLUSH:
            for sector, versions in self.volatile.items():
                self.put(sector, versions[-1])
            self.volatile.clear()
        for i in range(entry.sector_count()):
            data = entry.data[i * SECTOR:(i + 1) * SECTOR]
            if entry.flags & FUA:
                self.volatile.pop(entry.sector + i, None)
                self.put(entry.sector + i, data)
            else:
                self.volatile.setdefault(entry.sector + i, []).append(data)

    def cut(self, path, rng):
        """Writes a copy as after a power cut. Returns the number of lost volatile sectors."""
        self.file.flush()
        subprocess.run(["cp", "--sparse=always", self.path, path], check=True)
        kept_of_all = rng.choice([0.0, 0.5, 0.9, rng.random()])
        lost = 0
        with open(path, "r+b") as disk:
            for sector, versions in self.volatile.items():
                if rng.random() >= kept_of_all:
                    lost += 1
                    continue
                disk.seek(sector * SECTOR)
                disk.write(rng.choice(versions))
        return lost


def run(words, allowed=(0,)):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode not in allowed:
        sys.exit(f"FAILED: {' '.join(words)}: {done.returncode}\n{done.stdout.decode()}")
    return done.stdout.decode()


class Test:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.rng = random.Random(options.seed)
        self.most_lost, self.sectors_lost = 0, 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def boot_and_kill(self, disk, log):
        with open(log, "wb") as empty:
            empty.truncate(0)
        guest = os.path.join(os.path.dirname(os.path.abspath(__file__)), "psi_guest")
        words = [guest, "--timeout", "300", "--logged", disk, log, "--kill-at", "cut"]
        if self.options.kernels:
            words += ["--kernels", self.options.kernels]
        words += ["--", self.options.writer, "write", "/dev/nvme0n2",
                  str(self.rng.randint(SHORTEST, LONGEST))]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=False)
        if done.returncode == 77:
            sys.exit(77)
        if done.returncode != 0:
            sys.exit(f"FAILED: the guest exited with {done.returncode}\n{done.stdout.decode()}")

    def look(self, image, taken, durable):
        """Checks an image. Returns the number of decisions on it."""
        run(["/sbin/e2fsck", "-p", image], allowed=(0, 1))
        run(["/sbin/e2fsck", "-fn", image])
        out = self.path("out")
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        run(["/sbin/debugfs", "-R", f"rdump / {out}", image])
        reported = run([self.options.writer, "check", f"{out}/h.db", str(taken), str(durable)])
        return int(reported)

    def one_round(self, number, before):
        """Boots with the disk, kills the machine and cuts. Returns the decisions that are left."""
        disk, log, base = self.path("disk"), self.path("log"), self.path("base")
        shutil.copyfile(disk, base)
        self.boot_and_kill(disk, log)
        entries = list(read_log(log))
        marks = [i for i, entry in enumerate(entries) if mark_of(entry)]
        if len(marks) < SHORTEST / 2:
            sys.exit(f"FAILED: only {len(marks)} decisions in the log")
        cuts = sorted(self.rng.sample(range(len(entries)), self.options.cuts))
        replayed, place, taken, durable = Disk(base), 0, before, 0
        for cut in cuts:
            while place < cut:
                taken, durable = mark_of(entries[place]) or (taken, durable)
                replayed.take(entries[place])
                place += 1
            lost = replayed.cut(disk, self.rng)
            left = self.look(disk, taken, max(durable, before))
            print(f"round {number}: cut at {cut} of {len(entries)}: {taken} taken, {durable} must "
                  f"be there, {left} are; {lost} volatile sectors lost", flush=True)
            self.most_lost = max(self.most_lost, taken - left)
            self.sectors_lost += lost
        return left

    def all_rounds(self):
        disk = self.path("disk")
        with open(disk, "wb") as file:
            file.truncate(DISK_BYTES)
        run(["/sbin/mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0",
             disk, f"{(DISK_BYTES - MARK_BYTES) // 1024}k"])
        left = 0
        for number in range(1, self.options.rounds + 1):
            left = self.one_round(number, left)
        if self.sectors_lost == 0:
            sys.exit("FAILED: no cut lost a sector, so nothing is proved")
        print(f"{self.options.rounds * self.options.cuts} cuts; at most {self.most_lost} decisions "
              "were lost at once, and no durable decision was lost")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cuts", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels")
    parser.add_argument("writer")
    with tempfile.TemporaryDirectory() as folder:
        Test(parser.parse_args(), folder).all_rounds()


main()
