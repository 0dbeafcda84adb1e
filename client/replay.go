package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// ReplayOptions selects the dead letters that Replay sends. The zero value sends all of them to the topic of
// the subscription.
type ReplayOptions struct {
	Filter string // expression that selects the dead letters; "" selects all
	To     string // another topic to send to
	DryRun bool   // counts the dead letters and changes nothing
	Limit  int    // ends after this many; 0 means no limit
}

// ReplayResult is how many dead letters Replay has read and sent. Failed counts those for which the
// expression failed and those that the target rejects.
type ReplayResult struct {
	FilterProgress

	Replayed int64 // dead letters whose copies are stored
}

const (
	// maxReplay is the server's limit of dead letters that one call sends.
	maxReplay = 1000
	// replayTime is longer than one call reads.
	replayTime = 15 * time.Second
)

// Replay sends the dead letters of the subscription again, oldest first, each once. A dead letter is
// acknowledged after its copy is stored. Those that the filter does not select stay dead letters. With an
// error it returns what was sent before.
func (s *Subscription) Replay(ctx context.Context, o ReplayOptions) (total ReplayResult, err error) {
	if s.err != nil {
		return total, s.err
	}
	body := map[string]any{"dryRun": o.DryRun}
	if o.Filter != "" {
		body["filter"] = o.Filter
	}
	if o.To != "" {
		body["to"] = s.t.c.Topic(o.To).Name()
	}
	for {
		body["limit"] = maxReplay
		if o.Limit > 0 {
			body["limit"] = min(o.Limit-int(total.Matched), maxReplay)
		}
		var result struct {
			FilterProgress

			Replayed int64
			After    string
		}
		request := &Request{
			Method: http.MethodPost, Idempotent: true, Timeout: s.t.c.timeout + replayTime,
			Path: s.t.admin("/subscription/" + url.PathEscape(s.name) + "/replay_dead_letters"),
		}
		if err := s.t.c.callJSON(ctx, request, body, &result); err != nil {
			return total, err
		}
		total.FilterProgress = total.plus(result.FilterProgress)
		total.Replayed += result.Replayed
		if result.After == "" || o.Limit > 0 && total.Matched >= int64(o.Limit) {
			return total, nil
		}
		body["after"] = result.After
	}
}
