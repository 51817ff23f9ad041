#!/bin/bash
# Runs Prometheus' own checker on the rules of packaging/prometheus, on their tests, on the text
# that node_exporter reads, and on the queries of the dashboard. The Debian package would start a
# server, so only its promtool is unpacked.
# promtool_test.sh FOLDER PRINT_METRICS
set -euo pipefail
folder=$(realpath -m "$1") print_metrics=$(realpath "$2")
tree=$(realpath "$(dirname "$0")/../..")

fetch() {
  mkdir -p "$folder"
  (cd "$folder" && timeout 120 apt-get -qq -o APT::Sandbox::User=root download prometheus) || return
  dpkg-deb --fsys-tarfile "$folder"/prometheus_*.deb | tar -xO ./usr/bin/promtool >"$folder/new" ||
    return
  rm -f "$folder"/prometheus_*.deb
  chmod +x "$folder/new"
  mv "$folder/new" "$folder/promtool"
}

promtool=$(command -v promtool || echo "$folder/promtool")
if [ ! -x "$promtool" ] && ! fetch; then
  echo 'skipped: the package prometheus (promtool) cannot be downloaded; install it'
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$tree/packaging/prometheus/prometheus-rules.yml" \
  "$tree/tests/packaging/prometheus-rules-test.yml" "$work"
cd "$work"
"$promtool" check rules prometheus-rules.yml
"$promtool" test rules prometheus-rules-test.yml
"$print_metrics" prometheus >page
"$promtool" check metrics <page
"$tree/tests/packaging/dashboard_queries.py" <page >queries.yml
"$promtool" test rules queries.yml
echo 'promtool: rules, their tests, the textfile and the queries of the dashboard pass'
