"""Who may include whom, and which folder owns which outside library (docs/architecture.md).

Changing a row here changes the architecture: change the document in the same commit.
"""

import re

# Headers that only hold nouns: what the parts of the program tell each other.
NOUNS = {
    "cgroupfs": {"cgroupfs/cgroup_id.h", "cgroupfs/cgroup_stats.h", "cgroupfs/limits.h"},
    "collectors": {"collectors/sample.h", "collectors/containers/container_info.h"},
    "model": {"model/feature_vector.h", "model/forecast.h", "model/phase.h"},
    "policy": {"policy/decision.h", "policy/rails_config.h"},
    "storage": {"storage/history_point.h", "storage/journal_event.h", "storage/stored_record.h",
                "storage/table_page.h"},
}
ALL_NOUNS = set().union(*NOUNS.values())

# Unit (the longest prefix of a file's path that is a key) -> units it may include beside itself,
# and single headers. "*" is everything.
MAY_INCLUDE = {
    "base": (set(), set()),
    "cmake": (set(), set()),
    "collectors": ({"base"}, set()),
    "model": ({"base"}, NOUNS["collectors"]),
    "model/train": ({"base", "model"}, NOUNS["collectors"]),
    "policy": ({"base"}, NOUNS["collectors"] | NOUNS["model"]),
    "control": ({"base"}, ALL_NOUNS | {"cgroupfs/kernel_text.h"}),
    "storage": ({"base"}, ALL_NOUNS),
    "agent": ({"base", "collectors", "model", "policy", "control", "storage", "agent/pipeline",
               "agent/protocol"}, set()),
    "agent/pipeline": ({"base", "model", "policy"}, ALL_NOUNS),
    "agent/protocol": ({"base"}, ALL_NOUNS | {"protocol/report.h"}),
    "cli": ({"base", "model", "model/train", "policy", "storage", "agent/pipeline",
             "agent/protocol"}, ALL_NOUNS | {"collectors/neighbours.h", "protocol/report.h"}),
    "tests": ({"*"}, set()),
    "bench": ({"*"}, set()),
}

# Outside headers (a prefix of what stands in the brackets) -> units that may use them.
EVERYWHERE = {"*"}
OWNERS = {
    "nlohmann/": EVERYWHERE,
    "fmt/": EVERYWHERE,
    "spdlog/": {"agent", "cli"},
    "Eigen/": {"model", "model/train"},
    "zlib.h": {"model", "model/train"},
    "libcgroup": {"control"},
    "systemd/sd-bus": {"control"},
    "systemd/": {"agent"},
    "sqlite3.h": {"storage"},
    "toml++/": {"agent"},
    "CLI/": {"cli"},
    "boost/asio": {"agent", "cli"},
    "boost/beast": {"agent", "collectors/containers"},
    "boost/": {"agent"},
    "bpf/": {"collectors/ebpf"},
    "skeletons/": {"collectors/ebpf"},
    "doctest/": {"tests"},
}
ANYTHING = {"tests", "bench"}  # they use what the code under test uses

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


def unit_of(path):
    """The row that `path` (relative to the root) belongs to, or None."""
    best = None
    for unit in list(MAY_INCLUDE) + ["collectors/containers", "collectors/ebpf"]:
        inside = path.startswith(unit + "/") or path.startswith(unit + ".") or \
            path.startswith(unit + "_")
        if inside and (best is None or len(unit) > len(best)):
            best = unit
    return best


def row_of(unit):
    while unit not in MAY_INCLUDE:
        unit = unit.rpartition("/")[0]
    return unit


def project_complaint(path, header):
    """Why the file at `path` may not include the project's `header`; None if it may."""
    source, target = unit_of(path), unit_of(header)
    if target is None:
        return f'"{header}" is not written from the root of the tree'
    source, target = row_of(source), row_of(target)
    units, headers = MAY_INCLUDE[source]
    if source == target or header in headers or target in units or "*" in units:
        return None
    return f'{source}/ may not include "{header}"'


def outside_complaint(path, header):
    """Why the file at `path` may not include the outside `header`; None if it may."""
    unit = unit_of(path)
    owner = max((prefix for prefix in OWNERS if header.startswith(prefix)), key=len, default=None)
    if owner is None:
        folder, _, name = header.rpartition("/")
        system = folder.partition("/")[0] in SYSTEM_FOLDERS or \
            not folder and (not name.endswith(".h") or name[:-2] in SYSTEM_HEADERS)
        return None if system else f"<{header}> belongs to no folder in the include table"
    units = OWNERS[owner]
    if "*" in units or unit in units or row_of(unit) in units or row_of(unit) in ANYTHING:
        return None
    return f"<{header}> belongs to {', '.join(sorted(units))}, not to {row_of(unit)}/"
