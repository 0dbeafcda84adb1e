package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxResponse is how much of an answer Do reads unless told otherwise.
const maxResponse = 64 << 20

// Request is one call. The packages below this one are made of them; a program
// needs it for what they do not cover.
type Request struct {
	Method string
	// Path follows the server's address. It begins with a slash and is escaped;
	// Client.ClusterPath makes it the cluster's.
	Path   string
	Query  url.Values
	Header http.Header
	Body   []byte
	// Idempotent says that sending the call again does no harm when nobody knows
	// whether it was carried out. GET and HEAD always are.
	Idempotent bool
	// Timeout bounds each attempt in place of the Client's.
	Timeout time.Duration
	// MaxResponse bounds the body of the answer; 64 MiB when zero.
	MaxResponse int64
}

// Response is the answer to a call that succeeded: its status is below 300.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON decodes the body into value.
func (r *Response) JSON(value any) error {
	if err := json.Unmarshal(r.Body, value); err != nil {
		return fmt.Errorf("the server's answer is not the JSON that was expected: %w", err)
	}
	return nil
}

// Do makes a call and reads the answer. An answer of 300 and above is an *Error.
//
// What is repeated, at most Config.MaxAttempts times altogether, with waits that
// double from a tenth of a second to five, half of each by chance, or as long as
// the server asks for by Retry-After when that is at most 30 s:
//
//   - any call that the server cannot have seen or has refused unread: no
//     connection, or 429;
//   - calls that do no harm when they come twice (GET, HEAD, Request.Idempotent):
//     also after a broken connection, a timeout of the attempt, and 502, 503, 504;
//   - once, a call that is answered 401 when the TokenSource has another token.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) {
	var response *Response
	err := c.attempt(ctx, r, func(ctx context.Context) error {
		timeout := r.Timeout
		if timeout <= 0 {
			timeout = c.timeout
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		answer, err := c.send(ctx, r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		limit := r.MaxResponse
		if limit <= 0 {
			limit = maxResponse
		}
		body, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
		if err != nil {
			return &unreachable{fmt.Errorf("reading the answer: %w", err)}
		}
		if int64(len(body)) > limit {
			return permanent(fmt.Errorf("the server's answer has more than %d bytes", limit))
		}
		response = &Response{Status: answer.StatusCode, Header: answer.Header, Body: body}
		return nil
	})
	return response, err
}

// Stream makes a call whose answer is read bit by bit: events, watches, exports.
// It repeats as Do does until the answer begins. The caller closes the body; the
// context ends it.
func (c *Client) Stream(ctx context.Context, r *Request) (*http.Response, error) {
	var response *http.Response
	err := c.attempt(ctx, r, func(ctx context.Context) (err error) {
		response, err = c.send(ctx, r) //nolint:bodyclose // the caller closes it
		return err
	})
	return response, err
}

// attempt runs call as often as the policy says, and once more with another token
// after a 401.
func (c *Client) attempt(ctx context.Context, r *Request, call func(context.Context) error) error {
	repeatable := r.Idempotent || r.Method == http.MethodGet || r.Method == http.MethodHead
	policy := retryPolicy{attempts: c.attempts}
	return policy.do(ctx, repeatable, call)
}

// send makes one attempt, or two when the first is answered 401 and there is
// another token.
func (c *Client) send(ctx context.Context, r *Request) (*http.Response, error) {
	if c.tokens == nil {
		return c.sendAs(ctx, r, Token{})
	}
	token, err := c.tokens.Token(ctx)
	if err != nil {
		return nil, permanent(err)
	}
	response, err := c.sendAs(ctx, r, token)
	source, ok := c.tokens.(Invalidator)
	if !ok || !errors.Is(err, ErrUnauthenticated) {
		return response, err
	}
	source.Invalidate(token)
	next, nextErr := source.Token(ctx)
	if nextErr != nil || next.Value == token.Value {
		return response, err // the refusal says more
	}
	return c.sendAs(ctx, r, next)
}

func (c *Client) sendAs(ctx context.Context, r *Request, token Token) (*http.Response, error) {
	target := c.base.String() + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	var body io.Reader = http.NoBody
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		return nil, permanent(fmt.Errorf("making the call: %w", err))
	}
	if strings.ContainsFunc(token.Value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, permanent(fmt.Errorf("%w: what was given as a token is none: it has blanks, line breaks or "+
			"other characters", ErrUnauthenticated))
	}
	if err := setHeader(request, r.Header); err != nil {
		return nil, permanent(err)
	}
	request.Header.Set("User-Agent", c.agent)
	if token.Value != "" {
		request.Header.Set("Authorization", "Bearer "+token.Value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer response.Body.Close()
		return nil, newError(response)
	}
	return response, nil
}

// setHeader copies header fields. One that HTTP cannot carry is an error that no
// repetition mends.
func setHeader(request *http.Request, header http.Header) error {
	for name, values := range header {
		for _, value := range values {
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return fmt.Errorf("%w: %s has a character that HTTP cannot carry", ErrInvalid, name)
			}
		}
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	return nil
}
