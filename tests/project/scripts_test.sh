#!/usr/bin/env bash
# What ./run and ./test do about packages, with stand-ins for dpkg-query, apt-get and sudo.
set -euo pipefail
root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export QUEEN_CREATECLUSTER_DIR=$scratch/createcluster.d
mkdir "$scratch/bin"
failures=0

check() { # check WHAT CONDITION...
    local what=$1
    shift
    if "$@"; then
        echo "ok: $what"
    else
        echo "FAILED: $what"
        failures=$((failures + 1))
    fi
}

stand_in() { # stand_in NAME: its body comes on standard input
    { echo '#!/usr/bin/env bash' && cat; } >"$scratch/bin/$1"
    chmod +x "$scratch/bin/$1"
}

# Packages count as installed when they stand in $scratch/installed.
stand_in dpkg-query <<'STUB'
for name in "$@"; do
    grep -qx "$name" "$SCRATCH/installed" && echo "$name installed"
done
true
STUB
# Notes its words, and whether Debian's own cluster was ruled out at that moment.
stand_in apt-get <<'STUB'
echo "$*" >>"$SCRATCH/apt"
[[ $1 == update ]] || cat "$QUEEN_CREATECLUSTER_DIR"/*.conf >>"$SCRATCH/apt" 2>/dev/null || true
[[ $1 == update || ! -e $SCRATCH/apt-fails ]]
STUB
stand_in sudo <<'STUB'
echo sudo >>"$SCRATCH/sudo"
exec "$@"
STUB
export SCRATCH=$scratch PATH=$scratch/bin:$PATH

# ensure NAME... : in a shell of its own, as the scripts call it.
ensure() {
    : >"$scratch/apt"
    bash -c 'source "$1/tools/lib.sh" && shift && ensure_packages "$@"' _ "$root" "$@" 2>"$scratch/err"
}

printf '%s\n' g++ cmake >"$scratch/installed"
ensure g++ cmake
check "nothing is asked of apt when nothing is missing" test ! -s "$scratch/apt"
check "and nothing is said" test ! -s "$scratch/err"

ensure g++ ccache jq
check "only what is missing is installed" grep -q -- '--no-install-recommends ccache jq$' "$scratch/apt"
check "without a server package the cluster setting is left alone" test ! -e "$QUEEN_CREATECLUSTER_DIR"

ensure g++ postgresql-15
check "Debian's cluster is ruled out while the server is installed" \
    grep -qx 'create_main_cluster = false' "$scratch/apt"
check "and not afterwards" test ! -e "$QUEEN_CREATECLUSTER_DIR/queen-build.conf"

touch "$scratch/apt-fails"
if ensure postgresql-15; then refused=1; else refused=0; fi
check "a failed install ends the script" test "$refused" -eq 0
check "with a line that names the packages" grep -q 'could not install postgresql-15' "$scratch/err"
check "and the cluster setting is taken back all the same" \
    test ! -e "$QUEEN_CREATECLUSTER_DIR/queen-build.conf"
rm "$scratch/apt-fails"

# Who is not root goes through sudo.
stand_in id <<'STUB'
echo 1000
STUB
ensure jq
check "who is not root asks through sudo" test -s "$scratch/sudo"
rm "$scratch/bin/id"

for script in run test; do
    if "$root/$script" --no-such-option >/dev/null 2>"$scratch/err"; then status=0; else status=$?; fi
    check "./$script refuses an unknown option with 2" test "$status" -eq 2
    check "./$script shows how it is used" grep -q "usage: ./$script" "$scratch/err"
    check "./$script helps from any folder" bash -c "cd / && '$root/$script' --help | grep -q usage"
done
exit "$((failures > 0))"
