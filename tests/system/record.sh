#!/bin/bash
# The commands that look at records, on invented ones, with git as the judge of the store.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
store=$tmp/store.git
export WB_STORE=$store
unset WB_STATE COLUMNS
make=$build/system/make_records
git=(git -c 'safe.directory=*' "--git-dir=$store")
run=run_01JX8AB003CDEFGHJKMNPQRST

# exits NAME CODE COMMAND...: the exit code; output in $tmp/out and $tmp/err.
exits() {
    local name=$1 want=$2 rc
    shift 2
    "$@" >"$tmp/out" 2>"$tmp/err"
    rc=$?
    if [ "$rc" -eq "$want" ]; then ok "$name"; else
        bad "$name" "exit $rc instead of $want: $(head -n 3 "$tmp/out" "$tmp/err")"
    fi
}
says() { # NAME FILE TEXT
    if grep -qF -- "$3" "$2"; then ok "$1"; else bad "$1" "no '$3' in: $(head -n 5 "$2")"; fi
}

exits "no store: not found" 21 "$wb" list
says "no store: says how to name one" "$tmp/err" WB_STORE
exits "no store: in JSON, too" 21 "$wb" list --json
is "no store: the error is the one document" not-found "$(json error.code <"$tmp/out")"

"$make" "$store" 0 20 >"$tmp/made" || bad "records are made" "$(cat "$tmp/made")"
is "twenty commits" 20 "$("${git[@]}" rev-list --count HEAD)"
is "HEAD names the records" refs/heads/records/lab "$("${git[@]}" symbolic-ref HEAD)"
is "git fsck has nothing to say" "" "$("${git[@]}" fsck --full --strict 2>&1)"
is "git log tells people what a commit is" "$run docker x1, round 2: ok, valid" \
    "$("${git[@]}" log --format=%s HEAD~16 -1)"

# list
exits "list" 0 "$wb" list
is "list: a head, a rule, twenty runs" 22 "$(wc -l <"$tmp/out")"
is "list: 80 columns are enough" "" "$(grep -E '^.{81}' "$tmp/out")"
says "list: newest first" <(sed -n 3p "$tmp/out") 01JX8AB019
exits "list --limit" 0 "$wb" list --limit 3
is "list --limit: three runs" 5 "$(wc -l <"$tmp/out")"
says "list --limit: says that there are more" "$tmp/err" --from
"$wb" list --limit 3 --json >"$tmp/out"
next=$(json next <"$tmp/out")
is "list --json: three items" 3 "$(json items.n <"$tmp/out")"
"$wb" list --from "$next" --json >"$tmp/out"
is "list --json: the rest follows from next" 17 "$(json items.n <"$tmp/out")"
is "list --json: and that is all" null "$(json next <"$tmp/out")"
"$wb" list --arm 'docker x1' --json >"$tmp/out"
is "list --arm" 10 "$(json items.n <"$tmp/out")"
"$wb" list --campaign cmp_A --outcome sut-error --json >"$tmp/out"
is "list --outcome" 0 "$(json items.n <"$tmp/out")"
exits "list campaigns" 0 "$wb" list campaigns
says "list campaigns: the one there is" "$tmp/out" "cmp_A"
exits "list of something else" 2 "$wb" list campaign
says "list of something else: did you mean" "$tmp/err" "did you mean 'campaigns'"

# show
exits "show RUN" 0 "$wb" show $run
for text in "docker x1, round 2" "redis 7.0.15" "refs/heads/records/lab" "21.5k/s" "1.50 ms" \
    "steal" "db0.log" "weighbridge logs $run"; do
    says "show RUN has '$text'" "$tmp/out" "$text"
done
is "show RUN: 80 columns are enough" "" "$(grep -E '^.{81}' "$tmp/out")"
"$wb" show $run --json >"$tmp/out"
is "show RUN --json: commit" "$(sed -n "s/^$run //p" "$tmp/made")" "$(json record.commit <"$tmp/out")"
is "show RUN --json: phases" 2 "$(json phases.n <"$tmp/out")"
exits "show by a short id" 0 "$wb" show 01JX8AB003
says "show by a short id: the run" "$tmp/out" $run
exits "show CAMPAIGN" 0 "$wb" show cmp_A
says "show CAMPAIGN: how to compare" "$tmp/out" "weighbridge compare cmp_A"
exits "show of nothing" 21 "$wb" show run_9
exits "show of an ambiguous id" 22 "$wb" show run_01JX
says "show of an ambiguous id: names some" "$tmp/err" run_01JX8AB000
exits "show of a path" 2 "$wb" show ../../etc/passwd

