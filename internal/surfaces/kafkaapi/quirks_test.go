package kafkaapi

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestMetadataOfLibrdkafka checks that padded requests of librdkafka are decoded, and similar ones
// are not.
func TestMetadataOfLibrdkafka(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version int16
		body    string
		want    error
		create  bool
	}{
		"brokers only":             {13, "01000000", nil, false},
		"all topics":               {13, "00000000010000", nil, true},
		"all topics, version 12":   {12, "00000000000100", nil, false},
		"all topics, version 10":   {10, "0000000001000000", nil, true},
		"all topics, as they must": {13, "00010000", nil, true},
		"another byte behind":      {13, "0000000001000000", errTrailingBytes, false},
		"other padding":            {13, "00000001010000", errTrailingBytes, false},
		"padding of a name":        {13, "0100000000010000", errTrailingBytes, false},
	} {
		body, err := hex.DecodeString(c.body)
		if err != nil {
			t.Fatal(err)
		}
		request := kmsg.NewPtrMetadataRequest()
		request.Version = c.version
		err = decode(request, body)
		if !errors.Is(err, c.want) || err == nil && request.AllowAutoTopicCreation != c.create {
			t.Errorf("%s: got %v and %+v, want %v and creation %t", name, err, request, c.want, c.create)
		}
		if err == nil && name != "brokers only" && request.Topics != nil {
			t.Errorf("%s: got topics %v, want all", name, request.Topics)
		}
	}
}
