# shellcheck shell=sh
# Sourced by fetch steps, after artifacts.sh: packages of the distribution, through apt, with the
# mirrors that apt is set up with. Their SHA-256 come from the distribution's signed metadata.

debian_mirrors="the mirrors of /etc/apt/sources.list and /etc/apt/sources.list.d"
debian_updated=no

# The upstream part of a Debian version: without epoch (up to the first colon) and without the
# revision (from the last hyphen).
upstream_version() {
    upstream=${1#*:}
    printf '%s' "${upstream%-*}"
}

debian_update() {
    [ "$debian_updated" = no ] || return 1
    debian_updated=yes
    say "refreshing apt's package lists"
    apt-get update -q >&2 || {
        say "apt-get update failed (it needs root and the mirrors of /etc/apt)"
        return 1
    }
}

# Reads once what the repositories offer: lines "package version", newest version of each first.
# Versions that are only installed here are not among them.
debian_read_offers() {
    # shellcheck disable=SC2086 # a list of package names
    debian_offers=$(apt-cache madison -- $WB_PACKAGES 2>/dev/null |
        awk -F'|' '{gsub(/ /, "", $1); gsub(/ /, "", $2); print $1, $2}')
}

debian_versions() {
    printf '%s\n' "$debian_offers" | awk -v package="$1" '$1 == package {print $2}'
}

# debian_resolve UPSTREAM: fills debian_chosen with lines "package version". With an UPSTREAM, the
# first package's newest version whose upstream part is exactly that; a package that is built with
# it has its very version; others take the newest one.
debian_resolve() {
    debian_read_offers
    debian_chosen=
    debian_main_version=
    debian_lacking=
    if [ -n "$1" ]; then
        for candidate in $(debian_versions "$debian_main"); do
            if [ "$(upstream_version "$candidate")" = "$1" ]; then
                debian_main_version=$candidate
                break
            fi
        done
        [ -n "$debian_main_version" ] || return 1
    fi
    for package in $WB_PACKAGES; do
        version=
        for candidate in $(debian_versions "$package"); do
            if [ "$candidate" = "$debian_main_version" ]; then version=$candidate; fi
        done
        version=${version:-$(debian_versions "$package" | head -n 1)}
        if [ -z "$version" ]; then
            debian_lacking=$package
            return 1
        fi
        debian_chosen="$debian_chosen$package $version
"
    done
}

debian_not_offered() {
    if [ -n "$debian_lacking" ]; then
        die 69 "package $debian_lacking is not offered by $debian_mirrors"
    fi
    offered=$(debian_versions "$debian_main" | tr '\n' ' ')
    die 69 "$debian_main with upstream version $1 is not offered by $debian_mirrors (offered:" \
        "${offered:-nothing}). Name a mirror there that still has it, or put its packages into" \
        "the artifact cache"
}

# Downloads all of debian_chosen; their digests are checked by apt and once more by debian_take.
debian_download() {
    rm -f -- "$WB_CACHE"/*.deb
    (
        cd "$WB_CACHE"
        # shellcheck disable=SC2046 # package=version words
        apt-get download -q $(printf '%s' "$debian_chosen" | tr ' ' '=') >&2
    )
}

# debian_field PACKAGE VERSION NAME: from the distribution's record of that version.
debian_field() {
    printf '%s\n' "$debian_records" | awk -v package="$1" -v version="$2" -v name="$3:" '
        $1 == "Package:" {p = $2; v = ""; kept = ""}
        $1 == "Version:" {v = $2}
        $1 == name {kept = $2}
        p == package && v == version && kept != "" {print kept; exit}'
}

# debian_file PACKAGE: prints its file in WB_CACHE, under a plain name: apt writes the colon of an
# epoch as %3a.
debian_file() {
    for found in "$WB_CACHE/$1_"*.deb; do
        if [ -f "$found" ] && [ "$(dpkg-deb -f "$found" Package)" = "$1" ]; then
            file=$(printf '%s' "${found##*/}" | sed 's/%3a/_/')
            if [ "$found" != "$WB_CACHE/$file" ]; then mv -- "$found" "$WB_CACHE/$file"; fi
            printf '%s\n' "$file"
            return 0
        fi
    done
    return 1
}

# debian_from_subject PACKAGE: the study's own build of it, where WB_ARTIFACT is one, in the place of
# the distribution's. Lists it.
debian_from_subject() {
    [ -n "${WB_ARTIFACT:-}" ] || return 1
    [ "$(dpkg-deb -f "$WB_ARTIFACT" Package 2>/dev/null)" = "$1" ] || return 1
    rm -f -- "$WB_CACHE/$1_"*.deb
    from_subject "$1_subject.deb"
    artifact "$1" "$(dpkg-deb -f "$WB_CACHE/$1_subject.deb" Version)" "$1_subject.deb"
}

# All packages from WB_ARTIFACTS_FOLDER, when it has a file for each; whose signature there is none
# to check here, and the digests that they have are recorded.
debian_from_folder() {
    [ -n "${WB_ARTIFACTS_FOLDER:-}" ] || return 1
    for package in $WB_PACKAGES; do
        set -- "$WB_ARTIFACTS_FOLDER/${package}_"*.deb
        [ -f "$1" ] || return 1
        [ $# -eq 1 ] || die 69 "$WB_ARTIFACTS_FOLDER has $# files of package $package: keep one"
        cp -- "$1" "$WB_CACHE/" || die 1 "cannot copy ${1##*/} into the cache"
    done
    for package in $WB_PACKAGES; do
        if debian_from_subject "$package"; then continue; fi
        file=$(debian_file "$package") || die 1 "the file of $package is of another package"
        artifact "$package" "$(dpkg-deb -f "$WB_CACHE/$file" Version)" "$file"
    done
}

# debian_fetch [UPSTREAM]: fills WB_CACHE with the packages WB_PACKAGES and lists them as artifacts.
debian_fetch() {
    debian_from_folder && return 0
    command -v apt-get >/dev/null ||
        die 69 "apt-get is missing: Debian packages are among this recipe's artifacts"
    debian_main=${WB_PACKAGES%% *}
    debian_resolve "${1:-}" || { debian_update && debian_resolve "${1:-}"; } ||
        debian_not_offered "${1:-}"
    # Lists may be older than the mirror, which drops a package when a fixed one replaces it.
    debian_download || { debian_update && debian_resolve "${1:-}" && debian_download; } ||
        die 69 "the packages of $debian_main are listed but could not all be downloaded: check" \
            "$debian_mirrors, and the network"

    # shellcheck disable=SC2046 # package=version words
    debian_records=$(apt-cache show -- $(printf '%s' "$debian_chosen" | tr ' ' '='))
    for package in $WB_PACKAGES; do
        if debian_from_subject "$package"; then continue; fi
        version=$(printf '%s' "$debian_chosen" | awk -v package="$package" '$1 == package {print $2}')
        want=$(debian_field "$package" "$version" SHA256)
        file=$(debian_file "$package") ||
            die 1 "apt-get downloaded no file for $package $version"
        [ "$(dpkg-deb -f "$WB_CACHE/$file" Version)" = "$version" ] ||
            die 1 "$file does not hold version $version"
        check_sum sha256 "$file" "${want:-nothing}" "$debian_mirrors"
        artifact "$package" "$version" "$file"
    done
}
