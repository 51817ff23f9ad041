#!/bin/bash
# The Ansible role on a whole Debian with systemd. It installs the package from a repository and
# from a file, and a service that it names is enforced. A second run changes nothing, a wrong
# configuration is not written, and systemd is never reloaded. ansible_test.sh PROGRAMS FOLDER, run
# by scripts/guest --image with this machine's Python modules; the package is in FOLDER.
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR/../engines source=../engines/unit_fixture.sh
. "$(dirname "$0")/../engines/unit_fixture.sh"
# shellcheck source-path=SCRIPTDIR/../package source=../package/package_fixture.sh
. "$(dirname "$0")/../package/package_fixture.sh"
package=$(find "$2" -maxdepth 1 -name 'cgphase_*.deb')
config=/etc/cgphase/conf.d/ansible.toml
export ANSIBLE_ROLES_PATH=$tree/packaging/ansible ANSIBLE_PIPELINING=1 ANSIBLE_NOCOLOR=1
export ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3

repository() {
  mkdir /tmp/repository
  cp "$package" /tmp/repository
  {
    must dpkg-deb -f "$package"
    echo "Filename: ./${package##*/}"
    echo "Size: $(stat -c %s "$package")"
    echo "SHA256: $(sha256sum <"$package" | cut -d ' ' -f 1)"
  } >/tmp/repository/Packages
  rm -rf /etc/apt/sources.list.d/*
  echo 'deb [trusted=yes] file:/tmp/repository ./' >/etc/apt/sources.list
}

# The playbook of the README, for this machine.
write_playbook() {
  sed -n '/^```yaml/,/^```$/p' "$tree/packaging/ansible/README.md" | sed 's/^```.*//
    s/^- hosts: .*/&\n  gather_facts: false/' >/tmp/playbook.yml
  grep -q 'role: cgphase' /tmp/playbook.yml || unproved 'the README has no playbook'
}

# The variables replace those of the README.
playbook() {  # DEB MODE
  python3 -m ansible playbook -i container_hosts, -c local -e "{\"cgphase_deb\": \"$1\",
    \"cgphase_mode\": \"$2\", \"cgphase_enforce_names\": [\"plain.*\"],
    \"cgphase_config\": {\"include\": [\"/system.slice/plain.service\"]}}" \
    /tmp/playbook.yml >/tmp/ansible.log 2>&1
}
run_role() {  # CHANGES DEB
  if ! playbook "$2" enforce; then
    fail "the role fails with package '$2'"
  elif ! grep -q " changed=$1 .*failed=0 " /tmp/ansible.log; then
    fail "with package '$2' the role does not make $1 changes"
  else
    echo "package '$2': $1 changes"
    return
  fi
  cat /tmp/ansible.log
}
enforced() { cgphase show plain.service --json 2>/dev/null | grep -q '"mode": "enforce"'; }

[ -d /usr/lib/python3/dist-packages/ansible ] ||
  { echo 'skipped: install the package ansible-core'; exit 77; }
[ -n "$package" ] || unproved "no cgphase_*.deb in $2; run scripts/package"
repository
write_playbook
must systemd-run --quiet --unit plain -p MemoryMax=64M sleep 10000
loaded=$(units_loaded)
run_role 3 ''
until_true 20000 enforced || fail "plain.service is not enforced: $(cgphase list)"
run_role 1 "$package"
run_role 0 "$package"
before=$(cat $config)
if playbook "$package" Enforce; then fail 'the role accepts a wrong mode'; fi
[ "$(cat $config)" = "$before" ] || fail 'the role writes a wrong configuration'
[ "$(units_loaded)" = "$loaded" ] || fail 'systemd was reloaded'
finish
