# What ./run, ./test and .ci/run share. Sourced, not run. Sets QUEEN_ROOT.
set -euo pipefail

QUEEN_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# docs/dependencies.md says what each is for.
QUEEN_BUILD_PACKAGES=(
    cmake ninja-build g++ ccache lld pkg-config
    libpoco-dev libssl-dev libyaml-cpp-dev libboost-dev libboost-filesystem-dev libboost-system-dev
    libzstd-dev libxxhash-dev libexpected-dev rapidjson-dev libpq-dev prometheus-cpp-dev
    postgresql-15
)
QUEEN_TEST_PACKAGES=(
    libgtest-dev libgmock-dev librapidcheck-dev
    clang-format-14 clang-tidy-14
    curl jq libfaketime
)

# Node and npm for tests/sdk; a Node that did not come from Debian is as good, and brings its npm.
ensure_node() {
    local missing=()
    command -v node >/dev/null || missing+=(nodejs)
    command -v npm >/dev/null || missing+=(npm)
    [[ ${#missing[@]} -eq 0 ]] || ensure_packages "${missing[@]}"
}

say() { printf '%s\n' "$*" >&2; }

die() {
    say "$*"
    exit 1
}

as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "root is needed for: $*"
    fi
}

# missing_packages NAME... : those of them that are not installed, one a line.
missing_packages() {
    local installed
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
        sed -n 's/ installed$//p' || true)
    printf '%s\n' "$@" | grep -Fxv -f <(printf '%s\n' "$installed") || true
}

# ensure_packages NAME... : installs what is missing; says and does nothing when nothing is.
ensure_packages() {
    if ! command -v dpkg-query >/dev/null; then
        say "this is not Debian; make sure that these are here: $*"
        return
    fi
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0

    say "installing ${missing[*]}"
    local drop_in=${QUEEN_CREATECLUSTER_DIR:-/etc/postgresql-common/createcluster.d}/queen-build.conf
    local server=0
    if printf '%s\n' "${missing[@]}" | grep -q '^postgresql-[0-9]'; then
        # The broker makes a private cluster of its own. Debian would make and start another one on
        # port 5432 while the package is set up, unless told so before.
        server=1
        as_root mkdir -p "$(dirname "$drop_in")"
        echo 'create_main_cluster = false' | as_root tee "$drop_in" >/dev/null
    fi
    local status=0
    as_root apt-get update -qq || say "apt-get update failed; trying with the lists that are here"
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2 || status=$?
    if [[ $server -eq 1 ]]; then
        as_root rm -f "$drop_in" # later servers of this machine are not ours to decide
        as_root rmdir --ignore-fail-on-non-empty "$(dirname "$drop_in")"
    fi
    [[ $status -eq 0 ]] || die "apt-get could not install ${missing[*]}"
}

# configure PRESET TESTS(ON|OFF) : makes build/PRESET unless it is there, and brings it up to date
# with changed CMake files.
configure() {
    local preset=$1 tests=$2 cache=$QUEEN_ROOT/build/$1/CMakeCache.txt
    if [[ -f $QUEEN_ROOT/build/$preset/build.ninja ]] &&
        { [[ $tests == OFF ]] || grep -q '^QUEEN_BUILD_TESTS:BOOL=ON' "$cache"; } &&
        ninja -C "$QUEEN_ROOT/build/$preset" build.ninja >/dev/null 2>&1; then
        return
    fi
    say "configuring build/$preset"
    local log
    log=$(mktemp)
    if ! (cd "$QUEEN_ROOT" && cmake --preset "$preset" -DQUEEN_BUILD_TESTS="$tests") >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        die "cmake failed"
    fi
    rm -f "$log"
}

# build PRESET TARGET... : silent when nothing is to do.
build() {
    local preset=$1 status=0
    shift
    # grep ends with 1 when it has nothing to pass on; only ninja's own status counts.
    ninja -C "$QUEEN_ROOT/build/$preset" -j "$(nproc)" "$@" 2>&1 |
        { grep --line-buffered -v -e '^ninja: Entering directory' -e '^ninja: no work to do' \
            -e 'Re-checking globbed directories' >&2 || true; } || status=$?
    [[ $status -eq 0 ]] || die "the build failed"
}

# product_targets : everything but tests, as far as this tree has it.
product_targets() {
    local folder
    for folder in core plugins tools examples bench; do
        if grep -q "add_subdirectory($folder)" "$QUEEN_ROOT/CMakeLists.txt"; then
            echo "$folder/all"
        fi
    done
}
