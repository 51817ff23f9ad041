"""The permissions that cgphased.service with gpu.conf leaves to a process, set up without systemd.

It sets devices, a read-only root, no network, capabilities, memory and system calls by the
kernel's own means. The unit's settings for /proc, /sys and namespaces are not tested.

confined.py CALLS PROGRAM [WORD...] filters the system calls last, because the rest of the set-up
needs calls that the unit does not have.
"""
import contextlib
import ctypes
import os
import pathlib
import platform
import re
import resource
import shutil
import struct
import subprocess
import sys

from host import TREE, cannot, cgroup_at, cgroup_root

SETTINGS = ((TREE / "systemd/cgphased.service").read_text() +
            (TREE / "systemd/gpu.conf").read_text())
PR_SET_NO_NEW_PRIVS, PR_SET_MDWE = 38, 65
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
SCMP_ACT_ALLOW, SCMP_ACT_ERRNO, SCMP_CMP_EQ = 0x7FFF0000, 0x00050000, 4
EPERM, AF_UNIX = 1, 1
BPF_PROG_LOAD, BPF_PROG_ATTACH = 5, 8
BPF_PROG_TYPE_CGROUP_DEVICE, BPF_CGROUP_DEVICE = 15, 6
CHARACTER_DEVICE = 2
MAY = {"m": 1, "r": 2, "w": 4}


def settings(name):
    return [value.strip() for value in re.findall(rf"^{name}=(.*)$", SETTINGS, re.MULTILINE)]


def members(word):
    """The system calls in one of systemd's sets."""
    if not word.startswith("@"):
        return {word}
    text = subprocess.run(["systemd-analyze", "syscall-filter", word], text=True, check=True,
                          capture_output=True).stdout
    words = [line.strip() for line in text.splitlines()[1:]]
    return set().union(*(members(one) for one in words if one and one[0] != "#"))


def system_calls(file):
    if file:
        return set(pathlib.Path(file).read_text().split())
    if not shutil.which("systemd-analyze"):
        return cannot("no systemd-analyze; give a file of the unit's system calls with --calls")
    calls = set()
    for value in settings("SystemCallFilter"):
        words = set().union(*(members(word) for word in value.lstrip("~").split()))
        calls = calls - words if value.startswith("~") else calls | words
    return calls


class Comparison(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64),
                ("b", ctypes.c_uint64)]


def filter_calls(calls):
    """Allows only these calls; also RestrictAddressFamilies=AF_UNIX."""
    seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    seccomp.seccomp_init.restype = ctypes.c_void_p
    seccomp.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int,
                                               ctypes.c_uint, ctypes.POINTER(Comparison)]
    context = ctypes.c_void_p(seccomp.seccomp_init(SCMP_ACT_ERRNO | EPERM))
    unix = Comparison(0, SCMP_CMP_EQ, AF_UNIX, 0)
    for call in sorted(calls):
        number = seccomp.seccomp_syscall_resolve_name(call.encode())
        if number < 0:  # unknown, or of another processor
            continue
        only = call == "socket"
        if seccomp.seccomp_rule_add_array(context, SCMP_ACT_ALLOW, number, int(only),
                                          ctypes.byref(unix) if only else None) != 0:
            raise OSError("seccomp_rule_add_array: " + call)
    if seccomp.seccomp_load(context) != 0:
        raise OSError("seccomp_load")


def allowed_devices():
    """(major, minor or None, access): DeviceAllow=, and those of DevicePolicy=closed."""
    listed = pathlib.Path("/proc/devices").read_text()
    rules = [(1, minor, "rwm") for minor in (3, 5, 7, 8, 9)] + [(5, 0, "rwm"), (5, 2, "rwm"),
                                                                (136, None, "rw")]
    for value in settings("DeviceAllow"):
        name, access = value.split()
        name = name.removeprefix("char-")
        found = re.search(rf"^ *(\d+) {name}$", listed, re.MULTILINE)
        if name.isdigit() or found:
            rules.append((int(name if name.isdigit() else found[1]), None, access))
    return rules


