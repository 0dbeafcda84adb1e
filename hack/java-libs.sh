#!/usr/bin/env bash
# hack/java-libs.sh NAME... downloads the Java libraries that test/clients/java/NAME/pom.xml
# pins into .cache/java/NAME with Maven. It installs Maven and a JDK from Debian if they
# are missing, and downloads again only when the pom has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/need.sh javac default-jdk-headless
hack/need.sh mvn maven
for name in "$@"; do
  pom=test/clients/java/$name/pom.xml
  libs=$PWD/.cache/java/$name
  # The pom is copied next to its libraries, so that a changed pom is noticed.
  if cmp -s "$pom" "$libs/pom.xml"; then
    continue
  fi
  echo "downloading the Java libraries of $pom" >&2
  rm -rf "$libs"
  for attempt in 1 2 3; do
    if mvn -B -q -f "$pom" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$libs" >&2; then
      break
    fi
    if [[ $attempt -eq 3 ]]; then
      rm -rf "$libs"
      echo "downloading the Java libraries of $pom failed" >&2
      exit 1
    fi
  done
  cp "$pom" "$libs/pom.xml"
done
