package messageapi

import (
	"strconv"
	"strings"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

const (
	defaultMatches = 100
	maxMatches     = 10_000
	defaultSearch  = time.Minute // of one call; the cursor continues afterwards
	maxSearch      = 10 * time.Minute
	maxSelected    = 1024 // partitions in the query

	// progressInterval is the interval of progress events without matches.
	progressInterval = 250 * time.Millisecond
)

// The reasons why a search ends.
const (
	endOfTopic = "end"
	endOfLimit = "limit"
	endOfTime  = "time"
)

// searchProgress is the data of the events progress and end.
type searchProgress struct {
	Scanned int64   `json:"scanned"`
	Matched int64   `json:"matched"`
	Failed  int64   `json:"failed"`
	Failure string  `json:"failure,omitempty"`
	Total   int64   `json:"total"`
	Percent float64 `json:"percent"`
	Cursor  string  `json:"cursor"`
	Reason  string  `json:"reason,omitempty"` // of the event end
}

// search is GET …/{topic}/search, an extension. It sends the messages that an expression selects as
// events, with the progress of the search.
func (c *call) search() error {
	opts, timeout, err := c.searchOptions()
	if err != nil {
		return err
	}
	requested, err := parseEncoding(c.R.URL.Query().Get("encoding"))
	if err != nil {
		return err
	}
	as := rendering{encoding: requested}
	if as.limit, as.limited, err = c.queryNumber("payloadLimit", ""); err != nil {
		return err
	}
	s, err := c.Cluster.Searcher.Search(c.WorkContext(), c.Topic, opts)
	if err != nil {
		return err
	}
	return c.sendSearch(s, as, opts.Limit, time.Now().Add(timeout))
}

// searchOptions parses the query.
func (c *call) searchOptions() (opts messaging.SearchOptions, timeout time.Duration, err error) {
	query := c.R.URL.Query()
	if query.Get("filter") == "" {
		return opts, 0, brokerhttp.BadQuery("filter is missing; send an expression such as payload.total > 100")
	}
	if opts.Filter, err = filter.Compile(query.Get("filter")); err != nil {
		return opts, 0, err
	}
	opts.Cursor = query.Get("cursor")
	for name, into := range map[string]*time.Time{"from": &opts.Since, "to": &opts.Until} {
		millis, ok, err := c.queryNumber(name, "")
		if err != nil {
			return opts, 0, err
		}
		if ok {
			*into = time.UnixMilli(millis)
		}
	}
	if list := query.Get("partitions"); list != "" {
		for text := range strings.SplitSeq(list, ",") {
			i, err := strconv.ParseInt(text, 10, 32)
			if err != nil || i < 0 || len(opts.Partitions) == maxSelected {
				return opts, 0, brokerhttp.BadQuery("partitions must be up to %d numbers, separated by commas",
					maxSelected)
			}
			opts.Partitions = append(opts.Partitions, int32(i))
		}
	}
	limit, ok, err := c.queryNumber("limit", "")
	if err != nil {
		return opts, 0, err
	}
	if opts.Limit = defaultMatches; ok {
		if limit < 1 || limit > maxMatches {
			return opts, 0, brokerhttp.BadQuery("limit must be between 1 and %d", maxMatches)
		}
		opts.Limit = int(limit)
	}
	wait, ok, err := c.queryNumber("timeoutMillis", "")
	if timeout = defaultSearch; ok {
		timeout = min(time.Duration(min(wait, maxSearch.Milliseconds()))*time.Millisecond, maxSearch)
	}
	return opts, timeout, err
}

// sendSearch sends events until the search ends, the time is over, or the client disconnects.
func (c *call) sendSearch(s *messaging.Search, as rendering, limit int, deadline time.Time) error {
	out, err := c.startEvents()
	if err != nil {
		return err
	}
	defer out.release()
	var sent time.Time
	for {
		if err := c.waitForQuota(); err != nil {
			return nil // the client has disconnected
		}
		found, progress, done, err := s.Next(c.WorkContext())
		if err == nil {
			err = c.reauthorize()
		}
		switch {
		case c.R.Context().Err() != nil:
			return nil
		case err != nil:
			return out.fail(err)
		}
		for i := range found {
			if err := out.message(&found[i], as); err != nil {
				return err
			}
		}
		reason := ""
		switch {
		case done && progress.Matched >= int64(limit):
			reason = endOfLimit
		case done:
			reason = endOfTopic
		case time.Now().After(deadline):
			reason = endOfTime
		case len(found) == 0 && time.Since(sent) < progressInterval:
			continue
		}
		sent = time.Now()
		if err := out.progress(&progress, reason); err != nil || reason != "" {
			return err
		}
	}
}

// progress sends the buffered messages and the progress, or the end if there is a reason.
func (e *eventWriter) progress(p *messaging.Progress, reason string) error {
	data := searchProgress{
		Scanned: p.Scanned, Matched: p.Matched, Failed: p.Failed, Total: p.Total, Cursor: p.Cursor, Reason: reason,
		Percent: 100,
	}
	if p.Total > 0 && reason != endOfTopic {
		data.Percent = min(float64(p.Scanned*1000/p.Total)/10, 100)
	}
	data.Failure = publicFailure(p)
	b, err := web.MarshalJSON(data)
	if err != nil {
		return err
	}
	kind := "progress"
	if reason != "" {
		kind = "end"
	}
	e.buf = append(e.buf, "event: "+kind+"\ndata: "...)
	e.buf = append(append(e.buf, b...), "\n\n"...)
	return e.send()
}
