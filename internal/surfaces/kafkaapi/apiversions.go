package kafkaapi

import (
	"context"
	"maps"
	"regexp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// softwarePattern matches the valid names and versions of client software.
var softwarePattern = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

func beginAPIVersions(_ context.Context, c *call) pendingResponse {
	request, _ := c.request.(*kmsg.ApiVersionsRequest)
	response, _ := request.ResponseKind().(*kmsg.ApiVersionsResponse)
	if c.version >= 3 &&
		(!softwarePattern.MatchString(request.ClientSoftwareName) ||
			!softwarePattern.MatchString(request.ClientSoftwareVersion)) {
		response.ErrorCode = codeInvalidRequest
	} else {
		if c.version >= 3 {
			c.conn.client.Store(&Client{cut(request.ClientSoftwareName, 64), cut(request.ClientSoftwareVersion, 64)})
		}
		response.ApiKeys = c.conn.server.versions()
		if c.version >= 3 {
			setFeatures(response)
		}
	}
	return whenDue(func(context.Context) (encodable, error) { return response, nil })
}

// setFeatures reports the features group.version and share.version: the consumer protocol and share groups are always
// enabled.
func setFeatures(response *kmsg.ApiVersionsResponse) {
	const level = 1
	for _, name := range []string{"group.version", "share.version"} {
		response.SupportedFeatures = append(response.SupportedFeatures, kmsg.ApiVersionsResponseSupportedFeature{
			Name: name, MinVersion: level, MaxVersion: level,
		})
		response.FinalizedFeatures = append(response.FinalizedFeatures, kmsg.ApiVersionsResponseFinalizedFeature{
			Name: name, MinVersionLevel: level, MaxVersionLevel: level,
		})
	}
	response.FinalizedFeaturesEpoch = 0
}

func cut(s string, n int) string { return s[:min(len(s), n)] }

// versions lists all supported APIs.
func (s *Server) versions() []kmsg.ApiVersionsResponseApiKey {
	var list []kmsg.ApiVersionsResponseApiKey
	for _, key := range slices.Sorted(maps.Keys(s.apis)) {
		list = append(list, kmsg.ApiVersionsResponseApiKey{
			ApiKey: key, MinVersion: s.apis[key].min,
			MaxVersion: s.apis[key].max,
		})
	}
	return list
}

// newerVersion returns the response to an ApiVersions request of an unsupported version, in version
// 0, which every client can read.
func newerVersion(own api) kmsg.Response {
	return &kmsg.ApiVersionsResponse{
		Version: 0, ErrorCode: codeVersion,
		ApiKeys: []kmsg.ApiVersionsResponseApiKey{{ApiKey: keyAPIVersions, MinVersion: own.min, MaxVersion: own.max}},
	}
}
