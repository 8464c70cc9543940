#!/bin/sh
# Holds the Kubernetes manifests against Kubernetes' schemas. Exit code 77 (skipped) with a reason where a tool is missing.
here=$(cd "$(dirname "$0")" && pwd)
skip() {
  echo "SKIPPED Kubernetes manifests: $1" >&2
  exit 77
}
command -v node >/dev/null || skip "node is not installed (apt install nodejs npm)"
[ -d "$here/node_modules/kubernetes-models" ] || skip "kubernetes-models is not installed (npm ci --prefix tests/deploy)"
exec node --test "$here/kubernetes.test.mjs"
