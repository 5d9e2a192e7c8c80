#!/bin/bash
# Operations on a database while load goes on, on a real Redis whose recipe is given some: they are
# done at their time, in the record with what the load saw, checked afterwards, and each way in which
# one can fail has its outcome. Data that is kept between rounds. Rings of real nodes are in
# cassandra_faults.sh.
# shellcheck disable=SC2016 # the texts of steps expand their own variables
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
alone
export WB_STATE=$build/test/state WB_RECIPES=recipes
store=$tmp/store.git
# Images and prefixes of spoilt recipes stay as a cache between campaigns and are no leftover.
things() { snapshot | grep -v '^image '; }
keep_prefixes

# with OPERATIONS-YAML DURING: the recipe with operations, the study with some in its phase.
with() {
    fresh_recipes
    printf 'operations:\n%s\n' "$1" >>"$spoilt/redis/recipe.yaml"
    sed -i 's/^shared:/data: files\nshared:/' "$spoilt/redis/recipe.yaml"
    sed -E "s/for: 2s\\}/for: 6s, during: [$2]}/; s/^study: .*/study: operations/; s/^copies: 2/copies: 1/" \
        recipes/redis/studies/aa.yaml >"$tmp/study.yaml"
}
operate() {
    WB_RECIPES=$spoilt run "$tmp/study.yaml" --rounds 1 --wait-for-host 2400 -f workload.data.rows=1000 \
        -f setting.appendonly=yes "$@"
    rc=$?
}

save='  - {name: save, kind: work, limit: 20s, help: a snapshot is written}'
restart='  - {name: restart, kind: restart, limit: 20s, help: it ends and begins again}'
with "$save" '{at: 1s, do: save}'
rm -f "$spoilt/redis/steps/save"
before=$(things)
operate
is "an operation without its step: exit 2" 2 "$rc"
check "and it is named" grep -q "steps/save is missing: operation 'save' is done by it" "$tmp/err"

for form in native docker; do
    with "$save"$'\n'"$restart" '{at: 1s, do: save}, {at: 1500ms, do: restart, instance: first}'
    recipe_step save <<'STEP'
set -eu
. "$WB_RECIPE_DIR/files/common.sh"
cli 5 BGSAVE >&2
printf '{"saved":true}\n'
STEP
    operate -f "form=$form x1"
    check "$form: ends with 0 or 14, here $rc" [ "$rc" -eq 0 -o "$rc" -eq 14 ] || tail -n 3 "$tmp/err"
    is "$form: ok" "ok clean" "$(newest)" || reasons
    "$wb" show "$(json id <"$tmp/newest")" --store "$store" --json >"$tmp/run"
    perl -MJSON::PP -e '
        local $/; my ($p) = grep { $_->{name} eq "max" } @{decode_json(<STDIN>)->{phases}};
        my ($save, $restart) = @{$p->{during}};
        print "$save->{do} $restart->{do}\n", $save->{said}{saved} ? "said\n" : "silent\n";
        # Begun at their times, one after the other; what came before, during and after is there.
        print join(" ", map { $_->{seconds} > 0 && $_->{confirmed_s} >= $_->{seconds} ? "timed" : "untimed" } $save, $restart), "\n";
        print join(" ", map { my $o = $_; map { $o->{$_}{intervals} ? "seen" : "unseen" } qw(before during after) } $restart), "\n";
        print $restart->{after}{throughput} > 0 && $restart->{after}{p99_ms} > 0 ? "serves\n" : "does not serve\n";
        print $p->{load}{misses} // 0, "\n"' <"$tmp/run" >"$tmp/during"
    is "$form: both are in the record" "save restart" "$(sed -n 1p "$tmp/during")"
    is "$form: with what the step said" said "$(sed -n 2p "$tmp/during")"
    is "$form: and how long they took" "timed timed" "$(sed -n 3p "$tmp/during")"
    is "$form: it serves again" serves "$(sed -n 5p "$tmp/during")"
    is "$form: no row was lost" 0 "$(sed -n 6p "$tmp/during")"
    "$wb" show "$(json id <"$tmp/newest")" --store "$store" >"$tmp/shown"
    check "$form: show has them" grep -qE '^restart 0 +before' "$tmp/shown"
    nothing_left "$form"
done

