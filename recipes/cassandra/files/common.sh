# shellcheck shell=sh
# Sourced by the steps: CQL, nodetool, the Java of the prefix.

# What recipes share lies beside this one, or in it where it stands alone.
shared=$WB_RECIPE_DIR/shared
[ -d "$shared" ] || shared=$WB_RECIPE_DIR/../shared
# shellcheck source=recipes/shared/common.sh
. "$shared/common.sh"

# cql SECONDS HOST PORT QUERY...: rows of all queries, "<number of the query>\t<column>\t..." a
# line each.
cql() {
    cql_limit=$1
    shift
    "$WB_ASK" --limit "${cql_limit}s" "$@"
}

# nodetool SECONDS COMMAND...: to the node at JMX port WB_PORT_JMX of the loopback address. A JVM for
# each call, so with as little of it as will do.
nodetool() {
    [ "${WB_NETWORK:-host}" = host ] ||
        die 1 "the node keeps its JMX for itself on network $WB_NETWORK; take network: host"
    tool_limit=$1
    shift
    tool_args=$(mktemp)
    java_module_options >"$tool_args"
    tool_rc=0
    LD_LIBRARY_PATH=$WB_PREFIX/lib timeout "$tool_limit" "$WB_PREFIX/java/bin/java" -Xmx128m \
        -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto "@$tool_args" \
        -cp "$WB_PREFIX/cassandra/lib/*" org.apache.cassandra.tools.NodeTool \
        -h 127.0.0.1 -p "$WB_PORT_JMX" "$@" || tool_rc=$?
    rm -f -- "$tool_args"
    return "$tool_rc"
}

# operation COMMAND...: nodetool on this instance as the step of an operation.
operation() {
    need WB_PREFIX WB_PORT_JMX
    # The engine has the limit.
    operation_said=$(nodetool 86400 "$@" 2>&1) || {
        say "$operation_said"
        die 1 "nodetool $*: $(printf '%s\n' "$operation_said" | grep -m 1 -i 'error\|exception\|not enough' || printf 'it failed')"
    }
    say "$operation_said"
    printf '{"done":%s}\n' "$(json_text "$*")"
}

# JVM options that Cassandra 5.0 needs on Java 17: it reaches into modules that are closed to
# programs by default.
java_module_options() {
    for module in java.base/jdk.internal.misc java.management.rmi/com.sun.jmx.remote.internal.rmi \
        java.rmi/sun.rmi.registry java.rmi/sun.rmi.server java.sql/java.sql \
        java.base/java.lang.ref jdk.unsupported/sun.misc \
        jdk.compiler/com.sun.tools.javac.file jdk.attach/sun.tools.attach; do
        printf '%s\n' "--add-exports=$module=ALL-UNNAMED"
    done
    for module in java.base/java.lang.module java.base/jdk.internal.loader \
        java.base/jdk.internal.ref java.base/jdk.internal.reflect java.base/jdk.internal.math \
        java.base/jdk.internal.module java.base/jdk.internal.util.jar \
        jdk.management/com.sun.management.internal java.base/sun.nio.ch java.base/java.io \
        java.base/java.lang.reflect jdk.compiler/com.sun.tools.javac java.base/java.lang \
        java.base/java.util java.base/java.util.concurrent \
        java.base/java.util.concurrent.atomic java.base/java.math java.base/java.net \
        java.base/java.nio java.rmi/sun.rmi.transport.tcp; do
        printf '%s\n' "--add-opens=$module=ALL-UNNAMED"
    done
}
