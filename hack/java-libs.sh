#!/usr/bin/env bash
# hack/java-libs.sh NAME... fetches the Java libraries that test/clients/java/NAME/pom.xml
# pins into .cache/java/NAME, with Maven, and installs Maven and a JDK from Debian when
# they are missing. Nothing is fetched twice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/need.sh javac default-jdk-headless
hack/need.sh mvn maven
for name in "$@"; do
  pom=test/clients/java/$name/pom.xml
  libs=$PWD/.cache/java/$name
  # The pom is kept beside what it brought, so that another one brings it anew.
  if cmp -s "$pom" "$libs/pom.xml"; then
    continue
  fi
  echo "fetching the Java libraries of $pom" >&2
  rm -rf "$libs"
  for attempt in 1 2 3; do
    if mvn -B -q -f "$pom" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$libs" >&2; then
      break
    fi
    if [[ $attempt -eq 3 ]]; then
      rm -rf "$libs"
      echo "the Java libraries of $pom cannot be fetched" >&2
      exit 1
    fi
  done
  cp "$pom" "$libs/pom.xml"
done
