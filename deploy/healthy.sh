#!/bin/bash
# Whether the server takes requests, without any other program: healthy.sh [HOST [PORT]]
set -u
exec 3<>"/dev/tcp/${1:-127.0.0.1}/${2:-8080}" || exit 1
printf 'GET /health HTTP/1.0\r\n\r\n' >&3
IFS=' ' read -r -t 2 _ status _ <&3
[[ ${status:-} == 200 ]]
