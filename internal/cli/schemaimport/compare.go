package schemaimport

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
)

// maxProblems is the number of problems after which a dry run ends.
const maxProblems = 100

// errProblems ends a dry run with many problems.
var errProblems = fmt.Errorf("dry run ended after %d problems", maxProblems)

// comparer is the sink of a dry run: it compares with the registry of the cluster and writes nothing.
type comparer struct {
	registry *schemas.Registry
	sum      *Summary

	subject     string // of the fields below
	all, active []int  // what the cluster has
}

func (c *comparer) addVersion(ctx context.Context, v *version, deleted bool) error {
	if err := c.list(ctx, v.Subject); err != nil {
		return err
	}
	if !slices.Contains(c.all, v.Version) {
		c.sum.Versions++
		return c.compareID(ctx, v)
	}
	found, err := c.registry.DeletedVersion(ctx, v.Subject, v.Version)
	if err != nil {
		return fmt.Errorf("reading subject %s version %d of the cluster: %w", v.Subject, v.Version, err)
	}
	active := slices.Contains(c.active, v.Version)
	switch {
	case found.ID != v.ID:
		return c.problemf("subject %s version %d has the id %d at the source and %d in the cluster", v.Subject,
			v.Version, v.ID, found.ID)
	case !deleted && !active:
		return c.problemf("subject %s version %d is soft-deleted in the cluster and not at the source", v.Subject,
			v.Version)
	case deleted && active:
		c.sum.Removed++
	}
	c.sum.Existing++
	return nil
}

// list reads the version numbers that the cluster has of a subject.
func (c *comparer) list(ctx context.Context, subject string) error {
	if c.subject == subject {
		return nil
	}
	var numbers [2][]int
	for i, deleted := range []bool{true, false} {
		var err error
		numbers[i], err = c.registry.Versions(ctx, subject, deleted)
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return fmt.Errorf("listing the versions of subject %s in the cluster: %w", subject, err)
		}
	}
	c.subject, c.all, c.active = subject, numbers[0], numbers[1]
	return nil
}

// compareID checks that the id of a new version is free in the cluster, or belongs to the same schema.
func (c *comparer) compareID(ctx context.Context, v *version) error {
	found, err := c.registry.ByID(ctx, v.ID)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("reading the schema with the id %d of the cluster: %w", v.ID, err)
	case found.Text == v.Schema && slices.Equal(found.References, v.References):
		return nil
	}
	uses, err := c.registry.SubjectVersions(ctx, v.ID)
	if err != nil || len(uses) == 0 {
		return err
	}
	// The text may differ in white space only, so the registry is asked whether it is the same schema.
	same, err := c.registry.Lookup(ctx, uses[0].Subject,
		schemas.Schema{Type: schemas.Type(v.Type), Text: v.Schema, References: v.References})
	if err == nil && same.ID == v.ID {
		return nil
	}
	if err != nil && !errors.Is(err, client.ErrNotFound) && !errors.Is(err, client.ErrInvalid) {
		return fmt.Errorf("looking up subject %s version %d in the cluster: %w", v.Subject, v.Version, err)
	}
	return c.problemf("subject %s version %d has the id %d, which belongs to another schema of the cluster, under %s",
		v.Subject, v.Version, v.ID, uses[0].Subject)
}

func (c *comparer) addLevel(ctx context.Context, subject, level string) error {
	found, err := c.registry.Level(ctx, subject)
	if err != nil {
		return fmt.Errorf("reading the compatibility level of subject %s of the cluster: %w", subject, err)
	}
	if found == level {
		c.sum.Existing++
	} else {
		c.sum.Levels++
	}
	return nil
}

func (c *comparer) finish(context.Context, int) error { return nil }

func (c *comparer) problemf(format string, args ...any) error {
	c.sum.Problems = append(c.sum.Problems, fmt.Sprintf(format, args...))
	if len(c.sum.Problems) >= maxProblems {
		return errProblems
	}
	return nil
}
