// Package kafka tests the Kafka protocol of the real binary with Kafka clients.
package kafka_test

import (
	"testing"

	"freshet/test/testserver"
)

var binary string

func TestMain(m *testing.M) { testserver.Main(m, &binary) }
