#!/usr/bin/env bash
# Records the server under load while another process competes for both CPUs: record.sh DIRECTORY
#
# TRACEBRAID: the program (default: tracebraid). SECONDS_EACH: duration without and with the
# competing process (default: 1). Needs root, Go and two CPUs.
set -euo pipefail
to=${1:?usage: record.sh DIRECTORY}
tracebraid=${TRACEBRAID:-tracebraid}
each=${SECONDS_EACH:-1}
address=127.0.0.1:${PORT:-6060}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
started=()
end() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT

(cd "$here" && go build -o "$work/go-server" .)
# Under names of their own in the trace.
ln "$work/go-server" "$work/go-load"
ln "$work/go-server" "$work/cpu-hog"
# The first two CPUs of those that are allowed.
cpus=$(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' |
    awk -F- '{ for (cpu = $1; cpu <= ($2 == "" ? $1 : $2); cpu++) print cpu }' | head -2 | paste -sd,)
GOMAXPROCS=2 taskset -c "$cpus" "$work/go-server" serve "$address" &
started+=($!)
for _ in $(seq 100); do
    (exec 3<>"/dev/tcp/${address%:*}/${address#*:}") 2>/dev/null && break
    sleep 0.05
done
total=$(awk "BEGIN { print 2 * $each }")
GOMAXPROCS=1 taskset -c "$cpus" "$work/go-load" load "http://$address" 6 "$(awk "BEGIN { print $total + 1 }")s" &
started+=($!)
sleep 0.5
(
    sleep "$each"
    for cpu in ${cpus//,/ }; do
        GOMAXPROCS=1 taskset -c "$cpu" "$work/cpu-hog" hog "${each}s" &
    done
    wait
) &
started+=($!)
"$tracebraid" record --go "http://$address" --kernel sched,irq --duration "${total}s" -o "$to"
wait "${started[1]}"
