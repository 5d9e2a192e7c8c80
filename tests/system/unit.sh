#!/bin/bash
# The service as systemd runs it: the unit is right, the first token goes into a file and not into a
# log, a database of a newer program is left alone, and there is one server for a state folder.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
export WB_STATE=$tmp/state WB_RECIPES=$PWD/recipes WB_WEB=$PWD/web
unset WB_TOKEN WB_TOKEN_FILE WB_SERVER
store=$tmp/store.git

make -s install DESTDIR="$tmp/root" PREFIX=/usr >/dev/null 2>"$tmp/err" || bad "it installs" "$(cat "$tmp/err")"
unit=$tmp/root/usr/lib/systemd/system/weighbridge.service
check "the unit names the installed program" grep -q '^ExecStart=/usr/bin/weighbridge serve ' "$unit"
check "the group of readers is there" grep -q '^g weighbridge ' "$tmp/root/usr/lib/sysusers.d/weighbridge.conf"
if command -v systemd-analyze >/dev/null; then
    mkdir "$tmp/units"
    # Where it is installed for this test; the manual page is there, too.
    sed -e "s|/usr/bin/weighbridge|$tmp/root/usr/bin/weighbridge|" -e '/^Documentation/d' "$unit" >"$tmp/units/weighbridge.service"
    systemd-analyze verify "$tmp/units/weighbridge.service" >"$tmp/verify" 2>&1
    is "systemd finds nothing wrong with it" "0 " "$? $(grep -v 'docker.service' "$tmp/verify")"
    exposure=$(systemd-analyze security --offline=true "$tmp/units/weighbridge.service" 2>/dev/null |
        sed -nE 's/.*Overall exposure level.*: ([0-9.]+) .*/\1/p')
    check "it has not more than it needs (exposure $exposure)" awk "BEGIN { exit !(${exposure:-10} < 7) }"
else
    ok "systemd is not here: its opinion of the unit was not asked"
fi
check "serve has a manual page" grep -q pools "$tmp/root/usr/share/man/man1/weighbridge-serve.1"

serve() { # ARGS...
    rm -f "$tmp/serve"
    "$wb" serve --store "$store" --port 0 "$@" >"$tmp/serve" 2>"$tmp/serve.err" &
    server=$!
    cleanup+=("kill -9 $server")
    within 30 grep -q '^listening' "$tmp/serve" || bad "the server starts" "$(cat "$tmp/serve.err")"
    url=$(sed -n 's/^listening on //p' "$tmp/serve")
}
"$wb" serve --store "$store" --port 0 --token-file "$tmp/no/such/folder" >/dev/null 2>"$tmp/err"
is "a token that could not be kept is not made" 21 "$?"
serve --token-file "$tmp/admin.token"
is "the token is for its owner alone" 600 "$(stat -c %a "$tmp/admin.token")"
check "and in no log" test "$(cat "$tmp/serve" "$tmp/serve.err" | grep -c "$(cut -c 20-40 "$tmp/admin.token")")" = 0
"$wb" list --server "$url" --token-file "$tmp/admin.token" >/dev/null 2>&1
is "it opens" 0 "$?"
"$wb" serve --store "$store" --port 0 >/dev/null 2>"$tmp/err"
is "there is one server for a state folder" 22 "$?"
kill -TERM "$server"
wait "$server"
is "it ends when told to" 0 "$?"
cp "$tmp/admin.token" "$tmp/before"
serve --token-file "$tmp/admin.token"
check "a second start leaves the file alone" cmp -s "$tmp/admin.token" "$tmp/before"
kill -TERM "$server"
wait "$server"

perl -e 'open my $f, "+<", $ARGV[0]; seek $f, 60, 0; print $f pack("N", 99)' "$WB_STATE/service/service.db"
sum=$(md5sum <"$WB_STATE/service/service.db")
"$wb" serve --store "$store" --port 0 >/dev/null 2>"$tmp/err"
is "a database of a newer program" 13 "$?"
check "is named with its version" grep -q 'has version 99' "$tmp/err"
is "and left alone" "$sum" "$(md5sum <"$WB_STATE/service/service.db")"
summary
