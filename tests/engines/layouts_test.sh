#!/bin/bash
# Containers whose files, labels or limits are not at the usual place: Docker with another data-root
# and userns-remap, a user's Podman, a Quadlet, an inner cgroup of another name, another namespace
# of containerd, and Proxmox VE's layout. The installed unit must name each, obey its label, lower
# limits at the cgroup that has them, and restore them. A container whose files nobody can find must
# stay as it is. layouts_test.sh PROGRAMS, run by scripts/guest --image.
# rule: S-09
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=engines_fixture.sh
. "$(dirname "$0")/engines_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=unit_fixture.sh
. "$(dirname "$0")/unit_fixture.sh"

expected='' lowered='' kept=''

# expect NAME ENGINE IMAGE MODE CGROUP: what the daemon must report, and whether it may lower.
expect() {
  expected+="$1 $2 ${3:--} $4 /$5"$'\n'
  if [ "$4" = enforce ]; then lowered+=" $5"; else kept+=" $5"; fi
}

docker_elsewhere() {
  local id
  echo 'remapped:300000:65536' | tee -a /etc/subuid >>/etc/subgid
  must useradd --system remapped
  must sed -i 's|^{|{"data-root": "/srv/engine", "userns-remap": "remapped",|' \
    /etc/docker/daemon.json
  must systemctl start docker
  must docker import /tmp/root.tar shop:1 >/dev/null
  id=$(must docker run -d --name web --label cgphase.mode=enforce "${limits[@]}" shop:1 \
    sleep 1000) || exit
  expect web docker shop:1 enforce "system.slice/docker-$id.scope"
  id=$(must docker run -d --name cart --label cgphase.mode=observe "${limits[@]}" shop:1 \
    sleep 1000) || exit
  expect cart docker shop:1 observe "system.slice/docker-$id.scope"
}

