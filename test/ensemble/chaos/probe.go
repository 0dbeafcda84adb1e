package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"freshet.dev/client"
	"freshet/test/ensemble/load"
)

// Probe produces to topics continuously, with a timeout of one second per call, and
// measures how long each topic accepts nothing: that is the time without an owner, as
// clients see it. mu protects the times and errors.
type Probe struct {
	topics  []string
	running sync.WaitGroup
	stop    context.CancelFunc

	mu      sync.Mutex
	last    map[string]time.Time
	failure map[string]error // the last error since then
	longest Gap
}

// Gap is a period in which a topic accepted no message.
type Gap struct {
	Topic     string
	Began     time.Time
	Length    time.Duration
	LastError error // error of the last call in it; nil if calls were slow and none failed
}

// clientsOf returns a client for each member. The clients do not retry.
func clientsOf(members []load.Member, token string, timeout time.Duration) ([]*client.Client, error) {
	clients := make([]*client.Client, len(members))
	for i, m := range members {
		var err error
		clients[i], err = client.New(client.Config{
			BaseURL: m.URL, TokenSource: client.StaticToken(token), Timeout: timeout, MaxAttempts: 1,
			Transport: &http.Transport{MaxIdleConnsPerHost: 100},
		})
		if err != nil {
			return nil, err
		}
	}
	return clients, nil
}

// NewProbe creates the topics. There should be enough of them that every member owns some.
func NewProbe(ctx context.Context, members []load.Member, token string, topics int) (*Probe, error) {
	clients, err := clientsOf(members, token, 20*time.Second)
	if err != nil {
		return nil, err
	}
	p := &Probe{last: map[string]time.Time{}, failure: map[string]error{}}
	for i := range topics {
		name := fmt.Sprintf("probe-%d", i)
		err := clients[0].Topic(name).Create(ctx, client.TopicOptions{})
		if err != nil && !errors.Is(err, client.ErrConflict) {
			return nil, fmt.Errorf("creating topic %s: %w", name, err)
		}
		p.topics = append(p.topics, name)
	}
	return p, nil
}

// Start begins to produce through these members.
func (p *Probe) Start(ctx context.Context, members []load.Member, token string) error {
	clients, err := clientsOf(members, token, time.Second)
	if err != nil {
		return err
	}
	ctx, p.stop = context.WithCancel(ctx)
	for _, topic := range p.topics {
		p.running.Go(func() {
			for ctx.Err() == nil {
				c := clients[rand.IntN(len(clients))]
				_, err := c.Topic(topic).Produce(ctx, client.Message{Value: []byte("probe")})
				p.record(topic, err)
				pause(ctx, 10*time.Millisecond)
			}
		})
	}
	return nil
}

// record records the result of a call to a topic.
func (p *Probe) record(topic string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failure[topic] = err
		return
	}
	now := time.Now()
	if last, ok := p.last[topic]; ok && now.Sub(last) > p.longest.Length {
		p.longest = Gap{Topic: topic, Began: last, Length: now.Sub(last), LastError: p.failure[topic]}
	}
	p.last[topic] = now
	delete(p.failure, topic)
}

// Await waits until every topic has accepted a message after the given time.
func (p *Probe) Await(ctx context.Context, after time.Time) error {
	for {
		p.mu.Lock()
		all := true
		for _, topic := range p.topics {
			all = all && p.last[topic].After(after)
		}
		p.mu.Unlock()
		if all {
			return nil
		}
		if !pause(ctx, 5*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// Longest returns the longest gap since its last call.
func (p *Probe) Longest() Gap {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := p.longest
	p.longest = Gap{}
	return longest
}

// Stop stops producing.
func (p *Probe) Stop() {
	p.stop()
	p.running.Wait()
}
