"""The folders that each folder may include, and the owner of each outside library
(docs/internals/architecture.md).

Changing a row here changes the architecture: change the document in the same commit.
"""

import re

# The vocabulary: headers of values only. Every folder above their own may include them. Each is in
# the folder that owns the noun.
VOCABULARY = {
    "cgroupfs/cgroup_id.h", "cgroupfs/limits.h",
    "collectors/containers/container_info.h", "collectors/sample.h",
    "model/forecast.h", "model/phase.h",
    "policy/budget_config.h",
    "policy/decision.h", "policy/evidence.h", "policy/pin.h", "policy/safety_config.h",
    "policy/terms.h",
    "policy/budget/saving.h",
    "storage/history_point.h", "storage/journal_event.h", "storage/stored_record.h",
    "storage/table_page.h",
}

# From the bottom up. A folder may include itself, the folders of its row, and the vocabulary of the
# rows above. The folders of a row are above it in this table, or are its own sub-folders or parent.
FOLDERS = {
    "base": "",
    "cmake": "",
    "cgroupfs": "base",
    "collectors/containers": "base cgroupfs",
    "collectors": "base cgroupfs collectors/containers",
    "collectors/ebpf": "base cgroupfs collectors",
    "collectors/gpu": "base cgroupfs collectors",
    "traces": "base",
    "model": "base traces",
    "model/train": "base traces model",
    "policy": "base policy/phase policy/baselines",
    "policy/phase": "base policy",
    "policy/budget": "base policy",
    "policy/baselines": "base policy policy/phase",
    "policy/safety": "base policy policy/phase policy/budget",
    "control": "base cgroupfs",
    "control/lease": "base cgroupfs control",
    "control/fast_path": "base cgroupfs control control/lease",
    "control/writer": "base cgroupfs control control/lease control/fast_path",
    "storage": "base cgroupfs",
    "core": "base cgroupfs model policy policy/budget policy/safety",
    "protocol": "base policy/budget",
    "agent/config": "base policy policy/safety",
    "agent/server": "base protocol",
    "agent/observers": "base cgroupfs collectors collectors/ebpf collectors/gpu model "
                       "policy/phase policy/safety core",
    "agent/logging": "base cgroupfs control protocol agent/observers",
    "agent/http": "base collectors protocol agent/config agent/server agent/logging",
    "agent": "base cgroupfs collectors collectors/ebpf collectors/gpu model policy policy/budget "
             "policy/safety control/lease control/fast_path control/writer storage core protocol "
             "agent/config agent/server agent/http agent/observers agent/logging",
    "cli": "base traces policy storage protocol cli/commands cli/output",
    "cli/output": "base traces model protocol cli",
    "cli/commands": "base collectors traces model model/train policy policy/phase policy/budget "
                    "storage core protocol cli cli/output",
    "lab/plot": "base traces model cli cli/output",
    "lab/prototypes": "base traces model cli cli/commands cli/output lab/plot",
    "lab/replay": "base traces model model/train policy policy/baselines core agent/config cli "
                  "cli/commands cli/output lab/plot",
    "lab": "base traces model model/train policy cli cli/commands cli/output lab/plot lab/replay",
}
ANYTHING = {"tests", "bench"}  # they use whatever the code under test uses

# Outside headers (a prefix of the name in the brackets) -> the folders that may use them, each with
# its sub-folders.
EVERYWHERE = {"*"}
OWNERS = {
    "nlohmann/": EVERYWHERE,
    "fmt/": EVERYWHERE,
    "Eigen/": {"model"},
    "zlib.h": {"traces"},
    "libcgroup": {"cgroupfs"},
    "systemd/": {"agent"},
    "sqlite3.h": {"storage", "collectors/containers"},
    "toml++/": {"agent"},
    "CLI/": {"cli", "lab"},
    "boost/": {"agent"},
    "bpf/": {"collectors/ebpf"},
    "skeletons/": {"collectors/ebpf"},
    "doctest/": {"tests"},
}
SYSTEM_FOLDERS = {"arpa", "asm", "linux", "net", "netinet", "sys", "bits"}
SYSTEM_HEADERS = set("""
    alloca assert cpuid ctype dirent dlfcn elf endian err errno fcntl fenv fnmatch ftw
    getopt glob grp immintrin inttypes langinfo libgen limits link locale malloc math mntent
    netdb poll pthread pwd regex sched search semaphore setjmp shadow signal spawn stdarg
    stddef stdint stdio stdlib string strings sysexits syslog termios time ucontext unistd
    utime wchar x86intrin
""".split())

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes_of(lines):
    """(line number, is it quoted, header) of every #include line."""
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def folder_of(path):
    """The row of the file at `path` (relative to the root): its folder; or "tests" and "bench"."""
    folder = path.rpartition("/")[0]
    top = folder.partition("/")[0]
    if top in ANYTHING:
        return top
    return folder if folder in FOLDERS else None


def project_complaint(path, header):
    """Why the file at `path` may not include the project's `header`; None if it may."""
    source, target = folder_of(path), folder_of(header)
    if target is None:
        return f'"{header}" is not written from the root of the tree'
    if source in ANYTHING or source == target or target in FOLDERS[source].split():
        return None
    order = list(FOLDERS)
    if header in VOCABULARY and order.index(target) < order.index(source):
        return None
    return f'{source}/ may not include "{header}"'


def outside_complaint(path, header):
    """Why the file at `path` may not include the outside `header`; None if it may."""
    source = folder_of(path)
    owner = max((prefix for prefix in OWNERS if header.startswith(prefix)), key=len, default=None)
    if owner is None:
        folder, _, name = header.rpartition("/")
        system = folder.partition("/")[0] in SYSTEM_FOLDERS or \
            not folder and (not name.endswith(".h") or name[:-2] in SYSTEM_HEADERS)
        return None if system else f"<{header}> belongs to no folder in the include table"
    owners = OWNERS[owner]
    if "*" in owners or source in ANYTHING or \
            any(source == one or source.startswith(one + "/") for one in owners):
        return None
    return f"<{header}> belongs to {', '.join(sorted(owners))}, not to {source}/"