# As ann, with her systemd and her directory for images.
of_ann() {
  (cd / && runuser -u ann -- env XDG_RUNTIME_DIR="/run/user/$ann" \
    DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/$ann/bus" "$@")
}

podman_of_a_user() {
  local id
  must useradd --create-home ann
  ann=$(id -u ann)
  must systemctl start "user@$ann"
  must of_ann podman import -q /tmp/root.tar localhost/batch:3 >/dev/null
  id=$(must of_ann podman run -d --name hers --label cgphase.mode=enforce "${limits[@]}" \
    localhost/batch:3 sleep 1000) || exit
  expect hers podman localhost/batch:3 enforce "$(inner_of "$(pid_of of_ann podman "$id")")"
}

pid_of() { must "${@:1:$#-1}" inspect -f '{{.State.Pid}}' "${@: -1}"; }  # PODMAN... ID
inner_of() { sed 's|^0::/||' "/proc/$1/cgroup"; }                         # PID

podman_of_root() {
  local id
  must podman import -q /tmp/root.tar localhost/batch:2 >/dev/null
  id=$(must podman --runtime crun run -d --name inner --label cgphase.mode=observe "${limits[@]}" \
    --annotation run.oci.systemd.subgroup=work localhost/batch:2 sleep 1000) || exit
  expect inner podman localhost/batch:2 observe "machine.slice/libpod-$id.scope/work"
  must podman --root /srv/hidden import -q /tmp/root.tar localhost/batch:2 >/dev/null
  id=$(must podman --root /srv/hidden --runtime runc run -d --name hidden "${limits[@]}" \
    --label cgphase.mode=observe localhost/batch:2 sleep 1000) || exit
  expect "${id:0:12}" podman '' unknown "machine.slice/libpod-$id.scope"
}

# Podman 4.3 of Debian 12 has no generator, so the unit is what one would generate.
quadlet() {
  if [ -x /usr/lib/systemd/system-generators/podman-system-generator ]; then
    mkdir -p /etc/containers/systemd
    printf '%s\n' '[Container]' 'ContainerName=split' 'Image=localhost/batch:2' \
      'Exec=sleep 1000' 'Network=none' 'Label=cgphase.mode=enforce' '[Service]' 'MemoryMax=64M' \
      'CPUQuota=50%' >/etc/containers/systemd/split.container
    must systemctl daemon-reload
    must systemctl start split
  else
    must systemd-run --quiet --unit split -p Delegate=yes -p MemoryMax=64M -p CPUQuota=50% \
      -p Type=notify -p NotifyAccess=all podman run -d --rm --name split --cgroups=split \
      --sdnotify=conmon --network none --label cgphase.mode=enforce localhost/batch:2 sleep 1000
  fi
  expect split podman localhost/batch:2 enforce system.slice/split.service
}

other_namespace() {
  must ctr -n ci run -d --rootfs --label cgphase.mode=advise --memory-limit 67108864 --cpus 0.5 \
    /tmp/root job /bin/sleep 1000
  expect job containerd '' advise ci/job
  must ctr -n ci run -d --rootfs --label cgphase.mode=enforce --memory-limit 67108864 --cpus 0.5 \
    /tmp/root task /bin/sleep 1000
  expect task containerd '' enforce ci/task
}

# Debian has no Proxmox VE, so its layout is made by hand.
proxmox_container() {
  mkdir -p "$root/lxc/101/ns" /etc/pve/nodes/guest/lxc
  echo '+cpu +memory' >"$root/lxc/cgroup.subtree_control"
  echo 67108864 >"$root/lxc/101/memory.max"
  echo 50000 100000 >"$root/lxc/101/cpu.max"
  sleep 1000 &
  echo "$!" >"$root/lxc/101/ns/cgroup.procs"
  ln -s nodes/guest/lxc /etc/pve/lxc
  printf 'arch: amd64\nhostname: mail\n' >/etc/pve/nodes/guest/lxc/101.conf
  expect mail lxc '' enforce lxc/101
}

reported() {
  cgphase list -o json | python3 -c 'import json, sys
for c in json.load(sys.stdin)["containers"]:
    mode = "unknown" if c.get("labels_unknown") else c["mode"]
    print(c["name"], c["engine"], c["image"] or "-", mode, c["path"])' | sort >/tmp/reported
}
all_reported() {
  reported
  [ "$(cat /tmp/reported)" = "$(sort <<<"${expected%$'\n'}")" ]
}

is_lowered() {  # CGROUP KNOB
  local in_force before
  read -r in_force _ <"$root/$1/$2"
  before=$(sed -n "s|^$1/$2=||p" <<<"$original")
  is_below "$in_force" "${before% *}"
}
all_lowered() {
  local cgroup
  for cgroup in $lowered; do
    is_lowered "$cgroup" cpu.max && is_lowered "$cgroup" memory.high || return 1
  done
}

busybox_root
install_programs
docker_elsewhere
podman_of_a_user
podman_of_root
quadlet
other_namespace
proxmox_container
cgroups="$lowered $kept"
original=$(snapshot $cgroups)
kept_before=$(snapshot $kept)
write_config /nothing
sed -i 's/^cgroups = .*/names = ["*"]/' /tmp/cgphase.toml
use_configuration
if until_true 60000 all_reported; then
  echo 'each is reported with its name, engine, image, mode and cgroup'
else
  fail 'the containers are not reported as expected'
  diff <(sort <<<"${expected%$'\n'}") /tmp/reported
fi
cgphase list | grep -q 'labels unknown' || fail 'list does not report the unknown labels'
cgphase doctor | grep -q 'labels of 1 container' || fail 'doctor does not report the unknown labels'
if until_true 90000 all_lowered; then
  echo 'all that may be lowered are lowered'
else
  fail "not lowered within 90 s: $(snapshot $lowered)"
  cgphase events | grep -v "stays at\|trial"
fi
[ "$(snapshot $kept)" = "$kept_before" ] || fail "a limit that a label forbids was changed"
must systemctl stop cgphased
all_original || fail "not restored: $(difference)"
finish
