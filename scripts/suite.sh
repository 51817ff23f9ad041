# Finds the package sources of a suite. Sourced by scripts that make systems with mmdebstrap or
# download single packages.
# shellcheck shell=bash

# suite_system SUITE FOLDER: sets `suite_options`, mmdebstrap's options for every system of SUITE,
# and `suite_sources`, this machine's package sources. `suite_sources` is empty if the machine is of
# another family; mmdebstrap then uses its defaults. Files for them are written into FOLDER.
# shellcheck disable=SC2034
suite_system() {
  local suite=$1 folder=$2 family=debian id codename keyring file list url
  # shellcheck disable=SC1091
  read -r id codename < <(. /etc/os-release && echo "$ID" "${VERSION_CODENAME:-none}")
  apt-config dump Acquire >"$folder/apt.conf"
  suite_options=(--quiet --mode=root --aptopt="$folder/apt.conf"
    --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io)
  suite_sources=()
  case $suite in jammy | noble | resolute) family=ubuntu ;; esac
  if [ $family = ubuntu ]; then
    keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
    if [ ! -s $keyring ]; then  # Debian 12 has no package of it, Debian 13 has one
      suite_system trixie "$folder"
      mmdebstrap "${suite_options[@]}" --variant=extract --include=ubuntu-archive-keyring \
        trixie "$folder/keyring" "${suite_sources[@]}"
      keyring=$folder/keyring$keyring
      chmod a+rx "$folder"  # apt reads it as another user
    fi
    suite_options+=(--components=main,universe --keyring="$keyring")
    # Its packages do not merge /bin, /lib and /sbin with /usr, but its installer does.
    [ "$suite" != jammy ] ||
      suite_options+=(--setup-hook=/usr/share/mmdebstrap/hooks/merged-usr/setup00.sh)
    suite_sources=()
  fi
  [ "$id" = $family ] || return 0
  for file in /etc/apt/sources.list.d/$family.sources /etc/apt/sources.list; do
    [ -s "$file" ] || continue
    suite_sources=("$folder/$suite-${file##*/}")
    sed "s/$codename/$suite/g" "$file" >"${suite_sources[0]}"
    # Cloud images keep addresses in files that a new system does not have.
    for list in $(grep -o 'mirror+file:[^ ]*' "${suite_sources[0]}" | sort -u); do
      url=$(awk '/^[a-z]+:/ { print $1; exit }' "${list#mirror+file:}")
      sed -i "s|$list|${url:?no address in $list}|g" "${suite_sources[0]}"
    done
    return
  done
}

# suite_apt SUITE ARCHITECTURE FOLDER: sets `apt_options` for apt-get and apt-cache, so that they
# use another SUITE of Debian and do not change this machine's lists. The lists are stored in
# FOLDER.
# shellcheck disable=SC2034
suite_apt() {
  local suite=$1 architecture=$2 folder=$3 file sources=''
  for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    [ ! -s "$file" ] || { sources=$folder/${file##*/}; break; }
  done
  [ -n "$sources" ] && grep -q bookworm "$file" || return
  mkdir -p "$folder/lists/partial" "$folder/archives/partial"
  sed "s/bookworm/$suite/g" "$file" >"$sources"
  apt_options=(-o "Dir::Etc::SourceList=$sources" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder" -o Acquire::Languages=none
    -o APT::Sandbox::User=root -o Dir::State::status=/dev/null
    -o "APT::Architecture=$architecture" -o "APT::Architectures::=$architecture")
  timeout 120 apt-get -qq "${apt_options[@]}" update
}
