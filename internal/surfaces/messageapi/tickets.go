package messageapi

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// A ticket lets a page open a stream with EventSource, which cannot send an
// Authorization header: it stands in the query, where proxies and histories may
// keep it, and so is good for one stream of one caller, once and not for long
// (docs/spec/messages.md#tickets).
const (
	ticketLife = 30 * time.Second
	// Bounds of the tickets of the last 30 s, used or not: of everybody, of one
	// organization, of one caller. No organization can keep the others from having
	// any.
	maxTickets               = 100_000
	maxTicketsOfOrganization = 5_000
	maxTicketsOfOne          = 1_000

	ticketQuery = "ticket"
)

var (
	errTicket = errs.New(errs.Unauthenticated, "the ticket is not known here, not for this stream, used already or "+
		"too old; ask for a new one and open the stream with it at once")
	errTickets = errs.New(errs.Unavailable, "too many tickets were asked for in the last 30 seconds; try again shortly")
)

// stream is what a ticket opens.
type stream struct {
	scope   access.Scope
	pattern string
}

type ticket struct {
	stream
	who  *identity.Principal
	ends time.Time
	used bool
}

type ticketHash [sha256.Size]byte

// tickets are those that have not ended, used or not. mu guards everything.
type tickets struct {
	mu    sync.Mutex
	live  map[ticketHash]*ticket
	queue []ticketHash   // in the order of their end
	of    map[string]int // how many each holder and each organization has
}

func holder(who *identity.Principal) string { return who.Organization + "/" + who.Name }

// issue makes a ticket.
func (t *tickets) issue(who *identity.Principal, opens stream, now time.Time) (text string, ends time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked(now)
	if len(t.live) >= maxTickets || t.of[who.Organization] >= maxTicketsOfOrganization ||
		t.of[holder(who)] >= maxTicketsOfOne {
		return "", time.Time{}, errTickets
	}
	if t.live == nil {
		t.live, t.of = make(map[ticketHash]*ticket), make(map[string]int)
	}
	text, ends = rand.Text(), now.Add(ticketLife)
	hash := ticketHash(sha256.Sum256([]byte(text)))
	t.live[hash] = &ticket{stream: opens, who: who, ends: ends}
	t.queue = append(t.queue, hash)
	t.of[holder(who)]++
	t.of[who.Organization]++
	return text, ends, nil
}

// redeem uses a ticket up, whether or not it opens this stream.
func (t *tickets) redeem(text string, opens stream, now time.Time) (*identity.Principal, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked(now)
	found := t.live[ticketHash(sha256.Sum256([]byte(text)))]
	if found == nil || found.used {
		return nil, errTicket
	}
	found.used = true
	if found.stream != opens || !found.who.Live() {
		return nil, errTicket
	}
	return found.who, nil
}

func (t *tickets) expireLocked(now time.Time) {
	for len(t.queue) > 0 {
		first := t.live[t.queue[0]]
		if first.ends.After(now) {
			return
		}
		delete(t.live, t.queue[0])
		t.queue = t.queue[1:]
		for _, key := range []string{holder(first.who), first.who.Organization} {
			if t.of[key]--; t.of[key] == 0 {
				delete(t.of, key)
			}
		}
	}
}

// issueTicket is POST on the path of a stream with /ticket behind it, an
// extension.
func (c *call) issueTicket() error {
	opens := stream{scope: c.Scope(), pattern: strings.TrimSuffix(c.route.Pattern, ticketSuffix)}
	text, ends, err := c.api.tickets.issue(c.Principal, opens, time.Now())
	if err != nil {
		return err
	}
	c.W.Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusCreated, struct {
		Ticket    string `json:"ticket"`
		ExpiresAt int64  `json:"expiresAt"`
	}{text, ends.UnixMilli()})
}

// takeTicket takes the ticket of a stream out of the query, so that nobody who
// looks at the request later finds it there. Who sends a token needs none.
func (c *call) takeTicket() string {
	if !c.route.Value.streams || !strings.Contains(c.R.URL.RawQuery, ticketQuery) {
		return ""
	}
	query := c.R.URL.Query()
	text := query.Get(ticketQuery)
	query.Del(ticketQuery)
	c.R.URL.RawQuery = query.Encode()
	if len(c.R.Header["Authorization"]) > 0 {
		return ""
	}
	return text
}

// redeem finds the caller by its ticket.
func (c *call) redeem(text string) error {
	who, err := c.api.tickets.redeem(text, stream{scope: c.Scope(), pattern: c.route.Pattern}, time.Now())
	if err != nil {
		return err
	}
	c.Principal = who
	web.RecordOf(c.R.Context()).Principal = who.Name
	return c.Meter()
}
