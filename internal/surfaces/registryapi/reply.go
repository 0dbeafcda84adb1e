package registryapi

import (
	"net/http"
	"strconv"

	"freshet/internal/base/web"
	"freshet/internal/registry/schemas"
)

// Header values that never change are shared, so that a response does not allocate
// them; see BenchmarkHandler.
var (
	noCache      = []string{"no-cache"}
	cacheForever = []string{"private, max-age=86400, immutable"}
	mediaSets    = map[string][]string{mediaV1: {mediaV1}, mediaVendor: {mediaVendor}, mediaJSON: {mediaJSON}}
)

// reply responds with a body that can change later, so it must not be cached.
func (c *call) reply(body []byte) error {
	c.W.Header()["Cache-Control"] = noCache
	web.WriteBody(c.W, http.StatusOK, c.media, body)
	return nil
}

// replyImmutable responds with a body that never changes for its id, so it can be cached.
func (c *call) replyImmutable(s *schemas.Schema, body []byte) error {
	h := c.W.Header()
	tag := `"` + s.Tag() + `"`
	h["Cache-Control"] = cacheForever
	h["Etag"] = []string{tag}
	if known := c.R.Header["If-None-Match"]; len(known) == 1 && known[0] == tag {
		c.W.WriteHeader(http.StatusNotModified)
		return nil
	}
	h["Content-Type"] = mediaSets[c.media]
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	c.W.WriteHeader(http.StatusOK)
	_, _ = c.W.Write(body) // the client may have disconnected; the record's byte count shows it
	return nil
}

// replyNumbers responds with a page of a list of numbers.
func (c *call) replyNumbers(numbers []int32, p page) error {
	body := append(make([]byte, 0, 2+8*len(numbers)), '[')
	for _, n := range numbers {
		take, done := p.includesNext()
		if done {
			break
		}
		if !take {
			continue
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = strconv.AppendInt(body, int64(n), 10)
	}
	return c.reply(append(body, ']'))
}
