#!/usr/bin/env bash
# smtp.sh: signs in to a new service with a code that an SMTP server from npm (smtp-server, mailparser) took over, with
# STARTTLS and a password. The binary only: a Worker has no SMTP.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" -days 2 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE 2>/dev/null
port=$(python3 free_port.py)
export SMTP_PORT=$port SMTP_TLS=$work SSL_CERT_FILE=$work/cert.pem \
  SIDETONE_SMTP_URL="smtp://anna%40example.com:p%40ss%20%2F%3A@localhost:$port?tls=starttls" \
  SIDETONE_MAIL_FROM='Sidetone Ünit <voice@example.com>'
./with-server.sh node smtp.mjs
