#!/usr/bin/env bash
# Regenerates all code that is generated from the types in api: deep copies, protobuf,
# OpenAPI definitions, and the typed client with listers, informers and apply
# configurations. Copies what the Helm chart repeats. The output is checked in; make verify runs this script and fails on any
# difference. Needs the generators in .cache/bin (make tools) and protoc (Debian:
# protobuf-compiler).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin="$PWD/.cache/bin"
api=freshet/api/v1alpha1
reviews=freshet/api/authorization/v1alpha1
gen=api/generated
openapi=internal/controlplane/openapi
header="$PWD/hack/boilerplate.go.txt"
export PATH="$bin:$PATH" CGO_ENABLED=0

protobuf() {
  if ! command -v protoc >/dev/null; then
    echo "codegen: protoc is not installed, so protobuf code was not regenerated" \
      "(Debian: apt-get install protobuf-compiler)" >&2
    return 0
  fi
  # go-to-protobuf needs a GOPATH-like tree, which symbolic links provide.
  local tree
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' RETURN
  mkdir -p "$tree/k8s.io" "$tree/github.com/gogo"
  ln -s "$PWD" "$tree/freshet"
  ln -s "$(go list -m -f '{{.Dir}}' k8s.io/apimachinery)" "$tree/k8s.io/apimachinery"
  ln -s "$(cd tools/k8s && go list -m -f '{{.Dir}}' github.com/gogo/protobuf)" "$tree/github.com/gogo/protobuf"
  go-to-protobuf \
    --go-header-file "$header" --output-dir "$tree" --proto-import "$tree" \
    --packages "$api" \
    --apimachinery-packages '-k8s.io/apimachinery/pkg/util/intstr,-k8s.io/apimachinery/pkg/api/resource,-k8s.io/apimachinery/pkg/runtime/schema,-k8s.io/apimachinery/pkg/runtime,-k8s.io/apimachinery/pkg/apis/meta/v1'
}

openapi() {
  mkdir -p "$openapi"
  openapi-gen --go-header-file "$header" \
    --output-dir "$openapi" --output-pkg "freshet/$openapi" --output-file zz_generated.openapi.go \
    --output-model-name-file zz_generated.model_name.go \
    --readonly-pkg k8s.io/apimachinery/pkg/apis/meta/v1 --readonly-pkg k8s.io/apimachinery/pkg/runtime \
    --readonly-pkg k8s.io/apimachinery/pkg/version --readonly-pkg k8s.io/apimachinery/pkg/api/resource \
    --readonly-pkg k8s.io/api/authorization/v1 --readonly-pkg k8s.io/api/authentication/v1 \
    --report-filename "$(mktemp)" \
    "$api" "$reviews" k8s.io/api/authorization/v1 k8s.io/api/authentication/v1 \
    k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime \
    k8s.io/apimachinery/pkg/version k8s.io/apimachinery/pkg/api/resource
}

client() {
  rm -rf "$gen"
  mkdir -p "$gen"
  applyconfiguration-gen --go-header-file "$header" \
    --output-dir "$gen/applyconfiguration" --output-pkg "freshet/$gen/applyconfiguration" "$api"
  client-gen --go-header-file "$header" \
    --clientset-name versioned --input-base "" --input "$api" \
    --apply-configuration-package "freshet/$gen/applyconfiguration" \
    --output-dir "$gen/clientset" --output-pkg "freshet/$gen/clientset"
  lister-gen --go-header-file "$header" \
    --output-dir "$gen/listers" --output-pkg "freshet/$gen/listers" "$api"
  informer-gen --go-header-file "$header" \
    --versioned-clientset-package "freshet/$gen/clientset/versioned" \
    --listers-package "freshet/$gen/listers" \
    --output-dir "$gen/informers" --output-pkg "freshet/$gen/informers" "$api"
}

# The files of the Helm chart, and its page, that repeat others.
chart() {
  cp internal/cli/generatecmd/templates/alerts.yml deploy/helm/freshet/files/alerts.yml
  local page=docs/reference/helm-values.md text
  text=$(sed '/^```yaml$/,$d' "$page")
  { printf '%s\n\n```yaml\n' "$text"; cat deploy/helm/freshet/values.yaml; printf '```\n'; } >"$page"
}

chart
protobuf
deepcopy-gen --go-header-file "$header" --output-file zz_generated.deepcopy.go "$api" "$reviews"
openapi
client
