#!/usr/bin/env bash
# hack/kafka-peer.sh DIR PORT [NAME=VALUE...] runs an Apache Kafka broker to compare with:
# one node that is broker and controller, without security, on loopback. Its data and
# configuration are in the new folder DIR. Clients connect to PORT; the controller listens
# on CONTROLLER_PORT (default PORT+1). NAME=VALUE are broker settings, for example
# flush.messages=1, which becomes log.flush.interval.messages=1. HEAP is the size of the Java
# heap (default 1g).
#
# The script execs the broker, so its process id is the broker's. The broker is ready when
# it logs "Kafka Server started".
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [[ $# -lt 2 ]]; then
  sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
dir=$1 port=$2 controller=${CONTROLLER_PORT:-$(($2 + 1))}
shift 2

"$root"/hack/java-libs.sh platform
libs="$root/.cache/java/platform/*"
mkdir "$dir"
{
  cat <<END
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:$controller
log.dirs=$dir/data
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=16
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=250
END
  for setting in "$@"; do
    case $setting in
    flush.messages=*) echo "log.flush.interval.messages=${setting#*=}" ;;
    flush.ms=*) echo "log.flush.interval.ms=${setting#*=}" ;;
    *) echo "$setting" ;;
    esac
  done
} >"$dir/server.properties"

java=(java -XX:+UseG1GC -Dorg.slf4j.simpleLogger.defaultLogLevel="${LOG_LEVEL:-info}" -cp "$libs")
# The id has no - and _, because one that begins with - would be read as a flag.
"${java[@]}" -Xmx256m kafka.tools.StorageTool format --standalone \
  --cluster-id "$(head -c 16 /dev/urandom | base64 | tr '+/' 'ab' | tr -d =)" \
  --config "$dir/server.properties" >&2
exec "${java[@]}" -Xms"${HEAP:-1g}" -Xmx"${HEAP:-1g}" kafka.Kafka "$dir/server.properties"
