# A PostgreSQL server for a case study, unmodified; scripts `run` source it behind study.sh. It runs as nobody, who needs no account
# of its own.

# Finds its programs: in POSTGRES_BIN, where Debian has them, or where scripts/programs unpacks them.
find_postgres() {
    local unpacked=$repository/.cache/programs place
    for place in "${POSTGRES_BIN:-}" /usr/lib/postgresql/*/bin "$unpacked"/usr/lib/postgresql/*/bin; do
        [ -x "$place/postgres" ] || continue
        postgres_bin=$place
        case $place in "$unpacked"/*) export LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu ;; esac
        return
    done
    skip "PostgreSQL is not there: scripts/programs unpacks it"
}

as_nobody() {
    setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# Makes a database in $into/data, with what program/setup.sql says.
make_database() {
    find_postgres
    rm -rf "$into/data"
    install -d -o 65534 -g 65534 -m 700 "$into/data"
    (cd "$into/data" && as_nobody "$postgres_bin/initdb" -D . -U study -A trust -E UTF8 --locale=C --no-sync >"$into/initdb.log")
    # Each line is a statement there.
    (cd "$into/data" && as_nobody "$postgres_bin/postgres" --single -D . postgres <"$study/program/setup.sql" >>"$into/initdb.log" 2>&1)
}

# A port that nobody listens at.
free_port() {
    local port
    while port=$((20000 + RANDOM)) && (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}

# record_served GROUPS OPTION... -- CLIENT...: records the server, with options of its own, and the client, which gets the port
# as its first argument.
record_served() {
    local groups=$1
    shift
    record --kernel "$groups" -- "$repository/docs/case-studies/common/served" \
        "$postgres_bin/postgres" "$into/data" "$(free_port)" "$@"
}
