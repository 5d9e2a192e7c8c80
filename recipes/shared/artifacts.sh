# shellcheck shell=sh
# Sourced by fetch steps: where artifacts come from, and the list of what was fetched. The sourcing
# step has say, die, need and json_text (common.sh).
#
# WB_ARTIFACTS_FOLDER, a folder, is asked first for every file by its plain name. WB_ARTIFACTS_MIRROR
# is the URL of a mirror of the kind of repository that the source is. Both are the user's.

artifact_list=

# artifact PACKAGE VERSION FILE: adds a file of WB_CACHE to the list, with the digest that it has.
artifact() {
    artifact_sha=$(sha256sum <"$WB_CACHE/$3") || die 1 "cannot read $3"
    artifact_list="$artifact_list${artifact_list:+,
}$(printf '{"package":%s,"version":%s,"file":%s,"sha256":"%s","size":%d}' \
        "$(json_text "$1")" "$(json_text "$2")" "$(json_text "$3")" "${artifact_sha%% *}" \
        "$(wc -c <"$WB_CACHE/$3")")"
}

# Writes WB_CACHE/artifacts.json and prints it.
artifacts_write() {
    printf '{"artifacts":[\n%s\n]}\n' "$artifact_list" >"$WB_CACHE/artifacts.json.new"
    mv -- "$WB_CACHE/artifacts.json.new" "$WB_CACHE/artifacts.json"
    cat -- "$WB_CACHE/artifacts.json"
}

# check_sum sha256|sha512 FILE WANTED FROM: of a file of WB_CACHE; a file that differs is removed.
check_sum() {
    check_have=$("${1}sum" <"$WB_CACHE/$2") || die 1 "cannot read $2"
    check_have=${check_have%% *}
    if [ "$check_have" != "$3" ]; then
        check_size=$(wc -c <"$WB_CACHE/$2")
        rm -f -- "$WB_CACHE/$2"
        die 1 "$2 ($check_size bytes from $4) has $1 $(printf '%.16s' "$check_have")..., wanted" \
            "$(printf '%.16s' "$3")...: it is cut off, damaged or another file"
    fi
}

# from_subject FILE: takes the build that the study's subject names (WB_ARTIFACT) as FILE.
from_subject() {
    [ -n "${WB_ARTIFACT:-}" ] || return 1
    cp -- "$WB_ARTIFACT" "$WB_CACHE/$1" || die 1 "cannot copy $WB_ARTIFACT into the cache"
    check_sum sha256 "$1" "$WB_ARTIFACT_SHA256" "$WB_ARTIFACT"
}

# from_folder FILE: takes a file from WB_ARTIFACTS_FOLDER if it is there.
from_folder() {
    [ -n "${WB_ARTIFACTS_FOLDER:-}" ] || return 1
    [ -d "$WB_ARTIFACTS_FOLDER" ] ||
        die 69 "WB_ARTIFACTS_FOLDER=$WB_ARTIFACTS_FOLDER is not a folder"
    [ -f "$WB_ARTIFACTS_FOLDER/$1" ] || return 1
    cp -- "$WB_ARTIFACTS_FOLDER/$1" "$WB_CACHE/$1" || die 1 "cannot copy $1 into the cache"
}

way_out="Name a mirror that has it in WB_ARTIFACTS_MIRROR, or a folder with the file in WB_ARTIFACTS_FOLDER"

# download URL FILE: into WB_CACHE. A server that cannot be reached is tried three times.
download() {
    command -v curl >/dev/null || die 69 "curl is missing (apt-get install curl)"
    # Redirects only from https to https: a name must not turn into another kind of address.
    download_said=$(curl -sS --fail --location --max-redirs 5 --proto '=http,https,file' \
        --proto-redir '=https' --connect-timeout 10 --speed-limit 1000 --speed-time 30 \
        --retry 2 --retry-connrefused -o "$WB_CACHE/$2.part" -- "$1" 2>&1) && {
        mv -- "$WB_CACHE/$2.part" "$WB_CACHE/$2"
        return 0
    }
    download_rc=$?
    rm -f -- "$WB_CACHE/$2.part"
    download_said=$(printf '%s' "$download_said" | tail -n 1 | sed 's/^curl: ([0-9]*) //')
    case $download_rc in
    6 | 7) die 69 "$2: no answer from ${1%/*}: $download_said. $way_out" ;;
    18 | 28 | 56) die 69 "$2: the download from ${1%/*} broke off: $download_said" ;;
    22 | 37 | 78) die 69 "$2 is not at ${1%/*} ($download_said). $way_out" ;;
    *) die 69 "$2 cannot be had from ${1%/*}: $download_said. $way_out" ;;
    esac
}
