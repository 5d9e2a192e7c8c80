#!/bin/bash
# The command line as a whole: help, manual and completions from one table, widths, what goes to
# which stream, exit codes, and commands that need no store.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
store=$tmp/store.git
export WB_STORE=$store
unset WB_STATE COLUMNS NO_COLOR
make=$build/system/make_records
mapfile -t commands < <("$wb" help | sed -nE 's/^  ([a-z]+) .*/\1/p' | sort -u | grep -vx weighbridge)

# exits NAME CODE COMMAND...: the exit code; output in $tmp/out and $tmp/err.
exits() {
    local name=$1 want=$2 rc
    shift 2
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    rc=$?
    if [ "$rc" -eq "$want" ]; then ok "$name"; else
        bad "$name" "exit $rc instead of $want: $(head -n 3 "$tmp/out" "$tmp/err")"
    fi
}
has() { # NAME FILE TEXT
    if grep -qF -- "$3" "$2"; then ok "$1"; else bad "$1" "no '$3' in: $(head -n 5 "$2")"; fi
}
fits() { # NAME FILE WIDTH
    is "$1" "" "$(grep -E "^.{$(($3 + 1))}" "$2" | head -n 2)"
}

# ---- help, manual, completions: the same table ----
is "help lists commands" yes "$([ ${#commands[@]} -ge 19 ] && echo yes)"
for width in 80 60; do
    for c in "${commands[@]}" exit-codes environment references settings; do COLUMNS=$width "$wb" help "$c"; done |
        grep -vE '^usage: |^  weighbridge |^[a-z]+  ' >"$tmp/all"
    COLUMNS=$width "$wb" help | grep -vE '^usage: |^  weighbridge ' >>"$tmp/all"
    fits "help fits $width columns" "$tmp/all" "$width"
done
for c in "${commands[@]}"; do "$wb" "$c" --help; done >"$tmp/all" 2>"$tmp/err"
fits "help of each command fits 80 columns, all of it" "$tmp/all" 80
is "help goes to standard output alone" "" "$(cat "$tmp/err")"
exits "no command is wrong usage" 2 "$wb"
exits "help of nothing there is" 2 "$wb" help lst
has "help of nothing there is: did you mean" "$tmp/err" "did you mean 'list'"
exits "another command" 2 "$wb" verfy
has "another command: did you mean" "$tmp/err" "did you mean 'verify'"
exits "another option" 2 "$wb" list --limt 3
has "another option: did you mean" "$tmp/err" "did you mean '--limit'"
exits "an option without its value" 2 "$wb" compare --metric
exits "a flag with a value" 2 "$wb" list --json=yes
exits "only options" 2 "$wb" --json
is "only options: the error is a document" invalid "$(json error.code <"$tmp/out")"
exits "a number out of range" 2 "$wb" list --limit 0

