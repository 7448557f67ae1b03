#!/bin/sh
# A server with an address for each cure, for tests of `sslsweep regress`: two of `sslsweep serve` that speak as one.
#   SSLSWEEP       the program
#   TWO_DOORS      JSON of the address of each cure, with NONE and SWEEP for the two that there are
#   TWO_DOORS_TOO  more members of the event listening, each with a comma before it
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for name in a b; do mkfifo "$folder/$name.in" "$folder/$name.out"; done

# with_cure CURE ARGUMENT...: serves with CURE, whatever cure the arguments name.
with_cure() {
    cure=$1
    shift
    previous=
    for argument; do
        shift
        [ "$previous" != --cure ] || set -- "$@" "$cure"
        [ "$previous" = --cure ] || set -- "$@" "$argument"
        previous=$argument
    done
    exec "$SSLSWEEP" "$@"
}
# member JSON NAME: a member that is a text, as it is written.
member() { printf '%s' "$1" | sed "s/.*\"$2\":\"\([^\"]*\)\".*/\1/"; }

# cpu_ns JSON: a member that is a number.
cpu_ns() { printf '%s' "$1" | sed 's/.*"cpu_ns":\([0-9]*\).*/\1/'; }

with_cure none "$@" <"$folder/a.in" >"$folder/a.out" &
with_cure sweep "$@" <"$folder/b.in" >"$folder/b.out" &
exec 3>"$folder/a.in" 4<"$folder/a.out" 5>"$folder/b.in" 6<"$folder/b.out"
read -r none <&4
read -r sweep <&6
addresses=$(printf '%s' "$TWO_DOORS" |
    sed "s/NONE/$(member "$none" address)/g; s/SWEEP/$(member "$sweep" address)/g")
printf '{"event":"listening","addresses":%s,"certificate":"%s%s","version":"%s"%s}\n' "$addresses" \
    "$(member "$none" certificate)" "$(member "$sweep" certificate)" "$(member "$none" version)" "${TWO_DOORS_TOO-}"

# The ledger is the second one's, CPU is that of both.
while read -r order; do
    echo "$order" >&5
    read -r sweep <&6
    case $order in
    cure*) sweep='{"event":"error","message":"it has an address for each cure"}' ;;
    cpu)
        echo "$order" >&3
        read -r none <&4
        sweep="{\"event\":\"cpu\",\"cpu_ns\":$(($(cpu_ns "$none") + $(cpu_ns "$sweep")))}"
        ;;
    esac
    printf '%s\n' "$sweep"
    [ "$order" != quit ] || break
done
exec 3>&- 5>&-
wait
