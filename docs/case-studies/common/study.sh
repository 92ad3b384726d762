# What the scripts `run` share; they source it. After `begin "$@"`:
#   $study       the directory of the case study
#   $repository  that of the repository
#   $into        where everything goes, an absolute path
#   $program     the program tracebraid (TRACEBRAID, else the one in PATH)
#   $executions  how many executions the study's program is to make (STUDY_EXECUTIONS), nothing for as many as it makes by itself

# What cannot be done here is no failure of the study: exit code 3.
skip() {
    echo "run: $*" >&2
    exit 3
}

begin() {
    study=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd -P)
    repository=$(cd "$study/../../.." && pwd -P)
    program=${TRACEBRAID:-tracebraid}
    command -v "$program" >/dev/null ||
        skip "$program is not there: cargo build --release, then TRACEBRAID=target/release/tracebraid $0"
    program=$(realpath "$(command -v "$program")")
    [ "$(id -u)" = 0 ] || skip "recording the kernel is for root"
    into=${1:-/tmp/$(basename "$study")}
    executions=${STUDY_EXECUTIONS:-}
    case $executions in *[!0-9]*) skip "STUDY_EXECUTIONS is no number" ;; esac
    mkdir -p "$into"
    into=$(realpath "$into")
    # Servers give up root: what they are recorded into must be a place that others may search.
    chmod 755 "$into"
    rm -rf "$into/trace" "$into/requests.db"
}

# compile NAME: the program of the study, which keeps the names of its functions.
compile() {
    cc -O2 -g -Wall -Wextra -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread -I "$repository/record/probe/include" \
        -o "$into/$1" "$study/program/$1.c"
}

# record OPTION... -- COMMAND...: into $into/trace, with call stacks and the program's own probes.
record() {
    "$program" record -q --stacks --probes '*' -o "$into/trace" "$@" </dev/null
}

# build: what was recorded, as executions.
build() {
    "$program" executions build "$into/trace" -o "$into/requests.db" --file "$study/requests.periods"
}

# compare OPTION...
compare() {
    "$program" compare "$into/requests.db" "$@"
}
