package streamapi

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Keys of the APIs that have a part in the conversation itself.
const (
	keySASLHandshake    int16 = 17
	keyAPIVersions      int16 = 18
	keySASLAuthenticate int16 = 36
)

// api is a row of docs/spec/stream.md#apis.
type api struct {
	name     string
	min, max int16 // advertised
	served   int16 // smallest version that is really served; older clients look for min
	take     func(ctx context.Context, c *call) answer
}

// call is a request that was taken.
type call struct {
	header
	conn    *conn
	session *session
	request kmsg.Request
}

// apis is everything that is served. What is not here is not advertised.
var apis map[int16]api

func init() { //nolint:gochecknoinits // the table's entries refer to the table
	apis = map[int16]api{
		keySASLHandshake:    {name: "SaslHandshake", max: 1, take: takeSASLHandshake},
		keyAPIVersions:      {name: "ApiVersions", max: 4, take: takeAPIVersions},
		keySASLAuthenticate: {name: "SaslAuthenticate", max: 2, take: takeSASLAuthenticate},
	}
}

// now is an answer that is made at its turn.
func now(make func(ctx context.Context) (kmsg.Response, error)) answer {
	return answer{make: make}
}
