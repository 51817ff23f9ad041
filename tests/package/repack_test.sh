#!/bin/bash
# Makes the other forms of the package in FOLDER: .rpm and .tar.zst, and two signed apt
# repositories, of which the second also has a later version. repack_test.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { echo "FAILED: $*"; exit 1; }
folder=$(realpath "$1")
deb=$(find "$folder" -maxdepth 1 -name 'cgphase_*.deb')
for tool in rpmbuild apt-ftparchive gpg; do
  command -v $tool >/dev/null || fail "$tool is missing; run scripts/install-dependencies"
done

rm -rf "$folder"/*.rpm "$folder"/*.tar.zst "$folder/first" "$folder/second" "$folder/later"
packaging/other/repack "$deb" "$folder"
rpm=$(find "$folder" -name 'cgphase-*.rpm')
rpm -qp --requires "$rpm" >"$folder/requires"
cat "$folder/requires"
grep -q 'libc.so.6(GLIBC_2.34)' "$folder/requires" || fail 'the .rpm does not say which C library'
! grep -E 'GLIBC_2\.3[5-9]|libbpf|libcgroup|sqlite|libelf|libstdc' "$folder/requires" ||
  fail 'the .rpm requires what Rocky 9 does not have'
rpm -qpl "$rpm" | sort >"$folder/listed"
for file in /usr/sbin/cgphased /usr/lib/cgphase/setup /etc/cgphase/cgphase.toml \
  /usr/lib/systemd/system/cgphased.service; do
  grep -qx "$file" "$folder/listed" || fail "the .rpm lacks $file"
done
! grep -x '/usr/lib\|/usr\|/etc' "$folder/listed" || fail 'the .rpm owns a folder of the system'
[ "$(rpm -qpc "$rpm")" = /etc/cgphase/cgphase.toml ] || fail 'the .rpm would replace configuration'

export GNUPGHOME=$folder/gpg
rm -rf "$GNUPGHOME"
mkdir -m 700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key 'cgphase test <test@cgphase.invalid>' \
  ed25519 sign never
key=$(gpg --list-secret-keys --with-colons | awk -F: '/^fpr:/ { print $10; exit }')
packaging/deb/repository "$folder/first" "$key" "$deb"
dpkg-deb -R "$deb" "$folder/later"
sed -i 's/^Version: .*/Version: 9.0/' "$folder/later/DEBIAN/control"
later=$folder/cgphase_9.0_$(dpkg --print-architecture).deb
dpkg-deb -b -Znone --root-owner-group "$folder/later" "$later" >/dev/null
cp -r "$folder/first" "$folder/second"
packaging/deb/repository "$folder/second" "$key" "$later"
rm -r "$folder/later" "$later"
! packaging/deb/repository "$folder/third" nobody "$deb" 2>"$folder/said" ||
  fail 'a repository was signed with a key that does not exist'
grep -q "no secret key 'nobody'" "$folder/said" || fail "unclear: $(cat "$folder/said")"
gpgconf --kill all
ls "$folder"
