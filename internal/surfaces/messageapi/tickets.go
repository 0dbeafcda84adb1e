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
// Authorization header. The ticket is in the query, which proxies and browser histories
// may store. So it is valid for one stream of one caller, once and for a short time
// (docs/spec/messages.md#tickets).
const (
	ticketLifetime = 30 * time.Second
	// Limits of the tickets of the last 30 s, used or not: in total, per organization and
	// per caller. So one organization cannot use up all tickets.
	maxTickets                = 100_000
	maxTicketsPerOrganization = 5_000
	maxTicketsPerCaller       = 1_000

	ticketQuery = "ticket"
)

var (
	errTicket = errs.New(errs.Unauthenticated, "ticket is unknown, for another stream, already used or expired; "+
		"request a new one and open the stream with it within 30 seconds")
	errTickets = errs.New(errs.Unavailable, "too many tickets were requested in the last 30 seconds; retry later")
)

// stream identifies the stream that a ticket opens.
type stream struct {
	scope   access.Scope
	pattern string
}

type ticket struct {
	stream
	principal *identity.Principal
	expires   time.Time
	used      bool
}

type ticketHash [sha256.Size]byte

// tickets are the tickets that have not expired, used or not.
type tickets struct {
	mu     sync.Mutex // protects all fields
	active map[ticketHash]*ticket
	queue  []ticketHash   // in the order of their expiry
	counts map[string]int // number of tickets per holder and per organization
}

func holderKey(principal *identity.Principal) string {
	return principal.Organization + "/" + principal.Name
}

// issue returns a new ticket.
func (t *tickets) issue(principal *identity.Principal, opens stream,
	now time.Time,
) (text string, expires time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked(now)
	if len(t.active) >= maxTickets || t.counts[principal.Organization] >= maxTicketsPerOrganization ||
		t.counts[holderKey(principal)] >= maxTicketsPerCaller {
		return "", time.Time{}, errTickets
	}
	if t.active == nil {
		t.active, t.counts = make(map[ticketHash]*ticket), make(map[string]int)
	}
	text, expires = rand.Text(), now.Add(ticketLifetime)
	hash := ticketHash(sha256.Sum256([]byte(text)))
	t.active[hash] = &ticket{stream: opens, principal: principal, expires: expires}
	t.queue = append(t.queue, hash)
	t.counts[holderKey(principal)]++
	t.counts[principal.Organization]++
	return text, expires, nil
}

// redeem marks a ticket as used, whether or not it opens this stream.
func (t *tickets) redeem(text string, opens stream, now time.Time) (*identity.Principal, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked(now)
	found := t.active[ticketHash(sha256.Sum256([]byte(text)))]
	if found == nil || found.used {
		return nil, errTicket
	}
	found.used = true
	if found.stream != opens || !found.principal.Live() {
		return nil, errTicket
	}
	return found.principal, nil
}

func (t *tickets) expireLocked(now time.Time) {
	for len(t.queue) > 0 {
		first := t.active[t.queue[0]]
		if first.expires.After(now) {
			return
		}
		delete(t.active, t.queue[0])
		t.queue = t.queue[1:]
		for _, key := range []string{holderKey(first.principal), first.principal.Organization} {
			if t.counts[key]--; t.counts[key] == 0 {
				delete(t.counts, key)
			}
		}
	}
}

// issueTicket is POST on the path of a stream with the suffix /ticket, an extension.
func (c *call) issueTicket() error {
	opens := stream{scope: c.Scope(), pattern: strings.TrimSuffix(c.route.Pattern, ticketSuffix)}
	text, expires, err := c.api.tickets.issue(c.Principal, opens, time.Now())
	if err != nil {
		return err
	}
	c.W.Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusCreated, struct {
		Ticket    string `json:"ticket"`
		ExpiresAt int64  `json:"expiresAt"`
	}{text, expires.UnixMilli()})
}

// takeTicket removes the ticket of a stream from the query and returns it, so that later
// code cannot log it. It returns "" if the request has an Authorization header.
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

// AuthenticateAtOwner implements pipeline.OwnerAuthenticator. It redeems the ticket.
func (c *call) AuthenticateAtOwner() error {
	opens := stream{scope: c.Scope(), pattern: c.route.Pattern}
	principal, err := c.api.tickets.redeem(c.ticket, opens, time.Now())
	if err != nil {
		return err
	}
	c.Principal = principal
	web.RecordOf(c.R.Context()).Principal = principal.Name
	return nil
}
