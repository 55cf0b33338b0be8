#!/usr/bin/env bash
# run_targets_test.sh ROOT BUILD: configures the tree without tests, as ./run does, and looks for each
# target that ./run builds.
set -euo pipefail
root=$1 build=$2
cmake -S "$root" -B "$build" -G Ninja -DQUEEN_BUILD_TESTS=OFF >"$build.log" 2>&1 || {
    cat "$build.log"
    exit 1
}
mapfile -t targets < <(bash -c 'source "$1/tools/lib.sh" && product_targets' _ "$root")
[[ ${#targets[@]} -gt 3 ]] || { echo "only ${#targets[@]} targets"; exit 1; }
ninja -C "$build" -n "${targets[@]}" >/dev/null
echo "known: ${targets[*]}"