def bpf(command, attributes):
    number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    result = ctypes.CDLL(None, use_errno=True).syscall(number, command, buffer, 128)
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return result


def allow_devices(cgroup, rules):
    """As in systemd: a BPF program of the cgroup that decides at each open."""
    def instruction(code, destination=0, source=0, offset=0, value=0):
        return struct.pack("<BBhi", code, destination | source << 4, offset, value)

    def give(value):
        return [instruction(0xB7, 0, value=value), instruction(0x95)]
    program = [instruction(0x61, 2, 1, 0),            # r2 = kind and access
               instruction(0x61, 3, 1, 4),            # r3 = major
               instruction(0x61, 4, 1, 8),            # r4 = minor
               instruction(0xBF, 5, 2),
               instruction(0x77, 5, value=16),        # r5 = access
               instruction(0x57, 2, value=0xFFFF),    # r2 = kind
               instruction(0x15, 2, offset=2, value=CHARACTER_DEVICE), *give(0)]
    for major, minor, access in rules:
        allowed = sum(MAY[letter] for letter in access)
        tests = [instruction(0x55, 3, offset=0, value=major)]
        if minor is not None:
            tests.append(instruction(0x55, 4, offset=0, value=minor))
        tests += [instruction(0xBF, 6, 5), instruction(0x57, 6, value=7 & ~allowed),
                  instruction(0x55, 6, offset=0, value=0)]
        body = tests + give(1)
        for i, one in enumerate(body):
            if one[0] == 0x55:  # no match: go on with the next rule
                body[i] = one[:2] + struct.pack("<h", len(body) - i - 1) + one[4:]
        program += body
    program += give(0)
    code = ctypes.create_string_buffer(b"".join(program))
    license_name = ctypes.create_string_buffer(b"GPL")
    loaded = bpf(BPF_PROG_LOAD, struct.pack("<IIQQ", BPF_PROG_TYPE_CGROUP_DEVICE, len(program),
                                            ctypes.addressof(code),
                                            ctypes.addressof(license_name)))
    folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY)
    bpf(BPF_PROG_ATTACH, struct.pack("<IIII", folder, loaded, BPF_CGROUP_DEVICE, 0))
    os.close(folder)
    os.close(loaded)


class Confinement:
    def __init__(self, stack, calls, writable):
        self.writable = writable
        self.calls = writable / "calls"
        self.calls.write_text("\n".join(sorted(system_calls(calls))))
        self.cgroup = stack.enter_context(cgroup_at(cgroup_root() / f"cgphase-unit-{os.getpid()}"))
        allow_devices(self.cgroup, allowed_devices())

    def command(self):
        words = " ".join(settings("CapabilityBoundingSet")).split()
        capabilities = ",".join("+" + word[len("CAP_"):].lower() for word in words)
        return ["setpriv", "--bounding-set", "-all," + capabilities, "--inh-caps", "-all",
                sys.executable, "-B", __file__, self.calls]

    def enter(self):
        """Called in the child, before its first program."""
        libc = ctypes.CDLL(None, use_errno=True)

        def must(result, what):
            if result != 0:
                raise OSError(ctypes.get_errno(), what)
        (self.cgroup / "cgroup.procs").write_text("0")
        must(libc.unshare(CLONE_NEWNS | CLONE_NEWNET), "unshare")
        for command in ("mount --make-rprivate /",
                        f"mount --bind {self.writable} {self.writable}",
                        "mount -o remount,bind,ro /"):
            subprocess.run(command.split(), check=True)
        with contextlib.suppress(ValueError):  # LimitMEMLOCK=, if this process may raise it
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY,) * 2)
        must(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        must(libc.prctl(PR_SET_MDWE, 1, 0, 0, 0), "memory-deny-write-execute")


if __name__ == "__main__":
    filter_calls(set(pathlib.Path(sys.argv[1]).read_text().split()))
    os.execv(sys.argv[2], sys.argv[2:])