"$wb" man --dir "$tmp/man"
is "a page for each command and one for all" "$((${#commands[@]} + 1))" "$(find "$tmp/man" -name '*.1' | wc -l)"
for page in "$tmp"/man/*.1; do groff -man -ww -z -Tutf8 "$page"; done >"$tmp/groff" 2>&1
is "the pages have no fault in roff" "" "$(head -n 3 "$tmp/groff")"
groff -man -Tascii -P-cbou "$tmp/man/weighbridge-run.1" >"$tmp/page"
for o in $("$wb" run --help | grep -oE -- '--[a-z-]+'); do grep -qF -- "$o" "$tmp/page" || echo "$o"; done >"$tmp/missing"
is "the page of run has every option of its help" "" "$(cat "$tmp/missing")"
has "it has the exit codes" "$tmp/page" 130
exits "one page" 0 "$wb" man list
has "one page: that" "$tmp/out" "weighbridge-list"

complete() { # WORD...: what bash offers for the last one
    bash -c 'source <("$1" completion bash); shift
        PATH=$(dirname "$0"):$PATH
        COMP_WORDS=(weighbridge "$@"); COMP_CWORD=$#
        compopt() { :; }
        _weighbridge; printf "%s\n" "${COMPREPLY[@]}"' "$wb" "$wb" "$@" 2>"$tmp/err" | sort | xargs
}
is "bash completes commands" "validate value verify version" "$(complete v)"
is "bash completes options" "--ndjson --no-color" "$(complete list --n)"
is "bash completes words" "campaigns" "$(complete list c)"
is "bash completes words of options" "higher lower" "$(complete stats --better '')"
is "bash completes files" "README.md" "$(complete validate READ)"
is "bash completes folders" "$tmp/man" "$(complete man --dir "$tmp/m")"
is "bash completes recipes behind a word" "redis" "$(complete artifacts list red)"
is "nothing is said on standard error" "" "$(cat "$tmp/err")"
"$wb" completion zsh >"$tmp/_weighbridge"
check "zsh reads its completion" zsh -n "$tmp/_weighbridge"
exits "completion of another shell" 2 "$wb" completion bsh

# ---- without a store ----
for c in "list" "list campaigns" "list series" "list findings" "list hosts" "show x" "logs x" "compare x" "trend x" \
    "scaling x" "gate x" "verify" "export" "annotate x note y" "resume cmp_X" "cancel cmp_X" "clean"; do
    # shellcheck disable=SC2086 # words
    exits "no store: $c" 21 "$wb" $c
    is "no store: $c: one sentence that says what to do" 1 "$(grep -c 'WB_STORE names another' "$tmp/err")"
done
for c in "help" "version" "man" "completion bash" "validate recipes/redis/studies/forms.yaml" \
    "plan recipes/redis/studies/aa.yaml" "stats topics" "artifacts list redis" "schema study" "config"; do
    # shellcheck disable=SC2086
    exits "needs no store: $c" 0 "$wb" $c
done
is "none of them made one" "" "$(find "$tmp" -name '*.git')"
is "help of what needs no store does not speak of one" "" "$("$wb" plan --help | grep -- --store)"

# ---- with one ----
"$make" "$store" 0 20 >"$tmp/made" || bad "records are made" "$(cat "$tmp/made")"
exits "common options may stand in front" 0 "$wb" --store "$store" --json list
is "and they hold" 20 "$(json items.n <"$tmp/out")"
exits "list --ndjson" 0 "$wb" list --ndjson
is "list --ndjson: a line for each" 20 "$(perl -MJSON::PP -ne 'decode_json($_); $n++; END {print $n}' <"$tmp/out")"
exits "show --ndjson" 0 "$wb" show cmp_A --ndjson
is "show --ndjson: one line" 1 "$(wc -l <"$tmp/out")"
exits "an error in lines" 21 "$wb" show run_9 --ndjson
is "an error in lines: one document" "1 not-found" "$(wc -l <"$tmp/out") $(json error.code <"$tmp/out")"
is "bash completes ids" cmp_A "$(complete compare cmp)"
for c in "list" "list campaigns" "list series" "list hosts" "show cmp_A" "show 01JX8AB003" "verify" \
    "plan recipes/redis/studies/forms.yaml"; do
    # shellcheck disable=SC2086
    "$wb" $c >"$tmp/out" 2>"$tmp/err"
    fits "80 columns: $c" <(cat "$tmp/out" "$tmp/err") 80
    is "no colour in a pipe: $c" "" "$(grep -a $'\033' "$tmp/out" "$tmp/err")"
done
# list: filters, orders, pages
"$wb" list --sort started --limit 1 --json >"$tmp/out"
is "list --sort: the oldest first" run_01JX8AB000CDEFGHJKMNPQRST "$(json items.0.id <"$tmp/out")"
"$wb" list --since 2026-11-30T15:42:00Z --json >"$tmp/out"
is "list --since" 9 "$(json items.n <"$tmp/out")"
exits "list with a word that is none" 2 "$wb" list --validity vlid
has "list with a word that is none: did you mean" "$tmp/err" "did you mean 'valid'"
exits "list by another key" 2 "$wb" list --sort p98
has "list by another key: did you mean" "$tmp/err" "did you mean 'p99'"
exits "list with a cursor of another question" 2 "$wb" list --from nonsense
seen=0 next=''
while "$wb" list --limit 7 ${next:+--from "$next"} --json >"$tmp/page"; do
    seen=$((seen + $(json items.n <"$tmp/page")))
    next=$(json next <"$tmp/page")
    [ "$next" = null ] && break
done
is "all pages together have all runs" 20 "$seen"

exits "list hosts" 0 "$wb" list hosts --json
is "list hosts: of the records" "20 20 c" "$(json items <"$tmp/out" | perl -MJSON::PP -e '$l = decode_json(<>); print "$_->{runs} $_->{ok} $_->{host_class}" for grep { $_->{id} eq "h" } @$l')"
is "list hosts: what this one does" yes "$(json items <"$tmp/out" | perl -MJSON::PP -e '$l = decode_json(<>); print "yes" if grep { $_->{here} && $_->{state} =~ /^(free|busy|quarantined|unknown)$/ } @$l')"
exits "list hosts takes filters" 0 "$wb" list hosts --since 2999-01-01 --json
is "list hosts takes filters: none was used since" 0 "$(json items <"$tmp/out" | perl -MJSON::PP -e '$l = decode_json(<>); print scalar grep { $_->{runs} } @$l')"
exits "list hosts takes no order" 2 "$wb" list hosts --sort p99
exits "list findings takes no filter" 2 "$wb" list findings --arm x
exits "list annotations takes no order" 2 "$wb" list annotations --sort p99

# annotate
exits "annotate" 0 "$wb" annotate 01JX8AB003 exclude 'a backup ran' --who ada
exits "annotate with another word" 2 "$wb" annotate 01JX8AB003 exclud why
has "annotate with another word: did you mean" "$tmp/err" "did you mean 'exclude'"
exits "annotate without a reason" 2 "$wb" annotate 01JX8AB003 exclude
exits "annotate a run that is not there" 21 "$wb" annotate run_9 exclude why
for id in 01JX8AB999 ../../etc/passwd HEAD '*' ' '; do
    exits "a note on nothing: $id" 21 "$wb" annotate "$id" note why
done
exits "a note on a host" 0 "$wb" annotate h note 'new disk'
exits "a note on a host class" 0 "$wb" annotate c note 'new kernel'
exits "a note on a series" 0 "$wb" annotate 01234567 note 'watch this'
for id in $'run_\e[31m' 'run_%s%n' '../../etc/passwd' 'refs/heads/records' "$(printf 'run_%05000d' 1)"; do
    for c in show logs verify replay report trend scaling cancel resume; do
        "$wb" "$c" "$id" >"$tmp/out" 2>"$tmp/err" </dev/null
        case $? in 2 | 21 | 22) ;; *) echo "$c: exit $?" ;; esac
        grep -a $'\e' "$tmp/out" "$tmp/err"
    done
done >"$tmp/odd"
is "ids that are none are refused, and drive no terminal" "" "$(head -n 3 "$tmp/odd")"
"$wb" show 01JX8AB003 >"$tmp/out"
has "show tells who said what" "$tmp/out" "excluded by ada"
"$wb" list annotations --json >"$tmp/out"
id=$(json items.0.annotation <"$tmp/out")
exits "annotate: taken back" 0 "$wb" annotate "$id" withdraw
is "show does not tell it any more" 0 "$("$wb" show 01JX8AB003 | grep -c excluded)"

# export
exits "export runs" 0 "$wb" export runs -O "$tmp/runs.csv"
is "export runs: a head and twenty rows" 21 "$(wc -l <"$tmp/runs.csv")"
"$wb" export >"$tmp/out"
is "export: the same on standard output" "" "$(cmp "$tmp/runs.csv" "$tmp/out")"
cat >"$tmp/read.py" <<'PY'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
print(len(rows), rows[3]["arm"], float(rows[3]["throughput"]), rows[3]["factor.form"])
PY
is "export: a CSV reader reads it" "20 docker x1 21543.5 docker x1" "$(python3 "$tmp/read.py" "$tmp/runs.csv")"
exits "export metrics" 0 "$wb" export metrics --campaign cmp_A --arm 'native x1' --format ndjson
is "export metrics: each line a document" "70 21543.5" \
    "$(perl -MJSON::PP -ne '$d = decode_json($_); $n++; $v = $d->{value} if $d->{metric} eq "max.throughput"; END {print "$n $v"}' <"$tmp/out")"
exits "export of something else" 2 "$wb" export run
exits "export into a folder that is not there" 21 "$wb" export -O "$tmp/no/where.csv"
"$wb" export >/dev/full 2>"$tmp/err"
is "export: a full disk is not success" 13 $?

exits "watch where nothing runs" 21 "$wb" watch
exits "watch of a campaign that is not there" 21 "$wb" watch cmp_X
mkdir -p "$tmp/state/campaigns/cmp_OLD"
printf '%s\n' '{"t":"2026-11-30T20:00:00.000Z","type":"note","text":"hello"}' '{"t":"torn' >"$tmp/state/campaigns/cmp_OLD/events.ndjson"
: >"$tmp/state/campaigns/cmp_OLD/lock"
exits "watch of a campaign that is over" 0 "$wb" watch OLD
has "watch: what happened" "$tmp/err" "hello"
exits "watch --ndjson" 0 "$wb" watch OLD --ndjson
is "watch --ndjson: whole events only" "1 hello" "$(wc -l <"$tmp/out") $(json text <"$tmp/out")"

# logs -f: what a campaign writes while it runs; each line once, whatever happens to the files.
live=$tmp/state/campaigns/cmp_LIVE
log=$live/runs/run_L1/db0/log/system.log
mkdir -p "${log%/*}"
: >"$live/lock"
mkfifo "$tmp/hold"
flock "$live/lock" cat "$tmp/hold" &
exec 7>"$tmp/hold" # an engine lives as long as this is open
event() { printf '{"t":"2026-11-30T20:00:00.000Z","type":"%s","run":"run_L1"}\n' "$1" >>"$live/events.ndjson"; }
event run.start
echo one >"$log"
"$wb" logs LIVE -f >"$tmp/followed" 2>"$tmp/followed.err" 7>&- &
follower=$!
"$wb" logs L1 -f --ndjson >"$tmp/followed.json" 2>&1 7>&- &
other=$!
within 30 grep -q one "$tmp/followed"
mv "$log" "$log.1"
echo two >>"$log.1"
echo three >"$log"
within 30 grep -q three "$tmp/followed"
event run.end
printf 'four\nlast' >>"$log"
within 30 grep -q four "$tmp/followed"
within 30 grep -q four "$tmp/followed.json"
rm -r "$live/runs/run_L1"
wait "$other"
is "logs -f of a run ends with it" 0 $?
is "logs -f of a run: each line once" "one two three four last" "$(perl -MJSON::PP -ne 'print decode_json($_)->{line}, " "' <"$tmp/followed.json" | xargs)"
check "logs -f goes on while the campaign does" kill -0 "$follower"
exec 7>&-
wait "$follower"
is "logs -f ends with the campaign" 0 $?
is "logs -f: each line once" "events: 20:00:00 run.start  run=run_L1 ==> run_L1 <== db0/log/system.log: one db0/log/system.log: two db0/log/system.log: three events: 20:00:00 run.end  run=run_L1 db0/log/system.log: four db0/log/system.log: last" "$(tr '\n' ' ' <"$tmp/followed" | sed 's/ $//')"
is "logs -f: nothing else" "" "$(cat "$tmp/followed.err")"
exits "logs -f of a campaign that is over" 0 "$wb" logs LIVE -f
has "logs -f of a campaign that is over: its events" "$tmp/out" "run.end"
exits "logs -f of what is recorded" 0 "$wb" logs 01JX8AB003 -f
has "logs -f of what is recorded: its logs" "$tmp/out" "log of 3"
exits "logs -f of what is not there" 21 "$wb" logs cmp_X -f
rm -r "$tmp/state"

# The store as a whole.
exits "reindex" 0 "$wb" reindex
is "reindex: all runs" "20 runs in the index" "$(cat "$tmp/out")"
exits "import makes a store" 0 "$wb" import "$store" --store "$tmp/other.git"
is "import: all runs are there" 20 "$("$wb" list --store "$tmp/other.git" --json | json items.n)"
exits "import of nothing" 21 "$wb" import "$tmp/nowhere.git" --store "$tmp/other.git"
printf '%s\n' '{"id":"a","test":"t","measured_at":"2026-11-30T10:00:00Z","metrics":{"tps":{"value":5,"unit":"ops/s","better":"higher"}}}' \
    '{"id":"b"}' >"$tmp/results"
exits "import of results, one refused" 2 "$wb" import "$tmp/results" --results tool --store "$tmp/other.git"
has "import of results: says how many" "$tmp/out" "1 results recorded, 0 were here already, 1 refused"
git init -q --bare "$tmp/remote.git"
exits "push" 0 "$wb" push "$tmp/remote.git"
is "push: the remote has the records" 1 "$(git --git-dir="$tmp/remote.git" for-each-ref refs/heads/records | wc -l)"
exits "push to nowhere" 13 "$wb" push "$tmp/nowhere.git"
exits "push --if-due after that" 0 "$wb" push "$tmp/nowhere.git" --if-due
has "push --if-due after that: it is not" "$tmp/out" "not due: the last push failed"
exits "push --if-due where nothing waits" 0 "$wb" push "$tmp/remote.git" --if-due --json
is "push --if-due where nothing waits: says so" "false false" "$(json due <"$tmp/out") $(json pending <"$tmp/out")"
git init -q --bare "$tmp/no.git"
printf '#!/bin/sh\necho "closed on Mondays" >&2\nexit 1\n' >"$tmp/no.git/hooks/pre-receive"
chmod +x "$tmp/no.git/hooks/pre-receive"
exits "push that is refused" 22 "$wb" push "$tmp/no.git" --json
has "push that is refused: what" "$tmp/err" "refs/heads/records/"
is "push that is refused, as JSON: one document with both" "conflict refused" "$(json error.code <"$tmp/out") $(json refs.0.status <"$tmp/out")"
exits "prune tells" 0 "$wb" prune --keep-months 1 --dry-run
exits "pin" 0 "$wb" annotate 01JX8AB003 pin 'shown to the board'
exits "report of a campaign without arms in its plan" 2 "$wb" report cmp_A

# Settings: each place rules over the next, and what is wrong is told with file and line.
settings() ( # ARGS...: from a folder of a project
    unset WB_STORE WB_CONFIG
    cd "$tmp/project/deep" && "$wb" "$@"
)
mkdir -p "$tmp/project/deep" "$tmp/settings/weighbridge"
printf 'store: user.git\nwidth: 60\n' >"$tmp/settings/weighbridge/config.yaml"
is "settings: the user's" "$tmp/settings/weighbridge/user.git" "$(settings config store --json | json items.0.value)"
printf 'store: %s\npush: {remote: "%s"}\n' "$store" "$tmp/remote.git" >"$tmp/project/weighbridge.yaml"
is "settings: the project's rule" 20 "$(settings list --json | json items.n)"
is "settings: and say where they are from" "$tmp/project/weighbridge.yaml:1" "$(settings config store --json | json items.0.from)"
is "settings: the environment's rule over these" WB_STORE "$(WB_STORE=/x "$wb" config store --json | json items.0.from)"
is "settings: options over all" "--store" "$(WB_STORE=/x "$wb" config store --store /y --json | json items.0.from)"
settings list campaigns >"$tmp/out"
fits "settings: width" "$tmp/out" 60
exits "settings: push knows where" 0 settings push
is "settings: with a server, too" WB_SERVER "$(WB_SERVER=http://127.0.0.1:9 settings config server --json | json items.0.from)"
exits "settings: push does not know where" 2 "$wb" push
exits "settings: a key that is none" 2 "$wb" config stoer
has "settings: a key that is none: did you mean" "$tmp/err" "did you mean 'store'"
is "settings: a variable that is nearly one is told" "WB_STOER (did you mean 'WB_STORE'?)" "$(WB_STOER=x WB_ARTIFACTS_MIRROR=y settings config --json | json unknown_variables | perl -MJSON::PP -e '$l = decode_json(<>); print join ", ", map { "$_->{name} $_->{hint}" } @$l')"
printf 'widht: 90\ntoken: s3cret\n' >"$tmp/project/weighbridge.yaml"
exits "settings that are wrong" 2 settings list
has "settings that are wrong: file and line" "$tmp/err" "$tmp/project/weighbridge.yaml:1: /widht: a settings file has no key 'widht' (did you mean 'width'?)"
has "settings that are wrong: all at once" "$tmp/err" "$tmp/project/weighbridge.yaml:2: /token:"
is "settings that are wrong: no secret is shown" 0 "$(grep -c s3cret "$tmp/err")"
exits "settings that are wrong, as JSON" 2 settings list --json
is "settings that are wrong, as JSON: the code" "unknown-key" "$(json errors.1.code <"$tmp/out")"
rm -r "$tmp/project" "$tmp/settings"

# ---- every command of the table: one document with --json, lines with --ndjson, also for errors;
# what is for people fits 80 columns (sentences of errors are one line each) ----
cat >"$tmp/walk" <<END
annotate 01JX8AB003 note hello
annotate nothing note x
api GET /api/v1/version
artifacts list redis
artifacts verify nothing
cancel cmp_X
clean a b c
compare cmp_A
compare nothing
completion bash
completion bsh
config
config nothing
doctor
explain cmp_A cmp_A
explain x y
export runs
export metrics --arm nothing
export nothing
extend cmp_X --server http://127.0.0.1:9
gate x
help
help list
help exit-codes
help nothing
import $store --store $tmp/walk.git
import $tmp/nowhere --store $tmp/walk.git
list
list campaigns
list series
list findings
list annotations
list hosts
list nothing
logs 01JX8AB003
logs 01JX8AB003 --stream db0.log
logs nothing
man
man list
man nothing
plan recipes/redis/studies/forms.yaml
plan $tmp/nowhere
prune --keep-months 1 --dry-run
push $tmp/remote.git
push $tmp/nowhere.git
queue --server http://127.0.0.1:9
reindex
replay nothing
report nothing
rerun cmp_X
resume cmp_X
run $tmp/nowhere
run recipes/redis/studies/forms.yaml -f nothing=1
scaling cmp_A
scaling nothing
schema study
schema nothing
serve --port x
show 01JX8AB003
show cmp_A
show nothing
stats topics
stats nothing
token list --server http://127.0.0.1:9
trend 01234567
trend nothing
validate recipes/redis/studies/forms.yaml
validate recipes/redis
validate $tmp/nowhere
value cmp_A
value cmp_A --book $tmp/nowhere
verify
verify 01JX8AB003
verify nothing
version
watch
watch nothing
END
for c in "${commands[@]}"; do grep -qE "^$c( |\$)" "$tmp/walk" || echo "$c"; done >"$tmp/missing"
is "every command is walked" "" "$(cat "$tmp/missing")"
cat >"$tmp/judge.pl" <<'PERL'
use JSON::PP; local $/; my ($how, $rc) = @ARGV; my $text = <STDIN>; my $j = JSON::PP->new->allow_nonref;
my @docs = $how eq "--json" ? ($text) : split /\n/, $text;
for (@docs) { my $d = eval { $j->decode($_) }; print "no document: ", substr($_, 0, 60), "\n" if !defined $d;
    print "exit $rc without an error\n" if $rc && @docs == 1 && ref $d eq "HASH" && !$d->{error} && !$d->{errors} && !exists $d->{fit}; }
print "no document at all\n" if !@docs && $rc;
PERL
while read -r line; do
    # shellcheck disable=SC2086 # words
    for how in --json --ndjson; do
        timeout 60 "$wb" $line $how >"$tmp/out" 2>"$tmp/err" </dev/null
        perl "$tmp/judge.pl" $how $? <"$tmp/out" | sed "s|^|$line $how: |"
    done
    case $line in completion* | man* | schema* | export* | *--stream*) continue ;; esac
    # shellcheck disable=SC2086
    COLUMNS=80 timeout 60 "$wb" $line >"$tmp/out" 2>"$tmp/err" </dev/null
    grep -E '^.{81}' "$tmp/out" | head -n 1 | sed "s|^|$line is wide: |"
done <"$tmp/walk" >"$tmp/odd" # some of these make records: they come last
is "each answers with documents and fits 80 columns" "" "$(head -n 5 "$tmp/odd")"

# doctor: what it says depends on the host; that it says it, does not.
"$wb" doctor --json >"$tmp/out"
rc=$?
is "doctor: exit code and verdict are one" "$([ $rc -eq 17 ] && echo bad || echo fit)" \
    "$([ "$(json fit <"$tmp/out")" = true ] && echo fit || echo bad)"
for c in cores memory cgroups rights "clock source" "time of day" steal "other work" engine disk "host lock" quarantine; do
    is "doctor looks at: $c" 1 "$(grep -cF "\"check\": \"$c\"" "$tmp/out")"
done
WB_STATE=/dev/full/x "$wb" doctor >"$tmp/out" 2>&1
fits "doctor: 80 columns" "$tmp/out" 80
WB_LOAD=/nowhere "$wb" doctor --json >"$tmp/out"
is "doctor: no load program makes the host unfit" 17 $?
has "doctor: and says what to do" "$tmp/out" "WB_LOAD"

COLUMNS=40 "$wb" list --limit 2 >"$tmp/out" 2>"$tmp/err"
fits "40 columns: list" "$tmp/out" 40
has "40 columns: list: nothing is lost" "$tmp/out" "docker x1"
"$wb" list >/dev/full 2>"$tmp/err"
is "a full disk behind standard output is not success" 13 $?
has "and says so" "$tmp/err" "standard output could not be written"
summary
