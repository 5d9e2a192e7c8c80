#!/bin/bash
# What recording a run costs, against git itself doing the same: the same content, the same
# references, objects and references synced. git's side is as lean as its commands allow: one
# process hashes all files, one makes all trees, two make the commits, one moves the references.
# The bar: p95 at most twice git's. COUNT records (default 200), into empty stores or into copies of
# the store SEED.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
build=${B:-build}
count=${COUNT:-200}
tmp=$(mktemp -d) || exit 2
trap 'rm -rf -- "$tmp"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a \
    GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a
make -s "B=$build" "$build/bench/commit_store" || exit 2

seed=${SEED:-}
if [ -n "$seed" ]; then # objects are never written to, references are replaced
    cp -al "$seed" "$tmp/ours.git" && cp -al "$seed" "$tmp/git.git" || exit 2
    rm -f "$tmp"/*.git/weighbridge.index*
fi
"$build/bench/commit_store" "$tmp/ours.git" "$count" >"$tmp/ours" || exit 2

# The same content as files.
mkdir "$tmp/records" "$tmp/raw"
git --git-dir="$tmp/ours.git" archive HEAD runs/2026/11/30 | tar -x -C "$tmp/records"
git --git-dir="$tmp/ours.git" archive refs/raw/lab/2026-11 | tar -x -C "$tmp/raw"

g=(git "--git-dir=$tmp/git.git" -c 'core.fsync=committed,reference' -c core.fsyncMethod=fsync)
[ -n "$seed" ] || git init -q --bare "$tmp/git.git"
day=$tmp/records/runs/2026/11/30

coproc TREES { exec "${g[@]}" mktree --batch; }
# tree ENTRIES: makes a tree of "mode type id<tab>name" lines; its id in $id.
tree() {
    printf '%s\n\n' "$1" >&"${TREES[1]}"
    read -r id <&"${TREES[0]}"
}

records='' raws='' parent=() raw_parent=() old=0000000000000000000000000000000000000000
raw_old=$old rest_month='' rest_year='' rest_runs='' rest_root=''
if [ -n "$seed" ]; then # what stands beside the new folders
    old=$("${g[@]}" rev-parse HEAD)
    parent=(-p "$old") start=$old
    beside() { "${g[@]}" ls-tree "$old:$1" 2>/dev/null | awk -F'\t' -v x="$2" '$2 != x'; }
    rest_month=$(beside runs/2026/11 30) rest_year=$(beside runs/2026 11)
    rest_runs=$(beside runs 2026) rest_root=$(beside '' runs)
fi
# and_rest ENTRY REST: lines of both.
and_rest() { printf '%s%s' "$1" "${2:+$'\n'$2}"; }
ref=$("${g[@]}" symbolic-ref HEAD)
for folder in "$day"/*; do
    run=${folder##*/}
    from=${EPOCHREALTIME/./}
    files=("$day/$run"/*.json "$day/$run"/recipe/*.yaml "$day/$run"/recipe/*/* "$tmp/raw/30/$run"/*)
    mapfile -t ids < <(printf '%s\n' "${files[@]}" | "${g[@]}" hash-object -w --stdin-paths --no-filters)
    top='' recipe='' below_files='' below_steps='' raw=''
    for i in "${!files[@]}"; do
        f=${files[i]} line="blob ${ids[i]}"$'\t'"${files[i]##*/}"
        case $f in
        */raw/30/*) raw+="100644 $line"$'\n' ;;
        */recipe/files/*) below_files+="100644 $line"$'\n' ;;
        */recipe/steps/*) below_steps+="100755 $line"$'\n' ;;
        */recipe/*) recipe+="100644 $line"$'\n' ;;
        *) top+="100644 $line"$'\n' ;;
        esac
    done
    tree "${below_files%$'\n'}" && recipe+="040000 tree $id"$'\tfiles\n'
    tree "${below_steps%$'\n'}" && recipe+="040000 tree $id"$'\tsteps'
    tree "$recipe" && tree "${top}040000 tree $id"$'\trecipe'
    records+="${records:+$'\n'}040000 tree $id"$'\t'"$run"
    tree "$records" && tree "$(and_rest "040000 tree $id"$'\t30' "$rest_month")"
    tree "$(and_rest "040000 tree $id"$'\t11' "$rest_year")"
    tree "$(and_rest "040000 tree $id"$'\t2026' "$rest_runs")"
    tree "$(and_rest "040000 tree $id"$'\truns' "$rest_root")"
    new=$("${g[@]}" commit-tree "${parent[@]}" -m "$run" "$id")
    tree "${raw%$'\n'}"
    raws+="${raws:+$'\n'}040000 tree $id"$'\t'"$run"
    tree "$raws" && tree "040000 tree $id"$'\t30'
    raw_new=$("${g[@]}" commit-tree "${raw_parent[@]}" -m "$run" "$id")
    printf 'update refs/raw/lab/2026-11 %s %s\nupdate %s %s %s\n' \
        "$raw_new" "$raw_old" "$ref" "$new" "$old" | "${g[@]}" update-ref --stdin
    parent=(-p "$new") raw_parent=(-p "$raw_new") old=$new raw_old=$raw_new
    to=${EPOCHREALTIME/./}
    echo "$(((to - from) / 1000)).$(printf %03d $(((to - from) % 1000)))"
done >"$tmp/git"

if [ "$("${g[@]}" rev-parse "$ref^{tree}")" != \
    "$(git --git-dir="$tmp/ours.git" rev-parse 'HEAD^{tree}')" ]; then
    echo "FAIL the two stores do not hold the same tree"
    exit 1
fi

at() { sort -n "$1" | sed -n "$((($(wc -l <"$1") * $2 + 99) / 100))p"; }
bytes=$("${g[@]}" rev-list --objects --disk-usage "$ref" ${seed:+"^$start"})
for p in 50 95; do
    awk -v p=$p -v a="$(at "$tmp/ours" $p)" -v b="$(at "$tmp/git" $p)" 'BEGIN {
        printf "commit p%d  weighbridge %.1f ms  git %.1f ms  ratio %.2f\n", p, a, b, a / b }'
done
echo "record     $((bytes / count / 1024)) KiB a run in the record reference, unpacked"
awk -v a="$(at "$tmp/ours" 95)" -v b="$(at "$tmp/git" 95)" 'BEGIN {
    if (a / b > 2) { print "FAIL p95 is more than twice that of git"; exit 1 }
    print "ok p95 is at most twice that of git" }'