# logs
exits "logs" 0 "$wb" logs $run
is "logs: with a head" "==> db0.log <== log of 3" "$(xargs <"$tmp/out")"
exits "logs --stream" 0 "$wb" logs $run --stream load-max.ndjson
is "logs --stream: byte for byte" '{"t":1} {"t":2}' "$(tr '\n' ' ' <"$tmp/out" | sed 's/ $//')"
exits "logs of another stream" 21 "$wb" logs $run --stream db0.lgo
says "logs of another stream: did you mean" "$tmp/err" "did you mean 'db0.log'"
exits "logs of a campaign" 2 "$wb" logs cmp_A

# verify
exits "verify" 0 "$wb" verify
says "verify: all runs" "$tmp/out" "20 runs verified: no damage"
exits "verify RUN" 0 "$wb" verify $run
exits "verify CAMPAIGN" 0 "$wb" verify cmp_A --json
is "verify CAMPAIGN --json" "true 20" "$(json ok <"$tmp/out" | sed s/1/true/) $(json runs <"$tmp/out")"
hex=$("${git[@]}" rev-parse "HEAD:runs/2026/11/30/$run/summary.json")
object=$store/objects/${hex:0:2}/${hex:2}
cp -p "$object" "$tmp/kept"
chmod u+w "$object"
printf 'X' | dd of="$object" bs=1 seek=40 conv=notrunc 2>"$tmp/dd"
exits "verify of a damaged file" 15 "$wb" verify --all
says "verify of a damaged file: names it" "$tmp/out" "DAMAGE  $run/summary.json"
truncate -s 40 "$object"
exits "verify of a cut file" 15 "$wb" verify $run
cp -p "$tmp/kept" "$object"
exits "verify when all is well again" 0 "$wb" verify --all
"${git[@]}" update-ref -d refs/raw/lab/2026-11
exits "verify without raw data" 0 "$wb" verify $run
says "verify without raw data: a note" "$tmp/out" "raw pruned"
exits "logs without raw data" 21 "$wb" logs $run
says "logs without raw data: says so" "$tmp/err" "raw pruned"

# Lock files that a dead writer left, and one of a living one.
for f in index HEAD config refs/heads/records/lab packed-refs; do
    : >"$store/$f.lock"
    touch -d '2 hours ago' "$store/$f.lock"
done
exits "a commit in spite of dead lock files" 0 "$make" "$store" 20 21
is "the dead lock files are gone" "" "$(find "$store" -name '*.lock' ! -name 'weighbridge*.lock')"
lock=$store/refs/heads/records/lab.lock
(
    exec 9>"$lock"
    pause 3
    rm -f "$lock"
) &
within 5 [ -e "$lock" ]
exits "a commit waits for a living lock" 0 "$make" "$store" 21 22
wait
is "both are recorded" 22 "$("${git[@]}" rev-list --count HEAD)"
is "git fsck has nothing to say after all this" "" \
    "$("${git[@]}" fsck --full --strict --no-dangling 2>&1)"

# After packing, and in a clone, all is as before.
"${git[@]}" gc -q --prune=now
exits "verify after git gc" 0 "$wb" verify
git clone -q --mirror "$store" "$tmp/clone.git"
exits "a clone can be read" 0 "$wb" list --store "$tmp/clone.git"
is "a clone can be read: all runs" 24 "$(wc -l <"$tmp/out")"

# Records go to a remote and come back; what is refused is no success.
git init -q --bare "$tmp/remote.git"
exits "push" 0 "$wb" push "$tmp/remote.git"
says "push: what went" "$tmp/out" "pushed  refs/heads/records/lab"
exits "push: again there is nothing to do" 0 "$wb" push "$tmp/remote.git"
says "push: again there is nothing to do, and it says so" "$tmp/out" "up-to-date"
exits "push to nowhere" 13 "$wb" push "$tmp/nowhere.git"
says "push to nowhere: what git said" "$tmp/err" "nowhere.git"
exits "import of a store" 0 "$wb" import "$tmp/remote.git" --store "$tmp/second.git"
exits "verify of what came" 0 "$wb" verify --store "$tmp/second.git"
cat >"$tmp/results" <<'END'
{"id":"1","test":"kv","measured_at":"2026-11-30T10:00:00+05:30","metrics":{"ops":{"value":5,"unit":"ops/s","better":"higher"}}}
{"id":"2","test":"kv","measured_at":"2026-11-30T10:00:00","metrics":{"ops":{"value":5,"unit":"ops/s","better":"higher"}}}
END
exits "import of results, one without a zone" 2 "$wb" import --results nightly "$tmp/results"
says "import of results: which line was refused" "$tmp/out" "line 2: "
for zone in UTC Asia/Kolkata; do
    TZ=$zone "$wb" list --json --limit 1000 >"$tmp/list.${zone#*/}"
done
says "times are in UTC" "$tmp/list.UTC" '"2026-11-30T04:30:00.000Z"'
check "a list is the same in any zone" cmp -s "$tmp/list.UTC" "$tmp/list.Kolkata"
exits "reindex" 0 "$wb" reindex --json
is "reindex: all runs" 23 "$(json runs <"$tmp/out")"
exits "verify after all" 0 "$wb" verify
summary
