#!/usr/bin/env bash
# The message API from the first call to the last, with curl only: schema,
# subscription, produce, consume, acknowledge, for topics of four schema types,
# with and without partitions.
#
#   FRESHET_SERVER   base URL of the server   (http://127.0.0.1:8080)
#   FRESHET_API_KEY  bearer token             (the content of freshet-data/admin.token)
#   RUN              prefix of the topics; choose a new one for each run (run and the process id)
set -euo pipefail

server=${FRESHET_SERVER:-http://127.0.0.1:8080}
token=${FRESHET_API_KEY:-$(cat freshet-data/admin.token)}
RUN=${RUN:-run$$}

admin=$server/admin/v2
rest=$server/admin/rest/topics/v1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# call STATUS METHOD URL [curl arguments] fails unless it gets STATUS, and prints the response body.
call() {
  local want=$1 method=$2 url=$3 got
  shift 3
  got=$(curl -sS -o "$work/body" -D "$work/headers" -w '%{http_code}' -X "$method" \
    -H "Authorization: Bearer $token" "$@" "$url")
  if [[ $got != "$want" ]]; then
    echo "$method $url: got status $got, want $want: $(cat "$work/body")" >&2
    exit 1
  fi
  cat "$work/body"
}

header() { tr -d '\r' <"$work/headers" | awk -v name="$1" 'tolower($1) == tolower(name ":") {print $2}'; }

json=(-H 'Accept: application/json' -H 'Content-Type: application/json')
octets=(-H 'Accept: application/json' -H 'Content-Type: application/octet-stream')
record='{\"type\":\"record\",\"name\":\"Reading\",\"fields\":[{\"name\":\"name\",\"type\":\"string\"}]}'

# use TYPE SCHEMA PAYLOAD-FILE PARTITIONS creates a topic and sends one message through it.
use() {
  local type=$1 schema=$2 payload=$3 partitions=$4
  local topic=$RUN-$(tr '[:upper:]' '[:lower:]' <<<"$type")-$partitions
  if ((partitions > 0)); then
    call 204 PUT "$admin/persistent/public/default/$topic/partitions" "${json[@]}" -d "$partitions"
  fi
  call 200 POST "$admin/schemas/public/default/$topic/schema" "${json[@]}" \
    -d "{\"type\":\"$type\",\"schema\":\"$schema\",\"properties\":{}}" >/dev/null
  call 204 PUT "$admin/persistent/public/default/$topic/subscription/sub" "${json[@]}"
  call 201 POST "$rest/persistent/public/default/$topic/message" "${octets[@]}" \
    -H 'X-Msg-Partition-Key: k' -H 'X-Msg-Property-Origin: example' --data-binary "@$payload" >/dev/null
  call 200 POST "$rest/public/default/$topic/sub/message" \
    -H 'Accept: application/octet-stream' -H 'Content-Type: application/json' >"$work/received"
  cmp "$payload" "$work/received"
  local id version
  id=$(header X-Msg-Message-Id)
  version=$(header X-Msg-Long-Schema-Version)
  [[ $version == 0 ]] || { echo "schema version '$version', want 0" >&2; exit 1; }
  [[ $(header X-Msg-Property-Origin) == example ]] || { echo "property Origin is missing" >&2; exit 1; }
  # Some clients send the id without its base64 padding.
  call 204 PUT "$rest/public/default/$topic/sub/message" "${json[@]}" -d "${id//=/}"
  call 204 POST "$rest/public/default/$topic/sub/message" "${json[@]}" -d '{"timeoutMillis":0}'
  echo "ok: $type, partitions: $partitions"
}

printf 'hello' >"$work/string"
printf '{"name":"ada"}' >"$work/json"
printf '\x06ada' >"$work/avro"     # length 3 in zigzag encoding, then the text
printf '\x0a\x03ada' >"$work/proto" # field 1, length 3

for partitions in 0 3; do
  use STRING '' "$work/string" "$partitions"
  use JSON "$record" "$work/json" "$partitions"
  use AVRO "$record" "$work/avro" "$partitions"
  use PROTOBUF "$record" "$work/proto" "$partitions"
done
