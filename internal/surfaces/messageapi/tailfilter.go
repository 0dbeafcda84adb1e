package messageapi

import (
	"time"

	"freshet/internal/base/web"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// tailProgressInterval is the interval of progress events of a tail with a filter. A tail whose filter
// selects nothing sends no other events, and its client could not continue after a lost connection.
const tailProgressInterval = time.Second

// filteredTail is a tail of the messages that an expression selects.
func (c *call) filteredTail(text string, from messaging.TailFrom, as rendering) error {
	expression, err := filter.Compile(text)
	if err != nil {
		return err
	}
	t, err := c.Cluster.Searcher.Tail(c.WorkContext(), c.Topic, from, expression)
	if err != nil {
		return err
	}
	return c.sendEvents(t, as)
}

// tailReport is the data of the event progress of a tail.
type tailReport struct {
	Scanned int64  `json:"scanned"`
	Matched int64  `json:"matched"`
	Failed  int64  `json:"failed"`
	Failure string `json:"failure,omitempty"`
}

// tailProgress sends how many messages a tail with a filter has read.
type tailProgress struct {
	tail     *messaging.FilteredTail // nil without a filter
	reported int64                   // messages in the last report
	sent     time.Time
}

// read returns how many messages the tail has read, damaged ones included.
func (p *tailProgress) read() int64 {
	if p.tail == nil {
		return 0
	}
	progress, _ := p.tail.Progress()
	return progress.Scanned + progress.Failed
}

// pending reports whether messages were read since the last report.
func (p *tailProgress) pending() bool { return p.read() > p.reported }

// wait returns how long to wait for messages.
func (p *tailProgress) wait() time.Duration {
	if p.pending() {
		return max(tailProgressInterval-time.Since(p.sent), time.Millisecond)
	}
	return heartbeatInterval
}

// report adds an event to the buffer when it is due. The event's id is that of the last message that was
// read, so that a client continues there after a lost connection.
func (p *tailProgress) report(e *eventWriter) error {
	if !p.pending() || time.Since(p.sent) < tailProgressInterval {
		return nil
	}
	progress, last := p.tail.Progress()
	data := tailReport{Scanned: progress.Scanned, Matched: progress.Matched, Failed: progress.Failed}
	data.Failure = publicFailure(&progress)
	b, err := web.MarshalJSON(data)
	if err != nil {
		return err
	}
	p.sent, p.reported = time.Now(), p.read()
	e.buf = append(e.buf, "event: progress\nid: "...)
	e.buf = last.AppendBase64(e.buf)
	e.buf = append(e.buf, "\ndata: "...)
	e.buf = append(append(e.buf, b...), "\n\n"...)
	return nil
}

// publicFailure returns the text of the first failure, or "".
func publicFailure(p *messaging.Progress) string {
	if p.Failure == nil {
		return ""
	}
	return brokerhttp.PublicReason(p.Failure, brokerhttp.MessageCalls.Status(p.Failure))
}
