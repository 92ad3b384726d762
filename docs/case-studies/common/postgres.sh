# An unmodified PostgreSQL server for a case study. Scripts `run` source this file after study.sh. The
# server runs as the user id 65534, which needs no account.

# Finds PostgreSQL's programs: in POSTGRES_BIN, installed by Debian, or unpacked by scripts/programs.
find_postgres() {
    local unpacked=$repository/.cache/programs place
    for place in "${POSTGRES_BIN:-}" /usr/lib/postgresql/*/bin "$unpacked"/usr/lib/postgresql/*/bin; do
        [ -x "$place/postgres" ] || continue
        postgres_bin=$place
        case $place in "$unpacked"/*) export LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu ;; esac
        return
    done
    skip "PostgreSQL is missing: install it, or run scripts/programs"
}

as_nobody() {
    setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# Makes a database in $into/data, with the content of program/setup.sql.
make_database() {
    find_postgres
    rm -rf "$into/data"
    install -d -o 65534 -g 65534 -m 700 "$into/data"
    (cd "$into/data" && as_nobody "$postgres_bin/initdb" -D . -U study -A trust -E UTF8 --locale=C --no-sync >"$into/initdb.log")
    # In this mode, each line is a statement.
    (cd "$into/data" && as_nobody "$postgres_bin/postgres" --single -D . postgres <"$study/program/setup.sql" >>"$into/initdb.log" 2>&1)
}

# A port without a listener.
free_port() {
    local port
    while port=$((20000 + RANDOM)) && (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}

# record_served GROUPS OPTION... -- CLIENT...: records the server, with its OPTIONs, and the client,
# whose first argument is the port.
record_served() {
    local groups=$1
    shift
    record --kernel "$groups" -- "$repository/docs/case-studies/common/served" \
        "$postgres_bin/postgres" "$into/data" "$(free_port)" "$@"
}
