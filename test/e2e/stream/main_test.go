// Package stream runs Kafka clients against the real binary.
package stream_test

import (
	"testing"

	"freshet/test/testserver"
)

var binary string

func TestMain(m *testing.M) { testserver.Main(m, &binary) }
