package signin

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// How devices wait (RFC 8628).
const (
	DeviceLifetime = 10 * time.Minute
	DeviceInterval = 5 * time.Second
)

// What a device that asks is told.
var (
	ErrPending  = errs.New(errs.Precondition, "nobody has said yet whose device it is")
	ErrSlowDown = errs.New(errs.Precondition, "the device asks too often")
	ErrRefused  = errs.New(errs.Denied, "the sign-in was refused")
	ErrTimeUp   = errs.New(errs.Unauthenticated, "nobody has said in time whose device it is: begin again")
)

// ErrNoDevice says that no device waits for what somebody has typed.
var ErrNoDevice = errs.New(errs.NotFound, "no device waits for this code: it was mistyped, used, or its time is up")

// wordLetters make no words and look like no others (RFC 8628 §6.1).
const (
	wordLetters = "BCDFGHJKLMNPQRSTVWXZ"
	wordLength  = 8
)

// Device is a device that waits.
type Device struct {
	Code    identity.Secret // what it asks with
	Word    string          // what a person types: XXXX-XXXX
	Client  string
	Address string
	Begun   time.Time
	Ends    time.Time
}

// BeginDevice lets a device wait for somebody to say whose it is.
func (s *Service) BeginDevice(ctx context.Context, client, address string) (*Device, error) {
	now := time.Now().UTC()
	token := identity.GenerateSecret()
	record := device{Client: client, Address: address, Begun: now, Ends: now.Add(DeviceLifetime).Truncate(time.Second)}
	key := devices + hashOf(token.Reveal())
	for {
		record.Word = newWord()
		err := s.write(ctx, words+record.Word, word{Device: key, Ends: record.Ends}, 0)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrChanged) { // else another device has the word
			return nil, err
		}
	}
	if err := s.write(ctx, key, record, 0); err != nil {
		return nil, err
	}
	return &Device{
		Code: token, Word: dashed(record.Word), Client: client, Address: address, Begun: now,
		Ends: record.Ends,
	}, nil
}

// DeviceOf finds the device that somebody has typed the code of.
func (s *Service) DeviceOf(ctx context.Context, typed string) (*Device, error) {
	_, record, _, err := s.waiting(ctx, typed)
	if err != nil {
		return nil, err
	}
	return &Device{
		Word: dashed(record.Word), Client: record.Client, Address: record.Address, Begun: record.Begun,
		Ends: record.Ends,
	}, nil
}

func (s *Service) waiting(ctx context.Context, typed string) (key string, record device, revision int64, err error) {
	letters, ok := wordOf(typed)
	if !ok {
		return "", device{}, 0, ErrNoDevice
	}
	w, _, ok, err := read[word](ctx, s.opts.Store, words+letters)
	if err != nil {
		return "", device{}, 0, err
	}
	if !ok || !time.Now().Before(w.Ends) {
		return "", device{}, 0, ErrNoDevice
	}
	record, revision, ok, err = read[device](ctx, s.opts.Store, w.Device)
	if err != nil {
		return "", device{}, 0, err
	}
	if !ok || record.Denied || record.Subject.UID != "" || !time.Now().Before(record.Ends) {
		return "", device{}, 0, ErrNoDevice
	}
	return w.Device, record, revision, nil
}

// DecideDevice is somebody's word on whose device it is: theirs, or nobody's. It is
// said once.
func (s *Service) DecideDevice(ctx context.Context, typed string, in *Session, theirs bool) error {
	key, record, revision, err := s.waiting(ctx, typed)
	if err != nil {
		return err
	}
	if theirs {
		record.Subject = in.Subject
	} else {
		record.Denied = true
	}
	err = s.write(ctx, key, record, revision)
	if errors.Is(err, ErrChanged) {
		return ErrNoDevice
	}
	if err != nil {
		return err
	}
	return s.drop(ctx, words+record.Word)
}

// PollDevice answers a device that asks: with a grant, once, or why not.
func (s *Service) PollDevice(ctx context.Context, token, client string) (*Grant, error) {
	if token == "" || len(token) > maxToken {
		return nil, ErrInvalidGrant
	}
	key := devices + hashOf(token)
	record, revision, ok, err := read[device](ctx, s.opts.Store, key)
	if err != nil {
		return nil, err
	}
	switch {
	case !ok || record.Client != client || record.Grant != "":
		return nil, ErrInvalidGrant
	case !time.Now().Before(record.Ends):
		return nil, ErrTimeUp
	case record.Denied:
		return nil, ErrRefused
	case record.Subject.UID == "":
		if s.polls.tooSoon(key, time.Now()) {
			return nil, ErrSlowDown
		}
		return nil, ErrPending
	}
	record.Grant = newID()
	err = s.write(ctx, key, record, revision)
	if errors.Is(err, ErrChanged) {
		return nil, ErrInvalidGrant // another call has it
	}
	if err != nil {
		return nil, err
	}
	return s.newGrant(ctx, record.Grant, client, record.Subject, nil, "", time.Now().UTC())
}

// newWord makes what a person types.
func newWord() string {
	var b strings.Builder
	for b.Len() < wordLength {
		for _, r := range random(wordLength) {
			// Those beyond the last whole multiple would make some letters likelier.
			if limit := 256 / len(wordLetters) * len(wordLetters); int(r) < limit && b.Len() < wordLength {
				b.WriteByte(wordLetters[int(r)%len(wordLetters)])
			}
		}
	}
	return b.String()
}

func dashed(word string) string { return word[:wordLength/2] + "-" + word[wordLength/2:] }

// wordOf is what somebody meant, whatever they put between the letters.
func wordOf(typed string) (string, bool) {
	if len(typed) > 4*wordLength {
		return "", false
	}
	var b strings.Builder
	for _, r := range strings.ToUpper(typed) {
		switch {
		case strings.ContainsRune(wordLetters, r):
			b.WriteRune(r)
		case r == '-' || r == ' ' || r == '_' || r == '.':
		default:
			return "", false
		}
	}
	return b.String(), b.Len() == wordLength
}

// pollClock remembers when devices asked last, for a bounded number of them.
type pollClock struct {
	mu   sync.Mutex // guards last
	last map[string]time.Time
}

const maxPolls = 10_000

func newPollClock() *pollClock { return &pollClock{last: make(map[string]time.Time)} }

// tooSoon says whether a device asks sooner than it was told to, with a second of
// leeway.
func (c *pollClock) tooSoon(key string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) >= maxPolls {
		for k, at := range c.last {
			if now.Sub(at) > DeviceInterval {
				delete(c.last, k)
			}
		}
		if len(c.last) >= maxPolls {
			clear(c.last)
		}
	}
	before, known := c.last[key]
	c.last[key] = now
	return known && now.Sub(before) < DeviceInterval-time.Second
}
