#!/bin/sh
# The life of a message with nothing but curl:
#
#   MQLITE_ENDPOINT=http://127.0.0.1:6754 MQLITE_TOKEN=mqk_... sh examples/curl.sh
#
# Bodies travel in base64.
set -eu

call() { # the token by a pipe: everybody on the machine can read a command line
    printf 'Authorization: Bearer %s' "$MQLITE_TOKEN" |
        curl --silent --show-error --fail-with-body --header @- \
        --data "$2" "$MQLITE_ENDPOINT/mqlite.v1.$1"
}
field() { # the first field of that name in the JSON on standard input
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"
}

call AdminService/CreateQueue '{"name":"curl"}'
echo
body=$(printf 'hello from curl' | base64)
call QueueService/Send "{\"queue\":\"curl\",\"messages\":[{\"body\":\"$body\"}]}"
echo

received=$(call QueueService/Receive '{"queue":"curl","wait_time_ms":5000}')
seq=$(echo "$received" | field seq_number)
token=$(echo "$received" | field lock_token)
echo "$received" | field body | base64 -d
echo

call QueueService/Complete "{\"queue\":\"curl\",\"seq_number\":$seq,\"lock_token\":\"$token\"}"
echo
