package schemaimport

import (
	"context"
	"slices"
)

const (
	subjectWindow = 4 // subjects whose versions are listed at the same time
	versionWindow = 8 // versions that are read at the same time
)

// outcome is the result of work that was done concurrently.
type outcome[T any] struct {
	value T
	err   error
}

// ordered calls do for the items of in, up to window of them at the same time, and returns the results
// in the order of the items. The channel is closed after the last result, or when ctx is canceled.
func ordered[A, B any](ctx context.Context, window int, in <-chan A,
	do func(context.Context, A) (B, error),
) <-chan outcome[B] {
	queue := make(chan chan outcome[B], window)
	out := make(chan outcome[B])
	go func() {
		defer close(queue)
		for item := range in {
			result := make(chan outcome[B], 1)
			select {
			case queue <- result:
			case <-ctx.Done():
				return
			}
			go func() {
				value, err := do(ctx, item)
				result <- outcome[B]{value, err}
			}()
		}
	}()
	go func() {
		defer close(out)
		for result := range queue {
			select {
			case out <- <-result:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// feed sends items to the returned channel until ctx is canceled.
func feed[T any](ctx context.Context, items []T) <-chan T {
	out := make(chan T)
	go func() {
		defer close(out)
		for _, item := range items {
			select {
			case out <- item:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// listing is what the source lists for a subject.
type listing struct {
	subject     string
	active, all []int
	level, mode string
}

// deleted reports whether a version of the subject is soft-deleted.
func (l *listing) deleted(number int) bool {
	_, found := slices.BinarySearch(l.active, number)
	return !found
}

// list reads the version numbers, the level and the mode of a subject.
func (s *Source) list(ctx context.Context, subject string) (*listing, error) {
	l := &listing{subject: subject}
	var err error
	if l.all, err = s.versions(ctx, subject, true); err != nil {
		return nil, err
	}
	if l.active, err = s.versions(ctx, subject, false); err != nil {
		return nil, err
	}
	if l.level, err = s.level(ctx, subject); err != nil {
		return nil, err
	}
	if l.mode, err = s.mode(ctx, subject); err != nil {
		return nil, err
	}
	return l, nil
}

// item is one step of reading the source: a subject (schema is nil), or one of its versions.
type item struct {
	of     *listing
	schema *version
}

// request is an item that has still to be read.
type request struct {
	of     *listing
	number int // 0 for the subject itself
}

// read reads subjects in order, each followed by its versions.
func (s *Source) read(ctx context.Context, subjects []string) <-chan outcome[item] {
	listings := ordered(ctx, subjectWindow, feed(ctx, subjects), s.list)
	requests := make(chan outcome[request])
	go func() {
		defer close(requests)
		for l := range listings {
			next := []outcome[request]{{request{of: l.value}, l.err}}
			if l.err == nil {
				for _, number := range l.value.all {
					next = append(next, outcome[request]{request{l.value, number}, nil})
				}
			}
			for _, r := range next {
				select {
				case requests <- r:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return ordered(ctx, versionWindow, requests, func(ctx context.Context, r outcome[request]) (item, error) {
		if r.err != nil || r.value.number == 0 {
			return item{of: r.value.of}, r.err
		}
		v, err := s.version(ctx, r.value.of.subject, r.value.number)
		return item{r.value.of, v}, err
	})
}
