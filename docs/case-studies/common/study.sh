# Shared by the scripts `run`, which source it. `begin "$@"` sets:
#   $study       directory of the case study
#   $repository  directory of the repository
#   $into        directory of all results, an absolute path
#   $program     path of tracebraid (TRACEBRAID, else from PATH)
#   $executions  number of executions (STUDY_EXECUTIONS); empty for the default of the program

# A missing requirement is not a failure of the study: exit code 3.
skip() {
    echo "run: $*" >&2
    exit 3
}

begin() {
    study=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd -P)
    repository=$(cd "$study/../../.." && pwd -P)
    program=${TRACEBRAID:-tracebraid}
    command -v "$program" >/dev/null ||
        skip "$program is missing: make build, then TRACEBRAID=target/release/tracebraid $0"
    program=$(realpath "$(command -v "$program")")
    [ "$(id -u)" = 0 ] || skip "recording the kernel needs root"
    into=${1:-/tmp/$(basename "$study")}
    executions=${STUDY_EXECUTIONS:-}
    case $executions in *[!0-9]*) skip "STUDY_EXECUTIONS is not a number" ;; esac
    mkdir -p "$into"
    into=$(realpath "$into")
    # Servers give up root: other users must be able to search the directory.
    chmod 755 "$into"
    rm -rf "$into/trace" "$into/requests.db"
}

# compile NAME [OPTION...]: compiles the program of the study, with names of functions.
compile() {
    cc -O2 -g -Wall -Wextra -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread -I "$repository/record/probe/include" \
        -o "$into/$1" "$study/program/$1.c" "${@:2}"
}

# record OPTION... -- COMMAND...: records into $into/trace, with call stacks and probes.
record() {
    "$program" record -q --stacks --probes '*' -o "$into/trace" "$@" </dev/null
}

# build: makes the database of executions.
build() {
    "$program" executions build "$into/trace" -o "$into/requests.db" --file "$study/requests.periods"
}

# compare OPTION...: compares groups of executions.
compare() {
    "$program" compare "$into/requests.db" "$@"
}
