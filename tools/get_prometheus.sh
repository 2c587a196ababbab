#!/usr/bin/env sh
# Gets Prometheus and promtool for the tests out of Debian's package, without installing it:
# sh tools/get_prometheus.sh [FOLDER]. Does nothing where they are there already.
set -eu
folder=${1:-.cache/prometheus}
if [ -x "$folder/usr/bin/promtool" ]; then
    exit 0
fi
if command -v prometheus > /dev/null && command -v promtool > /dev/null; then
    exit 0
fi
if ! command -v apt-get > /dev/null || ! command -v dpkg > /dev/null; then
    echo "no apt-get here: put prometheus and promtool on the PATH for the tests that need them" >&2
    exit 1
fi
mkdir -p "$folder"
cd "$folder"
apt-get download --quiet prometheus 2> /dev/null \
    || { apt-get update --quiet && apt-get download --quiet prometheus; }
dpkg -x prometheus_*.deb .
rm prometheus_*.deb
