package messaging

import (
	"freshet/internal/base/errs"
	"freshet/internal/base/workpool"
	"freshet/internal/registry/avro"
)

func incompatible(version int64, format string, args ...any) error {
	return errs.Newf(errs.Conflict, "%w: against version %d: %w", ErrIncompatibleSchema, version,
		errs.Newf(errs.Conflict, format, args...))
}

// compatible returns an error unless the strategy allows s to follow the given versions.
func compatible(job *workpool.Job, s *Schema, versions []*schemaVersion, strategy Strategy) error {
	if len(versions) == 0 || strategy == StrategyAlwaysCompatible {
		return nil
	}
	last := versions[len(versions)-1]
	if strategy == StrategyAlwaysIncompatible {
		return incompatible(last.Version, "strategy is %s", strategy)
	}
	back, forth := false, false
	switch strategy {
	case StrategyBackward, StrategyBackwardTransitive:
		back = true
	case StrategyForward, StrategyForwardTransitive:
		forth = true
	default:
		back, forth = true, true
	}
	switch strategy {
	case StrategyBackwardTransitive, StrategyForwardTransitive, StrategyFullTransitive:
	default:
		versions = versions[len(versions)-1:]
	}
	for i := len(versions) - 1; i >= 0; i-- {
		old := &versions[i].Schema
		err := job.Do(workpool.LaneOf(len(s.Text)+len(old.Text)), func() error {
			return checkFollows(job, s, old, versions[i].Version, back, forth)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkFollows returns an error unless s can follow an older definition: with back, s must read data
// written with the old one; with forth, the old one must read data written with s.
func checkFollows(job *workpool.Job, s, old *Schema, version int64, back, forth bool) error {
	if s.Type != old.Type {
		return incompatible(version, "type changes from %s to %s", old.Type, s.Type)
	}
	switch {
	case s.Type.structured():
		return checkRecordFollows(job, s, old, version, back, forth)
	case s.Type == SchemaProtobufNative:
		// As in Pulsar: a message may change in every way that Protobuf readers tolerate, but the
		// root message must keep its name.
		now, _, err := s.native()
		if err != nil {
			return err
		}
		before, _, err := old.native()
		if err != nil {
			return err
		}
		if now.RootMessageTypeName != before.RootMessageTypeName {
			return incompatible(version, "root message changes from %s to %s", before.RootMessageTypeName,
				now.RootMessageTypeName)
		}
	case s.Type == SchemaKeyValue:
		key, value, err := s.split()
		if err != nil {
			return err
		}
		oldKey, oldValue, err := old.split()
		if err != nil {
			return err
		}
		if err := checkFollows(job, key, oldKey, version, back, forth); err != nil {
			return err
		}
		return checkFollows(job, value, oldValue, version, back, forth)
	}
	return nil
}

func checkRecordFollows(job *workpool.Job, s, old *Schema, version int64, back, forth bool) error {
	newer, err := s.record()
	if err != nil {
		return err
	}
	older, err := old.record()
	if err != nil {
		return err
	}
	if back {
		problems, err := avro.Check(newer, older, job.Spend)
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			return incompatible(version, "new schema cannot read data written with the old one: %s",
				problems[0].Describe("new", "old"))
		}
	}
	if forth {
		problems, err := avro.Check(older, newer, job.Spend)
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			return incompatible(version, "old schema cannot read data written with the new one: %s",
				problems[0].Describe("old", "new"))
		}
	}
	return nil
}
