# shellcheck shell=sh
# Sourced by the steps: redis-cli of the prefix.

# What recipes share lies beside this one, or in it where it stands alone.
shared=$WB_RECIPE_DIR/shared
[ -d "$shared" ] || shared=$WB_RECIPE_DIR/../shared
# shellcheck source=recipes/shared/common.sh
. "$shared/common.sh"

# cli SECONDS ARGS...: redis-cli of the prefix with the prefix's libraries, on the instance's port.
cli() {
    cli_limit=$1
    shift
    cli_libs=
    for cli_dir in "$WB_PREFIX"/usr/lib/*-linux-gnu "$WB_PREFIX"/lib/*-linux-gnu; do
        if [ -d "$cli_dir" ]; then cli_libs=${cli_libs:+$cli_libs:}$cli_dir; fi
    done
    timeout "$cli_limit" env LD_LIBRARY_PATH="$cli_libs" "$WB_PREFIX/usr/bin/redis-cli" \
        -h "${WB_HOST:-127.0.0.1}" -p "$WB_PORT" "$@" 2>&1
}
