#!/bin/sh
# Starts cairn with the libraries beside it, whatever those of this system are.
here=$(dirname "$(readlink -f "$0")")/../lib/cairn
# The library that fetches models looks for certificates where Debian has them.
if [ -z "${SSL_CERT_FILE:-}" ] && [ ! -e /etc/ssl/certs/ca-certificates.crt ]; then
  for file in /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
    if [ -e "$file" ]; then
      export SSL_CERT_FILE="$file"
      break
    fi
  done
fi
exec "$here/@LOADER@" --argv0 "$0" --library-path "$here" "$here/cairn" "$@"