with "$save" '{at: 1s, do: save}'
recipe_step save <<<'echo "no room" >&2; exit 3'
operate
outcome "an operation that fails" 12 "sut-error clean" 'phase max: save on instance 0 failed (status 3): no room'
recipe_step save <<<'echo "not JSON"'
operate
outcome "an operation that says nothing of use" 12 "sut-error clean" 'phase max: save on instance 0 told nothing: its step must write one JSON object'
with "${save/20s/1s}" '{at: 500ms, do: save}'
recipe_step save <<<'tail -f /dev/null'
operate
outcome "an operation over its limit" 12 "sut-error clean" 'phase max: save on instance 0 was not done within 1 s: its step still ran'
# It kills what it should look after: the death is what is told.
with "$save" '{at: 1s, do: save}'
recipe_step save <<'STEP'
. "$WB_RECIPE_DIR/files/common.sh"
cli 5 SHUTDOWN NOSAVE >&2
tail -f /dev/null
STEP
operate
outcome "an operation that ends the database" 12 "sut-error clean" 'instance 0 ended with status 0'
# The cluster is asked afterwards, until it is as it should be.
with "${save/20s/2s}" '{at: 500ms, do: save}'
recipe_step save <<'STEP'
touch "$WB_CONFIG_DIR/spoilt"
printf '{}\n'
STEP
{ echo 'if [ -e "$WB_CONFIG_DIR/spoilt" ]; then exit 75; fi' && sed 1d recipes/redis/steps/ready; } >"$tmp/ready"
recipe_step ready <"$tmp/ready"
operate
outcome "not as it should be afterwards" 12 "sut-error clean" 'was not done within 2 s: the cluster was not as it should be'
# Two in a window that is too short for them.
with "$save"$'\n'"${save/save/again}" '{at: 1s, do: save}, {at: 1s, do: again}'
recipe_step save <<<'sleep 8; echo "{}"'
recipe_step again <<<'echo "{}"'
operate
outcome "one that could not begin" 12 "sut-error clean" 'phase max: again on instance 0 could not begin before the load ended'

# A cancel, and a killed engine, in the middle of one.
with "$save" '{at: 500ms, do: save}'
recipe_step save <<<'touch "$WB_CONFIG_DIR/began"; tail -f /dev/null'
begun() { ls "$WB_STATE"/campaigns/*/runs/*/db0/config/began >/dev/null 2>&1; }
for how in INT KILL; do
    WB_RECIPES=$spoilt start op "$tmp/study.yaml" --rounds 1 --wait-for-host 2400 -f workload.data.rows=1000
    within 2400 begun
    kill "-$how" "$pid"
    wait "$pid" 2>/dev/null
    [ "$how" = KILL ] && clean
    nothing_left "SIG$how in an operation"
done
is "an interrupted operation has its record" "harness-error clean" "$(newest)"

# --- data that is kept ---

with "$save" '{at: 1s, do: save}'
recipe_step save <<<'echo "{}"'
recipe_step settle <<'STEP'
echo x >>"$WB_CONFIG_DIR/asked"
[ "$(wc -l <"$WB_CONFIG_DIR/asked")" -ge 3 ] || { echo '{"busy":1}'; exit 75; }
echo '{"busy":0}'
STEP
operate --rounds 2 -f reuse=data
check "data kept: ends with 0 or 14, here $rc" [ "$rc" -eq 0 -o "$rc" -eq 14 ] || tail -n 3 "$tmp/err"
"$wb" list --json --store "$store" | perl -MJSON::PP -e 'local $/; print "$_->{id}\n" for @{decode_json(<STDIN>)->{items}}[0, 1]' >"$tmp/two"
second=$(sed -n 1p "$tmp/two") first=$(sed -n 2p "$tmp/two")
"$wb" show "$second" --store "$store" --json >"$tmp/run"
is "data kept: the second round took the first one's" "$first" "$(json data.of_run <"$tmp/run")"
is "data kept: and loaded none" max "$(perl -MJSON::PP -e 'local $/; print join " ", map { $_->{name} } @{decode_json(<STDIN>)->{phases}}' <"$tmp/run")"
is "data kept: every row was there" 0 "$(perl -MJSON::PP -e 'local $/; print decode_json(<STDIN>)->{phases}[0]{load}{misses}' <"$tmp/run")"
"$wb" compare "$(campaign_of err)" --store "$store" >"$tmp/compared" 2>&1
check "data kept: and compare says so" grep -q 'rounds repeat the start' "$tmp/compared"
nothing_left "data kept"
sed -i 's/-ge 3/-ge 300/' "$spoilt/redis/steps/settle"
limit settle 1s
operate
outcome "a database that does not come to rest" 12 "sut-error clean" 'instance 0 did not come to rest within 1 s: '
summary
